#include "flat_tree.h"

#include <algorithm>
#include <set>

#include "core/geometry.h"
#include "oracle/specification.h"

namespace lockstep::testing {

namespace {

Prefix first(const Prefix& path, std::size_t pages) {
  return {path.begin(), path.begin() + static_cast<std::ptrdiff_t>(pages)};
}

bool begins_with(const Prefix& path, const Prefix& start) {
  return path.size() >= start.size() && std::equal(start.begin(), start.end(), path.begin());
}

// Content i is the prefix of i pages of one path.
class OnPath : public oracle::Holdings {
 public:
  OnPath(const std::map<Prefix, FlatTree::Entry>& entries, const Prefix& path)
      : entries_(entries), path_(path) {}
  bool has(Component component, oracle::ContentId content) const override {
    const auto entry = entries_.find(first(path_, content.index()));
    if (entry == entries_.end()) return false;
    if (component == Component::swa) return entry->second.swa;
    return component == Component::full || entry->second.state;
  }

 private:
  const std::map<Prefix, FlatTree::Entry>& entries_;
  const Prefix& path_;
};

}  // namespace

FlatTree::Adopted FlatTree::insert(const Prefix& path, std::size_t swa_from) {
  ++clock_;
  Adopted adopted;
  const std::size_t old = matched(path);
  if (old > 0) split(first(path, old));
  if (old < path.size()) {
    for (std::size_t page = old; page < path.size(); ++page) {
      adopted.full.push_back(page);
      entries_[first(path, page + 1)].used.fill(clock_);
    }
    entries_.at(path).ends = true;
    entries_.at(path).node = next_node_++;
  }
  for (std::size_t page = swa_from; page < path.size(); ++page) {
    Entry& entry = entries_.at(first(path, page + 1));
    if (entry.swa) continue;
    entry.swa = true;
    adopted.swa.push_back(page);
    stamp(Component::swa, node_end(first(path, page + 1)));
  }
  adopted.state = !entries_.at(path).state;
  if (adopted.state) stamp(Component::mamba, path);
  entries_.at(path).state = true;
  return adopted;
}

std::size_t FlatTree::matched(const Prefix& path) const {
  std::size_t pages = 0;
  while (pages < path.size() && entries_.contains(first(path, pages + 1))) ++pages;
  return pages;
}

void FlatTree::split(const Prefix& at) {
  Entry& entry = entries_.at(at);
  if (entry.ends) return;
  entry.ends = true;
  entry.node = next_node_++;
}

std::size_t FlatTree::hit(const Prefix& path, std::size_t limit) const {
  Geometry geometry;
  geometry.has_swa = geometry.has_mamba = true;
  // ceil((W - 1) / page) pages of one token.
  geometry.window = Tokens{static_cast<std::int64_t>(window_pages_) + 1};
  std::vector<oracle::ContentId> chain;
  for (std::uint32_t page = 1; page <= path.size(); ++page) chain.emplace_back(page);
  const Tokens length{static_cast<std::int64_t>(limit) + 1};
  return oracle::Specification(geometry).device_hit(OnPath(entries_, path), chain, length).index();
}

void FlatTree::touch(const Prefix& at) {
  ++clock_;
  stamp(Component::mamba, at);
  for (std::size_t end = at.size(); end > 0; --end) {
    const Prefix node = first(at, end);
    if (!entries_.at(node).ends) continue;
    stamp(Component::full, node);
    if (end > window_begin(at.size())) stamp(Component::swa, node);
  }
}

void FlatTree::lock(const Prefix& at, std::size_t swa_from) {
  const bool state = entries_.at(at).state;
  if (state) swa_from = std::min(swa_from, window_begin(at.size()));
  tickets_[next_ticket_++] = {at, swa_from, state};
}

void FlatTree::unlock(std::uint64_t ticket) {
  const Prefix at = tickets_.at(ticket).at;
  tickets_.erase(ticket);
  prune(at);
}

std::uint32_t FlatTree::locks(Component component, const Prefix& at) const {
  return static_cast<std::uint32_t>(std::ranges::count_if(tickets_, [&](const auto& numbered) {
    const Ticket& ticket = numbered.second;
    switch (component) {
      case Component::full:
        return begins_with(ticket.at, at);
      case Component::swa:
        return begins_with(ticket.at, at) && at.size() > ticket.swa_from;
      case Component::mamba:
        return ticket.at == at && ticket.state;
    }
    return false;
  }));
}

std::int64_t FlatTree::free(Component component) const {
  return capacity_[index(component)] - std::ranges::count_if(entries_, [&](const auto& entry) {
           return has(component, entry.first);
         });
}

std::int64_t FlatTree::evictable(Component component) const {
  return std::ranges::count_if(entries_, [&](const auto& entry) {
    return has(component, entry.first) && locks(component, entry.first) == 0;
  });
}

bool FlatTree::has(Component component, const Prefix& at) const {
  const Entry& entry = entries_.at(at);
  if (component == Component::swa) return entry.swa;
  return component == Component::full || entry.state;
}

Prefix FlatTree::node_end(Prefix at) const {
  while (!entries_.at(at).ends) {
    // Inside a node there is one way on.
    at = std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) {
           return entry.first.size() == at.size() + 1 && begins_with(entry.first, at);
         })->first;
  }
  return at;
}

std::vector<Prefix> FlatTree::node_pages(const Prefix& end) const {
  std::vector<Prefix> pages{end};
  for (std::size_t size = end.size() - 1; size > 0 && !entries_.at(first(end, size)).ends; --size) {
    pages.push_back(first(end, size));
  }
  return pages;
}

bool FlatTree::has_children(const Prefix& at) const {
  return std::ranges::any_of(entries_, [&](const auto& entry) {
    return entry.first.size() > at.size() && begins_with(entry.first, at);
  });
}

void FlatTree::stamp(Component component, const Prefix& at) {
  for (const Prefix& page : node_pages(at)) entries_.at(page).used[index(component)] = clock_;
}

bool FlatTree::may_evict(Component component, const Prefix& end) const {
  switch (component) {
    case Component::full:
      return !has_children(end) && locks(component, end) == 0;
    case Component::swa:
      return std::ranges::any_of(node_pages(end), [&](const Prefix& page) {
        return entries_.at(page).swa && locks(component, page) == 0;
      });
    case Component::mamba:
      return entries_.at(end).state && locks(component, end) == 0;
  }
  return false;
}

void FlatTree::evict(Component component, std::int64_t shortfall) {
  const std::int64_t wanted = free(component) + shortfall;
  while (free(component) < wanted) {
    const Prefix* oldest = nullptr;
    const auto age = [&](const Prefix& end) {
      const Entry& entry = entries_.at(end);
      return std::pair(entry.used[index(component)], entry.node);
    };
    for (const auto& [at, entry] : entries_) {
      if (!entry.ends || !may_evict(component, at)) continue;
      if (oldest == nullptr || age(at) < age(*oldest)) oldest = &at;
    }
    if (oldest == nullptr) return;
    evict_node(component, Prefix(*oldest));
  }
}

void FlatTree::evict_node(Component component, const Prefix& end) {
  if (component == Component::swa) return drop_window(end);
  if (may_evict(Component::full, end)) return remove(end);
  entries_.at(end).state = false;
  prune(end);
}

void FlatTree::drop_window(const Prefix& end) {
  std::set<std::size_t> lost;
  for (const Prefix& page : node_pages(end)) {
    Entry& entry = entries_.at(page);
    if (!entry.swa || locks(Component::swa, page) > 0) continue;
    entry.swa = false;
    lost.insert(page.size() - 1);
  }
  std::vector<Prefix> stranded;
  for (auto& [at, entry] : entries_) {
    if (!entry.state || !begins_with(at, end)) continue;
    const auto in_window = lost.lower_bound(window_begin(at.size()));
    if (in_window != lost.end() && *in_window < at.size()) stranded.push_back(at);
  }
  for (const Prefix& at : stranded) entries_.at(at).state = false;
  for (const Prefix& at : stranded) prune(at);
}

void FlatTree::remove(const Prefix& end) {
  for (const Prefix& page : node_pages(end)) entries_.erase(page);
  const auto above = std::find_if(entries_.rbegin(), entries_.rend(),
                                  [&](const auto& entry) { return begins_with(end, entry.first); });
  if (above != entries_.rend()) prune(above->first);
}

void FlatTree::prune(Prefix at) {
  const auto entry = entries_.find(at);
  if (entry == entries_.end() || entry->second.state || has_children(at)) return;
  if (locks(Component::full, at) == 0) remove(at);
}

}  // namespace lockstep::testing
