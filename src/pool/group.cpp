#include "pool/group.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

namespace lockstep {
namespace {

using Pools = std::vector<PoolSpec>;

const PoolSpec* find(const Pools& pools, Component component) {
  const auto found = std::ranges::find_if(
      pools, [component](const PoolSpec& pool) { return pool.layout.component == component; });
  return found == pools.end() ? nullptr : &*found;
}

// "full pool: <reason>"
Error refuse(Component component, std::string_view reason) {
  return Error{std::string(name(component)) + " pool: " + std::string(reason)};
}

// The pool that a property of the KV rows or of the slots is about.
Component kv_pool(const Pools& pools) {
  return find(pools, Component::full) == nullptr && find(pools, Component::swa) != nullptr
             ? Component::swa
             : Component::full;
}

std::string text(std::int64_t value) {
  return std::to_string(value);
}
std::string text(LayerId layer) {
  return std::to_string(layer.value());
}

std::string text(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

Result<void> check_duplicates(const DeclaredState& /*state*/, const Pools& pools) {
  if (pools.empty()) return refuse(Component::full, "missing; at least one pool is needed");
  for (Component component : kComponents) {
    const auto count = std::ranges::count_if(
        pools, [component](const PoolSpec& pool) { return pool.layout.component == component; });
    if (count > 1) return refuse(component, "duplicate: registered " + text(count) + " times");
  }
  return {};
}

Result<void> check_sizes(const DeclaredState& /*state*/, const Pools& pools) {
  for (const PoolSpec& pool : pools) {
    const Component component = pool.layout.component;
    if (pool.capacity <= Rows{0}) {
      return refuse(component,
                    "zero-size: " + text(pool.capacity.value()) + " rows, expected at least 1");
    }
    if (pool.layout.row_bytes <= Bytes{0}) {
      return refuse(component, "zero-size: rows of " + text(pool.layout.row_bytes.value()) +
                                   " bytes, expected at least 1");
    }
  }
  return {};
}

Result<void> check_kv_scale(const DeclaredState& state, const Pools& pools) {
  if (!state.kv_scale) return {};
  return refuse(kv_pool(pools),
                "kv_scale: scaled KV keeps its scales beside the rows, and a row "
                "copy would leave them behind");
}

Result<void> check_virtual_slots(const DeclaredState& state, const Pools& pools) {
  if (!state.virtual_slots) return {};
  return refuse(kv_pool(pools),
                "virtual_slots: unified memory moves rows between pools, so a row "
                "number does not name bytes");
}

Result<void> check_state_dtype(const DeclaredState& state, const Pools& /*pools*/) {
  if (state.state_dtype == "float32") return {};
  return refuse(Component::mamba, "state_dtype: \"" + state.state_dtype +
                                      "\" checkpoints are not copied bit for bit, expected "
                                      "\"float32\"");
}

Result<void> check_extra_slot_state(const DeclaredState& state, const Pools& /*pools*/) {
  if (state.extra_slot_state.empty()) return {};
  return refuse(Component::mamba, "extra_slot_state: per-slot state outside the transfer (" +
                                      text(state.extra_slot_state) + ") would not be restored");
}

Result<void> check_contiguous(const DeclaredState& state, const Pools& pools) {
  if (!state.contiguous_rows) {
    return refuse(kv_pool(pools),
                  "contiguous_rows: the model declares rows that are not "
                  "contiguous, and one copy per row cannot carry them");
  }
  for (const PoolSpec& pool : pools) {
    Bytes end;
    for (const LayerPart& part : pool.layout.parts) {
      if (part.offset != end || part.size <= Bytes{0}) {
        return refuse(pool.layout.component, "not contiguous: " + std::string(name(part.part)) +
                                                 " of layer " + text(part.layer) + " has " +
                                                 text(part.size.value()) + " bytes at offset " +
                                                 text(part.offset.value()) + ", expected offset " +
                                                 text(end.value()));
      }
      end += part.size;
    }
    if (end != pool.layout.row_bytes) {
      return refuse(pool.layout.component, "not contiguous: its parts end at byte " +
                                               text(end.value()) + " of rows of " +
                                               text(pool.layout.row_bytes.value()) + " bytes");
    }
  }
  return {};
}

Result<void> check_page_sizes(const DeclaredState& /*state*/, const Pools& pools) {
  const PoolSpec* full = find(pools, Component::full);
  const PoolSpec* swa = find(pools, Component::swa);
  const PoolSpec* mamba = find(pools, Component::mamba);
  for (const PoolSpec* pool : {full, swa}) {
    if (pool != nullptr && pool->page < Tokens{1}) {
      return refuse(pool->layout.component,
                    "page of " + text(pool->page.value()) + " tokens, expected at least 1");
    }
  }
  if (full != nullptr && swa != nullptr && full->page != swa->page) {
    return refuse(Component::swa, "page of " + text(swa->page.value()) +
                                      " tokens differs from the full pool's " +
                                      text(full->page.value()));
  }
  if (mamba != nullptr && mamba->page != Tokens{1}) {
    return refuse(Component::mamba,
                  "page of " + text(mamba->page.value()) + " tokens, expected 1: a row is a slot");
  }
  return {};
}

Result<void> check_state_parts(const DeclaredState& /*state*/, const Pools& pools) {
  const PoolSpec* mamba = find(pools, Component::mamba);
  if (mamba == nullptr) return {};
  const bool has_state = std::ranges::any_of(
      mamba->layout.parts, [](const LayerPart& part) { return part.part != Part::kv; });
  if (has_state) return {};
  return refuse(Component::mamba, "has neither temporal nor conv buffers");
}

Result<void> check_layer_sets(const DeclaredState& state, const Pools& /*pools*/) {
  const std::set<LayerId> attention(state.attention_layers.begin(), state.attention_layers.end());
  const std::set<LayerId> full(state.full_layers.begin(), state.full_layers.end());
  const std::set<LayerId> swa(state.swa_layers.begin(), state.swa_layers.end());
  for (LayerId layer : swa) {
    if (full.contains(layer)) {
      return refuse(Component::swa,
                    "layer sets overlap: layer " + text(layer) + " is in the full pool, too");
    }
  }
  for (LayerId layer : attention) {
    if (!full.contains(layer) && !swa.contains(layer)) {
      return refuse(Component::full, "layer sets do not cover the attention layers: layer " +
                                         text(layer) + " is neither in the full nor the swa set");
    }
  }
  for (const auto& [component, layers] :
       {std::pair(Component::full, &full), std::pair(Component::swa, &swa)}) {
    for (LayerId layer : *layers) {
      if (!attention.contains(layer)) {
        return refuse(component, "layer " + text(layer) + " of its set is no attention layer");
      }
    }
  }
  return {};
}

Result<void> check_layers_held(const DeclaredState& state, const Pools& pools) {
  for (const auto& [component, declared] : {std::pair(Component::full, &state.full_layers),
                                            std::pair(Component::swa, &state.swa_layers)}) {
    const PoolSpec* pool = find(pools, component);
    const std::vector<LayerId> layers =
        pool == nullptr ? std::vector<LayerId>{} : pool->layout.layers();
    const std::set<LayerId> held(layers.begin(), layers.end());
    for (LayerId layer : *declared) {
      if (!held.contains(layer)) {
        return refuse(component, "does not hold layer " + text(layer) + " of its layer set");
      }
    }
  }
  return {};
}

Result<void> check_state_chunk(const DeclaredState& state, const Pools& pools) {
  const PoolSpec* mamba = find(pools, Component::mamba);
  if (mamba == nullptr) return {};
  const PoolSpec* paged = find(pools, kv_pool(pools));
  const Tokens page = paged != nullptr ? paged->page : state.geometry.page;
  const Tokens chunk = state.geometry.state_chunk;
  if (chunk < Tokens{1}) {
    return refuse(Component::mamba,
                  "state_chunk of " + text(chunk.value()) + " tokens, expected at least 1");
  }
  if (page % chunk == Tokens{0} || chunk % page == Tokens{0}) return {};
  return refuse(Component::mamba, "state_chunk " + text(chunk.value()) + " and page " +
                                      text(page.value()) + ": neither divides the other");
}

// (component, layer, part) -> bytes per row.
using BufferMap = std::map<std::tuple<Component, LayerId, Part>, Bytes>;

BufferMap registered_buffers(const Pools& pools) {
  BufferMap buffers;
  for (const PoolSpec& pool : pools) {
    for (const LayerPart& part : pool.layout.parts) {
      buffers[{pool.layout.component, part.layer, part.part}] += part.size;
    }
  }
  return buffers;
}

BufferMap declared_buffers(const DeclaredState& state, const Pools& pools) {
  BufferMap buffers;
  for (const DeclaredBuffer& buffer : state.buffers) {
    const PoolSpec* pool = find(pools, buffer.component);
    const Tokens tokens = pool != nullptr && buffer.part == Part::kv ? pool->page : Tokens{1};
    buffers[{buffer.component, buffer.layer, buffer.part}] += buffer.bytes * tokens.value();
  }
  return buffers;
}

Bytes size_of(const BufferMap& buffers, const BufferMap::key_type& key) {
  const auto found = buffers.find(key);
  return found == buffers.end() ? Bytes{0} : found->second;
}

Result<void> check_coverage(const DeclaredState& state, const Pools& pools) {
  const BufferMap registered = registered_buffers(pools);
  const BufferMap declared = declared_buffers(state, pools);
  BufferMap either = declared;
  either.insert(registered.begin(), registered.end());
  for (const auto& entry : either) {
    const auto& [component, layer, part] = entry.first;
    const Bytes wanted = size_of(declared, entry.first);
    const Bytes found = size_of(registered, entry.first);
    if (wanted == found) continue;
    return refuse(component, std::string(name(part)) + " of layer " + text(layer) +
                                 ": the model declares " + text(wanted.value()) +
                                 " bytes per row, the pool registers " + text(found.value()));
  }
  return {};
}

}  // namespace

Result<void> check_pools(const DeclaredState& state, const std::vector<PoolSpec>& pools) {
  constexpr std::array checks{check_duplicates,    check_sizes,       check_kv_scale,
                              check_virtual_slots, check_state_dtype, check_extra_slot_state,
                              check_contiguous,    check_page_sizes,  check_state_parts,
                              check_layer_sets,    check_layers_held, check_state_chunk,
                              check_coverage};
  for (const auto& check : checks) {
    if (Result<void> checked = check(state, pools); !checked) return checked;
  }
  return {};
}

PoolGroup::PoolGroup(Device& device, EventSink& sink, RankId rank,
                     const std::vector<PoolSpec>& pools) {
  for (const PoolSpec& pool : pools) {
    std::unique_ptr<RowPool>& slot = pools_[index(pool.layout.component)];
    CHECK("pool_group.duplicate", slot == nullptr);
    slot = std::make_unique<RowPool>(device, sink, rank, pool.layout, pool.capacity);
  }
}

RowPool& PoolGroup::pool(Component component) {
  CHECK("pool_group.has", has(component));
  return *pools_[index(component)];
}

const RowPool& PoolGroup::pool(Component component) const {
  CHECK("pool_group.has", has(component));
  return *pools_[index(component)];
}

}  // namespace lockstep
