// The engine: continuous batching over the caches of all ranks, one engine step at a time
// (semantics 2).
//
//   step: settle transfers -> take results -> commands -> MATCH, LOOKUP -> admit (LOAD .. COMMIT)
//   -> start loads -> forward
//
// With `ahead` = 1 one forward stays in flight: a step takes the results of the one before it, and
// plans tokens that the host does not know yet.
//
// Every rank gets the same calls; what ranks answer is combined here. The engine owns no rows and
// no device memory.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "core/cache_config.h"
#include "core/events.h"
#include "engine/executor.h"
#include "engine/forward.h"
#include "engine/request.h"
#include "link/cache.h"
#include "link/rank_vote.h"
#include "model/model.h"

namespace lockstep::engine {

// Guesses what a request generates next (speculative decoding).
class Drafter {
 public:
  virtual ~Drafter() = default;
  // Tokens behind the request's last one, perhaps none. Asked once before each of its decodes.
  virtual std::vector<TokenId> propose(const Request& request) = 0;
};

// One rank as the engine drives it; all outlive the engine.
struct RankUnit {
  Cache* cache = nullptr;
  Executor* executor = nullptr;
  Device* device = nullptr;
};

// On every rank.
struct EvictCommand {
  Component component = Component::full;
  Rows count;  // of the least recently used, or:
  RequestNamespace names;
  std::vector<TokenId> tokens;
  std::optional<Tokens> at;  // the unit of `tokens` that ends here
};

// The pool keeps only so many rows, on every rank; requests that no longer fit are refused.
struct ShrinkCommand {
  Component component = Component::full;
  Rows keep;
};

struct CancelCommand {
  RequestId id;
};
struct RetractCommand {
  RequestId id;
};
struct FlushCommand {};
using Command =
    std::variant<CancelCommand, RetractCommand, EvictCommand, FlushCommand, ShrinkCommand>;

using Milestones = std::map<RequestId, std::set<Point>>;

class Engine {
 public:
  // Without a drafter every decode computes one token.
  Engine(const CacheConfig& config, const Geometry& geometry, const model::Model& model,
         std::vector<RankUnit> ranks, std::unique_ptr<RankVote> vote,
         std::unique_ptr<Drafter> drafter, EventSink& sink);

  // Takes a request; one that does not fit the empty pools is refused (reported as an event).
  // `resumed` tokens of the prompt were generated before an engine restart. REQUIRES: the id is
  // new, prompt not empty, decode >= 1.
  void submit(RequestId id, Submission submission, bool resumed);
  // Done in the next step, in this order.
  void cancel(RequestId id);
  void retract(RequestId id);
  void evict(EvictCommand command);
  void flush();
  void shrink(ShrinkCommand command);
  // Done at the next border of two phases of a step: between MATCH and LOAD, two admissions, or
  // before the forward, too.
  void evict_between_phases(EvictCommand command);
  // Who has all its tokens and waits for its INSERT ends without it: the engine goes down.
  void end_finishing();
  // Holds the request when it reaches `point`, at once if it is there; it keeps its place, result
  // and locks.
  void hold(RequestId id, Point point);
  void release(RequestId id);

  // Whether a step would do something now. A step never starts while more than `ahead` forwards
  // are in flight.
  bool ready() const;
  void step();

  bool reached(RequestId id, Point point) const;
  // Requests that have not ended, in order of arrival.
  std::vector<const Request*> unfinished() const;
  // What the requests that have ended had reached; a new engine is told what an old one knew.
  const Milestones& ended() const { return ended_; }
  void remember(const Milestones& ended) { ended_.insert(ended.begin(), ended.end()); }
  // A request that starts again in a new engine had reached these points before, and is held at
  // `hold_at` when it comes there again.
  void remember(RequestId id, const std::set<Point>& reached, std::optional<Point> hold_at);
  // What was asked for and not done yet, for the engine that comes after this one.
  std::deque<Command> take_commands() { return std::exchange(commands_, {}); }
  void ask_again(std::deque<Command> commands);

 private:
  template <class Concrete>
  void ask(Concrete command);
  void settle_transfers();
  // Each settles the oldest load or offload if it is over on every rank, with the AND of the
  // outcomes.
  std::optional<FinishedLoad> settleable_load() const;
  bool settle_oldest_load();
  bool settle_oldest_offload();
  // `after_load`: the verdict on the load of a request that waits for it.
  void take_verdict(const FinishedLoad& load);
  // A sharer of a failed load: matched again on the device only, from its first token on.
  void start_again(Request& request);
  // Whether another forward may follow those in flight.
  bool may_launch() const;
  // Whether the oldest forward has been computed, and the verdict of every load that it waited for
  // is known.
  bool can_take_results() const;
  void drop_outdated(Forward& forward) const;
  // Takes the drafts of segment `i` that are what the model generates itself, and cuts off the
  // rest.
  void verify(Forward& forward, std::size_t i);
  void accept_token(Request& request, TokenId token);
  void note_landings();
  void take_results();
  void take_forward(Forward& forward);
  // `output` is that of the segment's last token.
  void take_segment(const PlannedSegment& segment, std::span<const std::byte> output);
  void try_finish(Request& request);
  void apply_commands();
  // Each does its command; false: not yet.
  bool apply(const CancelCommand& command);
  bool apply(const RetractCommand& command);
  bool apply(const EvictCommand& command);
  bool apply(const FlushCommand& command);
  bool apply(const ShrinkCommand& command);
  void border_of_phases();

  void match_waiting();
  void match(Request& request);
  void look_up(Request& request);

  void admit_waiting();
  // Who has waited for the bytes of its tail resumes there.
  void commit_loaded();
  bool admit(Request& request);
  // LOAD has taken its rows (restored), or there is no tail.
  void commit(Request& request, bool restored);
  void begin_load(Request& request);
  bool make_room(Request& request);
  bool fits(const Request& request) const;
  bool load(Request& request);
  bool secure_private_slot(Request& request);
  void give_up(Request& request, Tokens boundary, GiveUp reason);
  // Waiting requests give back the locks of their matches; true if there was one. They match again
  // in the next step.
  bool drop_waiting_locks(const Request* except);

  void launch_forward();
  void launch(const std::shared_ptr<Forward>& forward);
  void launch_layer(const std::shared_ptr<Forward>& forward, LayerId layer);
  void plan_decodes(Forward& forward);
  void plan_prefills(Forward& forward);
  void plan(Forward& forward, Request& request, Tokens count, std::span<const TokenId> drafts = {});
  // The guesses that the request's next decode computes, too: those for which every rank has pages
  // and slots.
  std::vector<TokenId> draft(Request& request);
  // The part of a forward in flight that generates the request's next token.
  DeviceInput input_of(const Request& request) const;
  // The snapshots of a forward of `request` up to `end`, per rank: the depths that every rank has a
  // slot for.
  std::vector<std::vector<SnapshotView>> track(Request& request, Tokens end, bool decode);
  bool can_move(const Request& request) const;
  // Somebody needs pages that eviction cannot give: waiting requests give back their locks, or the
  // youngest running one is retracted. REQUIRES: youngest_running() != null.
  void free_pages();
  // How many of the next `count` tokens have pages on every rank.
  Tokens reserve(Request& request, Tokens count);
  // Rows for one more step of `request` by retracting younger ones; false if it was retracted
  // itself.
  bool reserve_decode(Request& request);
  Request* youngest_running();
  void retract(Request& request, bool insert);

  void end(Request& request, EventBody event);
  void reach(Request& request, Point point);
  Request* find(RequestId id);
  const Request* find(RequestId id) const;
  bool somebody_is_held() const;
  std::size_t running() const;
  bool transfers_pending() const;
  // Why a request that ends with `length` tokens does not fit the empty pools; empty if it does.
  std::string refusal(Tokens length) const;
  void emit(RequestId request, EventBody body) { sink_.emit(RankId{0}, request, std::move(body)); }

  CacheConfig config_;
  Geometry geometry_;
  const model::Model& model_;
  std::vector<RankUnit> ranks_;
  std::unique_ptr<RankVote> vote_;
  std::unique_ptr<Drafter> drafter_;
  EventSink& sink_;

  std::map<RequestId, Request> requests_;  // that have not ended
  Milestones ended_;                       // of those that have
  std::deque<Command> commands_;
  std::deque<EvictCommand> evictions_;              // for the next border of two phases
  std::deque<std::shared_ptr<Forward>> in_flight_;  // oldest first
  bool nothing_planned_ = false;                    // the last step launched no forward
  std::uint64_t next_forward_ = 1;
  bool short_of_pages_ =
      false;  // somebody was retracted for lack of pages, and nobody has ended since
  // Nobody runs, and whoever would lacks what those hold who are held: all wait for a change.
  bool held_back_ = false;
  bool dirty_ = false;  // something has changed since the last step
};

}  // namespace lockstep::engine
