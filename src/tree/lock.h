// Lock tickets. One ticket on a node covers FULL on the path to the root, SWA on a range of pages
// that ends at the node's end, and MAMBA on the node alone if it had a state. The ticket remembers
// what it covered, so that releasing it undoes exactly that, also after splits (semantics 5,
// Locks).
#pragma once

#include <utility>

#include "core/events.h"
#include "core/ids.h"
#include "tree/node.h"

namespace lockstep {

struct LockCover {
  LockId id;
  Node* node = nullptr;
  PageRange swa;
  bool mamba = false;
};

// Takes covers back; the tree is one. Virtual so that ownership can be observed and broken on
// purpose.
class LockReleaser {
 public:
  virtual ~LockReleaser() = default;
  virtual void release(const LockCover& cover) = 0;
};

// An open lock. Move-only; ends with release() or with the ticket.
class LockTicket {
 public:
  LockTicket() = default;
  LockTicket(LockCover cover, LockReleaser& releaser) : cover_(cover), releaser_(&releaser) {}
  LockTicket(LockTicket&& other) noexcept
      : cover_(other.cover_), releaser_(std::exchange(other.releaser_, nullptr)) {}
  LockTicket& operator=(LockTicket&& other) noexcept {
    if (this != &other) {
      release();
      cover_ = other.cover_;
      releaser_ = std::exchange(other.releaser_, nullptr);
    }
    return *this;
  }
  ~LockTicket() { release(); }

  bool open() const { return releaser_ != nullptr; }
  // REQUIRES: open().
  Node& node() const { return *cover_.node; }
  const LockCover& cover() const { return cover_; }
  void release() {
    if (LockReleaser* releaser = std::exchange(releaser_, nullptr)) releaser->release(cover_);
  }

 private:
  LockCover cover_;
  LockReleaser* releaser_ = nullptr;
};

}  // namespace lockstep
