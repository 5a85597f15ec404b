// A small cache played by hand, for tests of the judge: it owns rows with real bytes, keeps a tree
// of one path per prompt, and reports what a correct linker would report. Tests change one event or
// one thing that it shows, and ask what the judge says.
//
//   page 4, window 3 (one page), grid 4; `fingerprint` with its default layers, or a preset
//
// With several ranks all do the same and show the same rows; tampering sees the events of each.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/inspect.h"
#include "model/model.h"
#include "oracle/content.h"
#include "oracle/judge.h"

namespace lockstep::oracle::test {

inline constexpr Tokens kPage{4};

struct StoryNode {
  NodeId parent;
  bool is_root = false;
  Pages begin;
  std::vector<PageHash> hashes;
  std::vector<Row> full;
  std::vector<Row> swa;
  Row state = kTrapRow;
  std::uint32_t full_locks = 0;
  std::vector<std::uint32_t> swa_locks;
  std::uint32_t state_locks = 0;
  bool full_stored = false;
  bool state_stored = false;
  bool offload_pending = false;
  std::size_t children = 0;
};

struct StoryRequest {
  std::vector<TokenId> tokens;
  std::vector<ContentId> chain;
  Tokens prompt;
  std::vector<Row> full;
  std::vector<Row> swa;
  Pages own_from;
  Row q = kTrapRow;
  CommitId commit;
  std::vector<SnapshotView> tracked;
  Row pending_source = kTrapRow;
  NodeId node;
  std::optional<LockId> lock;
};

class Story : public Inspector {
 public:
  // Called with each event before the judge sees it; false drops it.
  using Tamper = std::function<bool(Event&, Story&)>;

  explicit Story(Tamper tamper = {}, std::string preset = "fingerprint", std::uint32_t ranks = 1,
                 std::optional<std::vector<std::string>> layers = {});

  // ---- the scenes of a run; `play` is all of them
  void submit(RequestId id, std::vector<TokenId> prompt, Tokens decode);
  void match(RequestId id, Tokens hit, std::vector<Tokens> restorable, Tokens boundary);
  void commit_empty(RequestId id);
  void commit_hit(RequestId id, NodeId node);
  void restore(RequestId id, Tokens boundary);
  // The same when the tree has all of it already: every row is a duplicate, and T too.
  void restore_again(RequestId id, Tokens boundary);
  void forward(RequestId id, Tokens end);
  void insert(RequestId id, Tokens end, InsertCause cause = InsertCause::chunk_end);
  void offload(RequestId id);
  void finish(RequestId id);
  void flush();
  // One request is computed, cached, stored and flushed; the next one with the same prompt restores
  // 8 tokens.
  void play();
  // Two requests are matched before either loads: the second finds what the first one restores.
  void play_twice();
  void end();

  // ---- for tampering
  void emit(RequestId id, EventBody body);
  void emit_untampered(RequestId id, EventBody body);
  void emit_on(std::uint32_t rank, RequestId id, EventBody body);
  void step() { ++step_, emit(kNoRequest, StepBegun{}); }
  std::span<std::byte> bytes(Component component, Row row);
  StoryRequest& request(RequestId id) { return requests_.at(id); }
  std::map<NodeId, StoryNode>& nodes() { return nodes_; }
  std::vector<Row>& free_list(Component component) { return free_[index(component)]; }
  Row allocate(RequestId id, Component component, Purpose purpose);
  void release(Component component, std::vector<Row> rows);
  LockId lock(RequestId id, LockHolder holder, NodeId node);
  void unlock(LockId lock);
  void evict(NodeId node, EvictionCause cause);
  ContentTable& contents() { return contents_; }
  // The key of the object on `rank`.
  std::string key(const PageHash& hash, Component component, std::uint32_t rank = 0) const;
  std::array<std::vector<Row>, 3> withdrawn;
  Rows shown_evictable_error;  // added to what it says can be evicted
  const model::Model& model() const { return *model_; }

  Judge& judge() { return *judge_; }
  std::set<std::string> found() const;
  std::string report() const;

  // ---- what it shows
  bool has(Component) const override { return true; }
  Rows capacity(Component) const override { return Rows{8}; }
  std::vector<Row> free_rows(Component component) const override { return free_[index(component)]; }
  std::vector<Row> withdrawn_rows(Component component) const override {
    return withdrawn[index(component)];
  }
  Rows evictable_rows(Component component) const override;
  void for_each_node(const std::function<void(const NodeView&)>& visit) const override;
  void for_each_request(const std::function<void(const RequestRowsView&)>& visit) const override;
  void for_each_transfer(const std::function<void(const TransferRowsView&)>& visit) const override;
  std::size_t pending_loads() const override { return 0; }
  std::size_t pending_offloads() const override { return 0; }
  bool request_rows(RequestId id,
                    const std::function<void(const RequestRowsView&)>& visit) const override;
  bool node(NodeId id, const std::function<void(const NodeView&)>& visit) const override;
  std::span<const std::byte> row_bytes(Component component, Row row) const override;

 private:
  struct Ticket {
    NodeId node;
    PageRange swa;
    bool mamba = false;
  };
  NodeView view(NodeId id, const StoryNode& node) const;
  RequestRowsView view(RequestId id, const StoryRequest& request) const;
  CommitId next_commit(RequestId id) { return request(id).commit = CommitId{next_commit_++}; }
  void store_first_prompt();
  void copy_to_private_slot(RequestId id, Row source);
  NodeId add_node(const StoryRequest& request, Pages begin, Pages end);
  void count_lock(const Ticket& ticket, int change);
  void run_model(const StoryRequest& request, Tokens start, std::span<const TokenId> tokens,
                 std::span<const SnapshotView> snapshots, std::vector<std::byte>& outputs);
  void emit_put(const PageHash& hash, Component component);
  TokenId next_token(std::span<const std::byte> outputs) const;

  Tamper tamper_;
  std::uint32_t ranks_;
  std::unique_ptr<model::Model> model_;
  ContentTable contents_;
  std::array<RowLayout, 3> layouts_;
  std::array<std::vector<std::byte>, 3> memory_;
  std::array<std::vector<Row>, 3> free_;
  std::map<NodeId, StoryNode> nodes_;
  std::map<RequestId, StoryRequest> requests_;
  std::map<LockId, Ticket> tickets_;
  std::map<std::string, std::vector<std::byte>> objects_;
  std::uint64_t next_node_ = 2;
  std::uint64_t next_lock_ = 1;
  std::uint64_t next_transfer_ = 1;
  std::uint64_t next_commit_ = 1;
  std::uint64_t step_ = 0;
  std::unique_ptr<Judge> judge_;
};

// Tokens first, first + 1, ...
std::vector<TokenId> tokens(std::uint32_t first, std::size_t count);

}  // namespace lockstep::oracle::test
