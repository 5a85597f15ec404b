// What watches a run besides the oracle: the digest of everything that happened, and the figures of
// its result.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "core/events.h"
#include "core/hash.h"
#include "core/inspect.h"
#include "sim/result.h"

namespace lockstep::sim {

// Folds every field of every event, and the bytes of every row that was restored or copied
// (simulation.md, Determinism).
class DigestObserver : public Observer, private FieldVisitor {
 public:
  // `inspector(rank)` shows that rank's rows.
  explicit DigestObserver(std::function<const Inspector&(RankId)> inspector)
      : inspector_(std::move(inspector)) {}

  void on_event(const Event& event) override;
  std::uint64_t value() const { return digest_.value(); }

 private:
  void number(std::string_view field, std::int64_t value) override;
  void text(std::string_view field, std::string_view value) override;
  void numbers(std::string_view field, std::span<const std::int64_t> values) override;
  void bytes(std::string_view field, std::span<const std::byte> value) override;
  void fold_rows(const Event& event);

  std::function<const Inspector&(RankId)> inspector_;
  RunDigest digest_;
  struct LoadedRows {
    Component component = Component::full;
    std::vector<Row> rows;
  };
  std::map<std::pair<RankId, LoadId>, std::vector<LoadedRows>> loading_;
};

// Collects the counters and the requests' fields of a result, of rank 0 where ranks agree.
class ResultCollector : public Observer {
 public:
  void on_event(const Event& event) override;
  // Fills counters and requests; names come from result.request_names.
  void write(RunResult& result) const;

 private:
  struct Admission {
    Tokens boundary;
    Tokens device_hit;
    bool accepted = false;
  };
  struct Figures {
    RequestResult result;
    Admission admission;
    Nanoseconds submitted;
    std::optional<Nanoseconds> committed;
    std::optional<Nanoseconds> first_layer;  // of its own load
    std::optional<Nanoseconds> launched;
    std::optional<Nanoseconds> first_token;
  };
  void on_rank_zero(const Event& event);
  void on_forward(const Event& event, std::span<const SegmentView> segments);
  void on_load(const Event& event, const LoadQueued& load);
  void on_insert(const Event& event, const Inserted& inserted);

  // The digest of the output behind a request's last accepted segment, and where it is.
  struct LastOutput {
    Tokens position;
    std::uint64_t digest = 0;
  };
  std::map<RequestId, LastOutput> last_output_;
  std::map<std::pair<RequestId, Tokens>, std::uint64_t> taken_;  // the last time, by position
  std::map<RequestId, Figures> requests_;
  std::map<LoadId, RequestId> loads_;
  std::map<std::string, std::int64_t> counters_;
};

}  // namespace lockstep::sim
