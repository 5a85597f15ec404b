// The radix tree over page hashes: one root per namespace, rows of three components, locks,
// eviction (semantics 5).
//
// The tree owns the rows that hang on its nodes and gives them back to the pools when they leave.
// It reports every change to the event sink. It never touches the bytes of a row.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/events.h"
#include "core/geometry.h"
#include "core/inspect.h"
#include "pool/group.h"
#include "tree/eviction.h"
#include "tree/lock.h"
#include "tree/node.h"
#include "tree/split.h"

namespace lockstep {

// The nodes that [0, matched) runs through. `last` is the deepest one touched; `matched` may end
// inside it.
struct TreePath {
  Node* root = nullptr;
  std::vector<Node*> nodes;  // below the root, in order
  Pages matched;
};

// What comes in with an INSERT of [0, hashes.size()) pages.
struct IncomingRows {
  std::span<const PageHash> hashes;  // of all pages from page 0
  Pages full_from;                   // pages below are the tree's already
  std::span<const Row> full;         // pages [full_from, end)
  Pages swa_from;
  std::span<const Row> swa;  // pages [swa_from, end)
  Row state = kTrapRow;
};

// Rows that left the tree although somebody may still read or write them: the receiver quarantines
// them.
struct TornRows {
  Component component = Component::full;
  std::vector<Row> rows;
};

struct InsertOutcome {
  Node* node = nullptr;  // the canonical node: ends at the inserted end
  std::vector<PageRange> full_adopted;
  std::vector<PageRange> full_duplicate;
  std::vector<PageRange> swa_adopted;
  std::vector<PageRange> swa_duplicate;
  std::vector<Row> full_adopted_rows;
  std::vector<Row> swa_adopted_rows;
  std::vector<Row> full_duplicate_rows;
  std::vector<Row> swa_duplicate_rows;
  bool state_adopted = false;
  bool mamba_exist = false;
};

class RadixTree : public LockReleaser {
 public:
  RadixTree(const Geometry& geometry, PoolGroup& pools, EventSink& sink, RankId rank,
            std::unique_ptr<EvictionPolicy> eviction, std::unique_ptr<NodeSplitter> splitter);
  ~RadixTree() override;

  const Geometry& geometry() const { return geometry_; }

  // The path of `hashes` below the namespace's root, as far as the tree has FULL rows. Changes
  // nothing.
  TreePath walk(const PageHash& namespace_hash, std::span<const PageHash> hashes);
  // The node that ends at `at` on `path`; splits one if `at` lies inside it. REQUIRES: 0 < at <=
  // path.matched.
  Node& node_at(const TreePath& path, Pages at);
  // The node of `path` that ends at `at`, or null if `at` lies inside one.
  Node* node_ending_at(const TreePath& path, Pages at) const;

  // INSERT (semantics 5): walks per page, keeps what is there, adopts what is missing. `load` marks
  // adopted rows as being filled. Duplicates are reported, not freed: the caller passes them to
  // free_duplicates() once it has reported the insertion. A duplicate state is left to the caller.
  InsertOutcome insert(const PageHash& namespace_hash, const IncomingRows& incoming,
                       std::optional<LoadId> load);
  void free_duplicates(const InsertOutcome& outcome);

  // A ticket on `node`: FULL to the root, SWA on `swa`, MAMBA if the node has a state.
  LockTicket lock(RequestId request, Node& node, LockHolder holder, PageRange swa);
  // The SWA window below the node's end.
  PageRange window_of(const Node& node) const;
  void release(const LockCover& cover) override;

  // Marks a use at a new logical time: FULL on the path to the root, SWA in the window below, MAMBA
  // on the node.
  void touch_hit(Node& node);

  // Frees rows of `component` until `shortfall` rows are free or nothing more may go. Returns the
  // rows freed.
  Rows evict(Component component, Rows shortfall, EvictionCause cause);
  // Takes `node`'s rows of one component (FULL: the whole node, which must be a leaf). The same
  // rules as evict().
  Rows evict_from(Node& node, Component component, EvictionCause cause);
  // Rows that eviction could free now. Walks the tree; evictable_states() is the cheap special
  // case.
  Rows evictable(Component component) const;
  Rows evictable_states() const {
    return Rows{static_cast<std::int64_t>(eviction_->candidates(Component::mamba))};
  }
  bool may_evict(const Node& node, Component component) const {
    return eviction_->may_evict(node, component);
  }
  // Takes every node out; tickets that are still open keep their nodes, not the rows.
  void clear();

  // Roll-back (semantics 7). The top node of what a failed load created, `first_page` being the
  // first FULL page that it adopted; null if that has been detached already.
  Node* created_by_load(Node& endpoint, Pages first_page) const;
  // Takes `top` and everything below it out of the tree at once, locked or not; tickets keep the
  // nodes, not the rows.
  void detach(Node& top, std::vector<TornRows>& torn);
  // Takes the SWA row of one page, or the state, from a node that stays; states whose window lost
  // the row go too.
  void tear_swa(Node& node, Pages page, std::vector<TornRows>& torn);
  void tear_state(Node& node, std::vector<TornRows>& torn);

  // The load no longer fills rows on the path of `endpoint`.
  void loaded(Node& endpoint, LoadId load);

  void for_each_node(const std::function<void(Node&)>& visit) const;  // parents first, roots too
  Node* find(NodeId id) const;

 private:
  Node& root(const PageHash& namespace_hash);
  Node& add_child(Node& parent, const IncomingRows& incoming, Pages begin, Pages end,
                  std::optional<LoadId> load, InsertOutcome& outcome);
  Node& split_at(Node& node, Pages count);
  void merge(Node& node, const IncomingRows& incoming, std::optional<LoadId> load,
             InsertOutcome& outcome);
  void place_state(Node& node, const IncomingRows& incoming, std::optional<LoadId> load,
                   InsertOutcome& outcome);
  void drop_state(Node& node, EvictionCause cause);
  void drop_swa(Node& node, EvictionCause cause);
  // States below `node` whose window held one of the lost pages.
  void drop_stranded_states(Node& node, const std::vector<PageRange>& lost);
  void remove_leaf(Node& node, EvictionCause cause);
  void take_out(Node& node, EvictionCause cause);
  std::vector<Node*> stranded_below(Node& node, const std::vector<PageRange>& lost) const;
  void tear_node(Node& node, std::vector<TornRows>& torn);
  void report_torn(const Node& node, Component component, PageRange pages, std::vector<Row> rows,
                   std::vector<TornRows>& torn);
  void drop_unlocked_detached();
  void clear_below(Node& node);
  // A node left without children and without a state goes, and so on upwards.
  void prune(Node* node);
  void report_evicted(const Node& node, Component component, PageRange pages,
                      std::span<const Row> rows, EvictionCause cause);
  std::uint64_t tick() { return eviction_->stamp(++clock_); }
  void emit(EventBody body) { sink_.emit(rank_, kNoRequest, std::move(body)); }

  Geometry geometry_;
  PoolGroup& pools_;
  EventSink& sink_;
  RankId rank_;
  std::unique_ptr<EvictionPolicy> eviction_;
  std::unique_ptr<NodeSplitter> splitter_;
  std::map<PageHash, std::unique_ptr<Node>> roots_;
  std::map<NodeId, Node*> by_id_;
  std::vector<std::unique_ptr<Node>> detached_;  // tops of subtrees that left while locked
  std::uint64_t clock_ = 0;
  std::uint64_t next_node_ = 1;
  std::uint64_t next_lock_ = 1;
};

}  // namespace lockstep
