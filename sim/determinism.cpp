#include "sim/determinism.h"

#include "core/hash.h"

namespace lockstep::sim {
namespace {

class FieldFolder : public FieldVisitor {
 public:
  void number(std::string_view field, std::int64_t value) override {
    fold_text(field);
    digest_.fold(static_cast<std::uint64_t>(value));
  }
  void text(std::string_view field, std::string_view value) override {
    fold_text(field);
    fold_text(value);
  }
  void numbers(std::string_view field, std::span<const std::int64_t> values) override {
    fold_text(field);
    digest_.fold(std::as_bytes(values));
  }
  void bytes(std::string_view field, std::span<const std::byte> value) override {
    fold_text(field);
    digest_.fold(value);
  }
  void fold_text(std::string_view text) { digest_.fold(std::as_bytes(std::span(text))); }
  RunDigest& digest() { return digest_; }

 private:
  RunDigest digest_;
};

// Sees a second run and finds the first event that differs from the first run's.
class EventComparer : public Observer {
 public:
  EventComparer(const std::vector<std::uint64_t>& first, const DescribeEvent& describe)
      : first_(first), describe_(describe) {}

  void on_event(const Event& event) override {
    const std::size_t index = count_++;
    if (differs_at_) return;
    if (index < first_.size() && first_[index] == event_digest(event)) return;
    differs_at_ = index;
    differing_event_ = describe_(event);
  }

  // Counted from 0; where one run ends before the other, what would have come next.
  std::optional<std::size_t> differs_at() const {
    if (!differs_at_ && count_ < first_.size()) return count_;
    return differs_at_;
  }
  // Empty: the run had ended.
  const std::string& differing_event() const { return differing_event_; }

 private:
  const std::vector<std::uint64_t>& first_;
  const DescribeEvent& describe_;
  std::size_t count_ = 0;
  std::optional<std::size_t> differs_at_;
  std::string differing_event_;
};

// Reads one event of a run that is known by its digest. Another event in its place is not it.
class EventFinder : public Observer {
 public:
  EventFinder(std::size_t index, std::uint64_t digest, const DescribeEvent& describe)
      : index_(index), digest_(digest), describe_(describe) {}

  void on_event(const Event& event) override {
    if (count_++ == index_ && event_digest(event) == digest_) found_ = describe_(event);
  }
  const std::optional<std::string>& found() const { return found_; }

 private:
  std::size_t index_;
  std::uint64_t digest_;
  const DescribeEvent& describe_;
  std::size_t count_ = 0;
  std::optional<std::string> found_;
};

std::string hex(std::uint64_t number) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text(16, '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, number >>= 4) {
    *digit = digits[number & 15];
  }
  return text;
}

}  // namespace

std::uint64_t event_digest(const Event& event) {
  FieldFolder folder;
  folder.digest().fold(event.step.value());
  folder.digest().fold(static_cast<std::uint64_t>(event.time.value()));
  folder.digest().fold(event.rank.value());
  folder.digest().fold(event.request.value());
  folder.fold_text(event_name(event.body));
  visit_fields(event.body, folder);
  return folder.digest().value();
}

std::optional<std::string> find_difference(const RunResult& result, const EventRecorder& recorded,
                                           const RunOnceMore& run, const DescribeEvent& describe) {
  const std::vector<std::uint64_t>& first = recorded.digests();
  EventComparer comparer(first, describe);
  const Result<RunResult> second = run(&comparer);
  if (!second) return "determinism: expected a second run, found " + second.error().message;
  const std::optional<std::size_t> index = comparer.differs_at();
  if (!index) {
    if (second->digest == result.digest) return std::nullopt;
    return "determinism: expected the digest " + hex(result.digest) +
           " of a second run too, found " + hex(second->digest) + " after the same events";
  }
  std::string expected = "no more events";
  if (*index < first.size()) {
    // The first run's event is known by its digest only; a third run may show it again.
    EventFinder finder(*index, first[*index], describe);
    const Result<RunResult> third = run(&finder);
    expected = third && finder.found()
                   ? *finder.found()
                   : "what no other run did (digest " + hex(first[*index]) + ")";
  }
  const std::string& actual = comparer.differing_event();
  return "determinism: two runs differ from event " + std::to_string(*index + 1) +
         " on: expected " + expected + ", found " + (actual.empty() ? "no more events" : actual);
}

}  // namespace lockstep::sim
