// What the phases of one rank share: where it is, what it works on, whom it reports to.
#pragma once

#include "core/cache_config.h"
#include "core/events.h"
#include "core/geometry.h"
#include "device/device.h"
#include "link/keys.h"
#include "pool/group.h"
#include "store/store.h"
#include "tree/radix_tree.h"

namespace lockstep {

struct Rank {
  RankId id;
  Geometry geometry;
  CacheConfig config;
  Device& device;
  PoolGroup& pools;
  RadixTree& tree;
  Store& store;
  const KeyScheme& keys;
  EventSink& sink;

  void emit(RequestId request, EventBody body) const { sink.emit(id, request, std::move(body)); }
  bool has(Component component) const { return pools.has(component); }
};

}  // namespace lockstep
