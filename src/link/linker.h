// The linker of one rank: the phases put together behind the cache interface. The system under
// test.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "link/cache.h"
#include "link/parts.h"
#include "link/quarantine.h"
#include "link/request_state.h"

namespace lockstep {

struct LinkerConfig {
  RankId rank;
  std::uint32_t ranks = 1;
  Geometry geometry;  // page and track interval filled in
  CacheConfig cache;
  std::string model_fingerprint;
  std::string layout_fingerprint;
};

class Linker : public Cache, private Inspector {
 public:
  // `device`, `pools`, `store`, `sink` and `gate` (may be null) outlive the linker.
  Linker(const LinkerConfig& config, const LinkParts& parts, Device& device, PoolGroup& pools,
         Store& store, EventSink& sink, AllocationGate* gate);
  ~Linker() override;

  void open(RequestId request, const RequestNamespace& names) override;
  void close(RequestId request) override;
  MatchResult match(RequestId request, std::span<const TokenId> tokens, bool query_store) override;
  std::vector<Tokens> lookup(RequestId request, std::span<const TokenId> tokens) override;
  void drop_match(RequestId request) override;
  bool fits(RequestId request, Tokens boundary) const override;
  bool load(RequestId request, Tokens boundary, LoadStage stage) override;
  void abort(RequestId request) override;
  bool secure_private_slot(RequestId request) override;
  void release_private_slot(RequestId request) override;
  LoadId begin_load(RequestId request, Tokens boundary) override;
  void commit_load(RequestId request, Tokens boundary) override;
  void commit_hit(RequestId request) override;
  void commit_empty(RequestId request) override;
  void start_loads() override;
  Tokens reserve(RequestId request, Tokens start, Tokens count) override;
  std::vector<SnapshotView> track(RequestId request, Tokens start, Tokens end,
                                  bool decode) override;
  void trim(RequestId request, Tokens end) override;
  void untrack(RequestId request, Tokens depth) override;
  Tokens draft(RequestId request, Tokens start, Tokens drafts) override;
  RequestTables begin_forward(RequestId request) override;
  void before_layer(RequestId request, LayerId layer,
                    const std::function<void(std::span<std::byte>)>& clear) override;
  void accepted(RequestId request, Tokens end, bool decode) override;
  void chunk_end(RequestId request, std::span<const TokenId> tokens, Tokens fed,
                 bool last_chunk) override;
  bool finish(RequestId request, std::span<const TokenId> tokens, Tokens fed) override;
  void retract(RequestId request, std::span<const TokenId> tokens, Tokens fed) override;
  void pump() override;
  std::optional<LoadId> oldest_load() const override;
  std::optional<FinishedLoad> oldest_finished_load() const override;
  std::vector<RequestId> settle_load(LoadId load, bool good) override;
  std::optional<FinishedOffload> oldest_finished_offload() const override;
  void settle_offload(OffloadId offload, bool good) override;
  void reset(RequestId request) override;
  bool transfers_pending() const override;
  std::size_t releasable_quarantine() const override;
  void release_quarantine(std::size_t entries) override;
  bool path_is_loading(RequestId request) const override;
  void evict(Component component, Rows count) override;
  void evict_at(Component component, const RequestNamespace& names, std::span<const TokenId> tokens,
                Tokens at) override;
  void shrink(Component component, Rows keep) override;
  void flush() override;
  const Inspector& inspector() const override { return *this; }

 protected:
  RequestState& state(RequestId request);
  const RequestState& state(RequestId request) const;
  // Everything that the request holds goes back.
  virtual void give_back(RequestState& request);
  // MAMBA slots that an admission of `request` at `boundary` takes.
  virtual Rows slots_wanted(const RequestState& request, Tokens boundary) const;
  // OFFLOAD of all that lies on the request's path.
  void offload(RequestState& request);
  const Rank& rank() const { return rank_; }

 private:
  PageHash namespace_of(const RequestNamespace& names) const;
  void name_pages(RequestState& request, std::span<const TokenId> tokens) const;
  // The node that ends at `boundary` on the request's path, or null.
  const Node* node_at(const RequestState& request, Tokens boundary) const;
  // Whether an INSERT of [0, depth) would run through nodes that are still being filled.
  bool insert_meets_load(RequestState& request, Tokens depth);
  // The checkpoints that an INSERT may donate now, ascending; without recurrent layers every page
  // multiple is one.
  std::optional<Checkpoint> newest_checkpoint(RequestState& request, Tokens fed);
  std::vector<Checkpoint> chunk_checkpoints(RequestState& request, Tokens fed);
  Pages grow(RequestState& request, Component component, Pages wanted);
  static void trim_table(std::vector<Row>& table, OwnedRows& own, Pages pages);
  std::vector<RequestId> sharers(const std::vector<const Node*>& scope) const;

  bool has(Component component) const override;
  Rows capacity(Component component) const override;
  std::vector<Row> free_rows(Component component) const override;
  std::vector<Row> withdrawn_rows(Component component) const override;
  Rows evictable_rows(Component component) const override;
  void for_each_node(const std::function<void(const NodeView&)>& visit) const override;
  void for_each_request(const std::function<void(const RequestRowsView&)>& visit) const override;
  void for_each_transfer(const std::function<void(const TransferRowsView&)>& visit) const override;
  std::size_t pending_loads() const override;
  std::size_t pending_offloads() const override;
  bool request_rows(RequestId request,
                    const std::function<void(const RequestRowsView&)>& visit) const override;
  bool node(NodeId id, const std::function<void(const NodeView&)>& visit) const override;
  std::span<const std::byte> row_bytes(Component component, Row row) const override;

  LinkerConfig config_;
  PoolGroup& pools_;
  std::unique_ptr<KeyScheme> keys_;
  std::unique_ptr<RadixTree> tree_;
  Rank rank_;
  std::unique_ptr<RowAllocator> allocator_;
  std::unique_ptr<TransferPlanner> planner_;
  std::unique_ptr<MatchPhase> match_;
  std::unique_ptr<LookupPhase> lookup_;
  std::unique_ptr<LoadPhase> load_;
  std::unique_ptr<InsertPhase> insert_;
  std::unique_ptr<LoadQueue> loads_;
  std::unique_ptr<RollBackPhase> roll_back_;
  Quarantine quarantine_;
  std::unique_ptr<CommitPhase> commit_;
  std::unique_ptr<CowPhase> cow_;
  std::unique_ptr<OffloadQueue> offloads_;
  std::unique_ptr<OffloadPhase> offload_;
  std::unique_ptr<CheckpointTracker> checkpoints_;
  std::unique_ptr<DraftColumns> drafts_;
  std::unique_ptr<WindowRelease> window_;
  std::map<RequestId, std::unique_ptr<RequestState>> requests_;
};

}  // namespace lockstep
