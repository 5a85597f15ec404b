#include "oracle/judge.h"

#include <algorithm>
#include <deque>
#include <set>

#include "oracle/boundary_checks.h"
#include "oracle/conservation_checks.h"
#include "oracle/data_checks.h"
#include "oracle/liveness_checks.h"
#include "oracle/output_checks.h"
#include "oracle/rank_checks.h"
#include "oracle/reuse_checks.h"
#include "oracle/store_checks.h"

namespace lockstep::oracle {

namespace {

// What the replica may keep of computed pages. Beyond it, shared prefixes are computed again.
constexpr Bytes kReplicaMemo{512ll << 20};
// Pools up to this size are audited in full at every COMMIT, larger ones every so many events.
constexpr Rows kSmallPool{256};
constexpr std::uint64_t kEventsBetweenAudits = 1000;

std::deque<RankLedger> make_ledgers(const JudgeConfig& config, const ContentTable& contents,
                                    const RequestBook& requests) {
  std::deque<RankLedger> ledgers;
  for (const Inspector* inspector : config.ranks)
    ledgers.emplace_back(contents, requests, *inspector);
  return ledgers;
}

// A request's end or retraction is reported once, and means every rank.
bool is_for_all_ranks(const EventBody& body) {
  return std::holds_alternative<RequestFinished>(body) ||
         std::holds_alternative<RequestCancelled>(body) ||
         std::holds_alternative<RequestRetracted>(body) ||
         std::holds_alternative<RequestRefused>(body);
}

std::vector<std::unique_ptr<Checker>> make_checkers(const Scene& scene) {
  std::vector<std::unique_ptr<Checker>> checkers;
  checkers.push_back(std::make_unique<BoundaryChecks>(scene));
  checkers.push_back(std::make_unique<ConservationChecks>(scene));
  checkers.push_back(std::make_unique<StoreChecks>(scene));
  checkers.push_back(std::make_unique<ReuseChecks>(scene));
  checkers.push_back(std::make_unique<DataChecks>(scene));
  checkers.push_back(std::make_unique<OutputChecks>(scene));
  checkers.push_back(std::make_unique<LivenessChecks>(scene));
  checkers.push_back(std::make_unique<RankChecks>(scene));
  return checkers;
}

}  // namespace

// What belongs to one engine; a restart begins another.
struct EngineView {
  EngineView(JudgeConfig engine_config, const ContentTable& contents, const RequestBook& requests,
             const StoreLedger& store, Findings& findings, Verdict& verdict)
      : config(std::move(engine_config)),
        specification(config.geometry),
        ledgers(make_ledgers(config, contents, requests)),
        replica(*config.model, config.shards, config.geometry.page,
                config.cache.object_order == ObjectOrder::descending, kReplicaMemo),
        scene{config,        contents, requests, ledgers,  store,
              specification, matches,  replica,  findings, verdict},
        checkers(make_checkers(scene)) {}
  EngineView(const EngineView&) = delete;
  EngineView& operator=(const EngineView&) = delete;

  bool has_small_pools() const {
    return std::ranges::all_of(config.ranks, [](const Inspector* inspector) {
      return std::ranges::all_of(kComponents, [&](Component component) {
        return !inspector->has(component) || inspector->capacity(component) <= kSmallPool;
      });
    });
  }
  bool has_load_of(RequestId request) const {
    return std::ranges::any_of(ledgers, [&](const RankLedger& ledger) {
      return std::ranges::any_of(ledger.loads(),
                                 [&](const auto& load) { return load.second.request == request; });
    });
  }

  JudgeConfig config;
  Specification specification;
  std::deque<RankLedger> ledgers;
  MatchBook matches;
  Replica replica;
  Scene scene;
  std::vector<std::unique_ptr<Checker>> checkers;
};

struct Judge::Impl {
  explicit Impl(JudgeConfig config)
      : stop_at_first(config.stop_at_first),
        findings(verdict),
        requests(contents, config.geometry, config.model->fingerprint(), config.layout_fingerprint),
        store(contents, config.ranks.size()) {
    start_engine(std::move(config));
  }

  void start_engine(JudgeConfig config) {
    engine.emplace(std::move(config), contents, requests, store, findings, verdict);
    audits_at_commit = engine->has_small_pools();
    events_since_audit = 0;
  }
  void follow(const Event& event);
  void audit_when_due(const Event& event);
  void audit(RankId rank, bool quiescent);
  void audit_all(bool quiescent);
  void forget_ended();

  bool stop_at_first;
  Verdict verdict;
  Findings findings;
  ContentTable contents;
  RequestBook requests;
  StoreLedger store;
  std::optional<EngineView> engine;
  bool audits_at_commit = false;
  std::uint64_t events_since_audit = 0;
  std::set<RequestId> ended;  // requests whose tokens can go once nothing of them is in flight
};

void Judge::Impl::follow(const Event& event) {
  findings.move_to(event);
  for (const auto& checker : engine->checkers) checker->before(event);
  requests.apply(event);
  RankLedger& ledger = engine->ledgers[event.rank.index()];
  for (RankLedger& each : engine->ledgers) {
    if (&each == &ledger || is_for_all_ranks(event.body)) each.apply(event);
  }
  store.apply(event, ledger, engine->config.ranks);
  engine->matches.apply(event, requests, engine->ledgers, store, engine->specification);
  for (const auto& checker : engine->checkers) checker->after(event);
  const RequestRecord* request = requests.find(event.request);
  if (request != nullptr && has_ended(request->phase)) ended.insert(event.request);
  if (std::holds_alternative<StepBegun>(event.body)) forget_ended();
  audit_when_due(event);
}

void Judge::Impl::audit_when_due(const Event& event) {
  ++events_since_audit;
  if (audits_at_commit) {
    if (std::holds_alternative<Committed>(event.body)) audit(event.rank, false);
  } else if (events_since_audit >= kEventsBetweenAudits &&
             std::holds_alternative<StepBegun>(event.body)) {
    audit_all(false);
  }
}

void Judge::Impl::audit(RankId rank, bool quiescent) {
  events_since_audit = 0;
  for (const auto& checker : engine->checkers) checker->audit(rank, quiescent);
}

void Judge::Impl::audit_all(bool quiescent) {
  for (std::uint32_t rank = 0; rank < engine->ledgers.size(); ++rank)
    audit(RankId{rank}, quiescent);
}

void Judge::Impl::forget_ended() {
  std::erase_if(ended, [&](RequestId request) {
    if (engine->has_load_of(request)) return false;
    engine->replica.close(request);
    requests.retire(request);
    return true;
  });
}

Judge::Judge(JudgeConfig config) : impl_(std::make_unique<Impl>(std::move(config))) {}
Judge::~Judge() = default;

void Judge::on_event(const Event& event) {
  if (!full()) impl_->follow(event);
}

void Judge::reconfigure(JudgeConfig config) {
  CHECK("judge.ranks", config.ranks.size() == impl_->engine->ledgers.size());
  impl_->store.abandon_puts();
  impl_->requests.reconfigure(config.geometry, config.model->fingerprint(),
                              config.layout_fingerprint);
  impl_->start_engine(std::move(config));
}

void Judge::audit(bool quiescent) {
  impl_->audit_all(quiescent);
}

void Judge::end_of_run() {
  for (const auto& checker : impl_->engine->checkers) checker->end_of_run();
}

void Judge::report(Violation violation) {
  impl_->findings.add(std::move(violation));
}

bool Judge::full() const {
  return impl_->stop_at_first ? !impl_->verdict.violations.empty() : impl_->findings.full();
}

const Verdict& Judge::verdict() {
  return impl_->verdict;
}

}  // namespace lockstep::oracle
