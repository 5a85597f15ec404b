// What the external store holds, per rank and component, by the content that an object was put
// from.
//
// Fed by offload and store events; object keys are read here, not made by the linker's code. It
// survives a restart of the engine, as the store does.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/events.h"
#include "core/inspect.h"
#include "oracle/content.h"
#include "oracle/rank_ledger.h"
#include "oracle/specification.h"

namespace lockstep::oracle {

struct ObjectName {
  PageHash hash;
  Component component = Component::full;
  RankId rank;
  std::uint32_t ranks = 0;
};
// Reads hex(page hash) "/" component "/" rank "of" ranks; none if it is anything else.
std::optional<ObjectName> parse_object_key(std::string_view key);

struct StoredObject {
  ContentId content = kNoContent;  // what it was put from
  std::uint64_t digest = 0;        // of the row that it was put from
};

class StoreLedger {
 public:
  StoreLedger(const ContentTable& contents, std::size_t ranks);

  // `ledger` is that of the event's rank and has applied the event; `inspectors` are all ranks'.
  void apply(const Event& event, const RankLedger& ledger,
             std::span<const Inspector* const> inspectors);

  // The engine was restarted: puts on their way count as failed.
  void abandon_puts();

  // The object under this hash, or null.
  const StoredObject* object(RankId rank, Component component, const PageHash& hash) const;
  const Holdings& holdings(RankId rank) const { return *ranks_[rank.index()]; }
  // Counts what changed in the stores of all ranks.
  std::uint64_t version() const { return version_; }
  // What the store has just answered for: what it holds, but for false answers. Good during the
  // LOOKUP that was answered; false if all answers were true.
  bool answered_falsely(RankId rank) const { return !ranks_[rank.index()]->answers.claims.empty(); }
  const Holdings& answers(RankId rank) const { return ranks_[rank.index()]->answers; }
  // A store accepted a complete object of `content` at some time, even if it has lost it since.
  bool was_accepted(RankId rank, Component component, ContentId content) const;
  // The store had it or refused it, and does not have it now: losing it is nobody's fault.
  bool is_excused(RankId rank, Component component, ContentId content) const;

 private:
  struct ContentState {
    bool present = false;
    bool accepted = false;
    bool lost = false;
  };
  struct PutSource {
    ContentId content = kNoContent;
    Row row;
  };
  struct Shelf {
    std::unordered_map<PageHash, StoredObject> objects;  // looked up only, never iterated
    std::unordered_map<PageHash, PutSource> sources;     // of puts on their way; the same
    std::vector<ContentState> states;                    // by content
    ContentState& state(ContentId content);
  };
  struct Answers : Holdings {
    explicit Answers(const Holdings& holdings) : truth(holdings) {}
    const Holdings& truth;
    std::map<std::pair<Component, ContentId>, bool> claims;  // false ones: what was said
    bool has(Component component, ContentId content) const override;
  };
  struct Rank : Holdings {
    std::array<Shelf, 3> shelves;
    std::map<OffloadId, TransferRecord> offloads;
    Answers answers{*this};
    bool has(Component component, ContentId content) const override;
  };

  void queue(RankId rank, const OffloadQueued& queued, const RankLedger& ledger);
  void finish(RankId rank, const OffloadFinished& finished);
  static void mark_failed(Rank& rank, const TransferRecord& offload);
  void put(const StorePut& put, std::span<const Inspector* const> inspectors);
  void remove(std::string_view key);
  void answer(const FalseAnswer& answer);
  void forget_answers(const Event& event);
  void clear();
  Shelf* shelf(const ObjectName& name);
  const ContentState* find_state(RankId rank, Component component, ContentId content) const;

  const ContentTable& contents_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::uint64_t version_ = 0;
};

}  // namespace lockstep::oracle
