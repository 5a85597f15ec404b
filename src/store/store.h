// The external store: what every back end offers (stores.md). Objects are immutable and invisible
// until complete; results are per key and partial success is normal; transfers are asynchronous and
// their completion is polled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/component.h"
#include "core/ids.h"

namespace lockstep {

using ObjectKey = std::string;  // hex(page hash) "/" component "/" rank "of" ranks
using StoreTicket = std::uint64_t;

enum class StoreStatus { ok, missing, short_read, lease_ended, no_room, failed };
std::string_view name(StoreStatus status);

// Who moves what: for logs and fault plans; a store ignores it.
struct ItemNote {
  RankId rank;
  RequestId request = kNoRequest;
  Component component = Component::full;
  LayerId layer;
  Pages page;
  bool payload = true;  // false: a digest that travels beside the payload
};

// Reads [offset, offset + target.size()) of one object into `target`, which stays valid until the
// ticket is done.
struct GetItem {
  ObjectKey key;
  Bytes offset;
  std::span<std::byte> target;
  ItemNote note{};
};

// `payload` stays valid until the ticket is done.
struct PutItem {
  ObjectKey key;
  std::span<const std::byte> payload;
  ItemNote note{};
};

struct StoreResult {
  StoreStatus status = StoreStatus::ok;
  Bytes bytes;  // transferred
};

class Store {
 public:
  virtual ~Store() = default;

  // One answer per key: a complete object is there now. It may be gone by the time it is read.
  virtual std::vector<bool> exists(std::span<const ObjectKey> keys) = 0;

  // Start a batch. Each returns a ticket that poll() reports on until it has been polled as done.
  virtual StoreTicket get(std::vector<GetItem> items) = 0;
  // Putting an existing key keeps the old value and succeeds.
  virtual StoreTicket put(std::vector<PutItem> items) = 0;

  // The results of a batch that is done, one per item in order, and the ticket ends; nothing while
  // it runs.
  virtual std::optional<std::vector<StoreResult>> poll(StoreTicket ticket) = 0;

  virtual void remove(std::span<const ObjectKey> keys) = 0;

  // Adds an action that is called (on the owner's thread) whenever some ticket may have become
  // done, so that nobody has to spin. It stays for as long as the store.
  virtual void on_progress(std::function<void()> action) = 0;
};

}  // namespace lockstep
