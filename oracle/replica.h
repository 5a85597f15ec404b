// The replica: the same model on private contiguous memory, without pages, cache or linker
// (overview.md). What it computes is what every row, state and output of the system under test must
// equal, bit for bit.
//
// Teacher-forced: it is given the tokens that the run produced. Each request has one sequence; its
// KV memory is one giant page, and one slot holds its running state:
//
//   kv     | token 0 | token 1 | ... | token capacity-1 |     per component, layer by layer
//   slots  | running state | state at page ends of the chunk in hand ... |
//
// Finished pages are memoised by content (bounded memory), so that shared prefixes are computed
// once; their digests are kept for good, so that a row can be judged long after its bytes have left
// the memo.
//
// What it does not show: an error in the model's arithmetic itself, which both sides share (the
// fp64 reference and the independent goldens are there for that).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/component.h"
#include "core/ids.h"
#include "core/layout.h"
#include "model/model.h"
#include "oracle/content.h"
#include "oracle/page_memo.h"

namespace lockstep::oracle {

// The tokens of one request, as far as they are known.
struct Script {
  std::optional<std::string_view> extra_key;
  std::span<const TokenId> tokens;
  std::span<const ContentId> chain;  // of all whole pages of `tokens`
  Tokens capacity;                   // the most tokens that the request can come to have
};

// Digests of the rows that hold one content: its last page in FULL and SWA, its state.
struct RowDigests {
  std::array<std::uint64_t, 3> of{};
  bool known = false;
};

// Where a row differs first.
struct RowDifference {
  LayerId layer;
  std::optional<Tokens> token;  // none in a state
};

// How a digest of a row is made.
std::uint64_t row_digest(std::span<const std::byte> row);

class Replica {
 public:
  // `page` and `descending` are the cache's: they decide how rows are laid out. `shards`: where
  // ranks share the model's heads, each rank's part, else empty. The replica computes the whole
  // model all the same, and cuts out of its rows what a rank must hold. All outlive the replica.
  Replica(const model::Model& model, std::span<const model::Model* const> shards, Tokens page,
          bool descending, Bytes memo_limit);
  ~Replica();

  // Computes the request's sequence up to `end` tokens, or further where pages are memoised.
  // REQUIRES: end <= script.tokens.size(); the tokens below are those of earlier calls, until
  // close().
  void advance(RequestId request, const Script& script, Tokens end);
  // Forgets the request's sequence; what was memoised stays.
  void close(RequestId request);

  // Outputs of positions [begin, end). REQUIRES: advance() to `end` came before.
  std::span<const std::byte> outputs(RequestId request, Tokens begin, Tokens end) const;
  // Compares tokens [begin, end) of a FULL or SWA row of `rank`. REQUIRES: they lie in one page;
  // advance() to `end` came before.
  std::optional<RowDifference> compare(RankId rank, RequestId request, Component component,
                                       std::span<const std::byte> row, Tokens begin,
                                       Tokens end) const;
  // Compares a slot with the state after `depth` tokens. None if equal, or if that state is not at
  // hand: it is at the end of the sequence and at page ends. REQUIRES: advance() to `depth` came
  // before.
  std::optional<RowDifference> compare_state(RankId rank, RequestId request, const Script& script,
                                             std::span<const std::byte> slot, Tokens depth) const;
  // Where `row`, said to hold `content`, differs; for reports. None if equal, or if the bytes have
  // been forgotten.
  std::optional<RowDifference> find_difference(RankId rank, Component component, ContentId content,
                                               std::span<const std::byte> row) const;
  // Of the rank's rows.
  const RowLayout& layout(RankId rank, Component component) const {
    return rows_of(rank).layouts[index(component)];
  }
  // Null while nobody has advanced over `content`.
  const RowDigests* digests(RankId rank, ContentId content) const;
  // The state of zero tokens.
  std::uint64_t empty_state_digest(RankId rank) const;

 private:
  // How one part of a device row of the whole model maps to the giant page of a sequence.
  struct PartMap {
    LayerId layer;
    std::size_t row_offset;
    std::size_t entry_bytes;  // per token
    std::size_t
        token_offset;  // bytes of one token in the parts before this one, in the giant page's order
  };
  // What one rank holds of each component, and what has been said of it.
  struct RankRows {
    std::array<RowLayout, 3> layouts;
    // Of the whole model's row; empty where that is the rank's.
    std::array<std::vector<ByteRange>, 3> cuts;
    std::vector<RowDigests> digests;  // by content
  };
  struct Sequence;

  std::vector<PartMap> map_parts(Component component) const;
  Sequence& open(RequestId request, const Script& script);
  bool take_from_memo(Sequence& sequence, const Script& script);
  Tokens next_stop(const Sequence& sequence, const Script& script, Tokens end) const;
  void compute(Sequence& sequence, const Script& script, Tokens end);
  void run_model(Sequence& sequence, const Script& script, Tokens end);
  void record_page(Sequence& sequence, const Script& script, Pages page, Row state);
  template <class Visit>
  void visit_runs(Sequence& sequence, Pages page, Visit visit) const;
  std::size_t record_offset(Component component) const;
  // All ranks hold the same where each computes the whole model.
  const RankRows& rows_of(RankId rank) const;
  // The rank's row out of the whole model's; valid until the next call.
  std::span<const std::byte> cut(const RankRows& rows, Component component,
                                 std::span<const std::byte> whole) const;
  // `whole` is the whole model's row.
  std::optional<RowDifference> first_difference(const RankRows& rows, Component component,
                                                std::span<const std::byte> whole,
                                                std::span<const std::byte> actual) const;
  std::optional<RowDifference> compare_whole(const Sequence& sequence, Component component,
                                             std::span<const std::byte> row, Tokens begin,
                                             Tokens end) const;
  std::optional<RowDifference> compare_cut(const RankRows& rows, const Sequence& sequence,
                                           Component component, std::span<const std::byte> row,
                                           Tokens begin, Tokens end) const;

  const model::Model& model_;
  Tokens page_;
  std::array<RowLayout, 3> layouts_;  // rows of the whole model
  std::vector<RankRows> ranks_;       // one, or one per shard
  std::array<std::vector<PartMap>, 3> parts_;
  std::size_t record_bytes_;
  PageMemo memo_;
  std::map<RequestId, std::unique_ptr<Sequence>> sequences_;
  std::vector<std::byte> activations_;
  mutable std::vector<std::byte> whole_row_;  // scratch of compare_cut()
  mutable std::vector<std::byte> cut_;        // what cut() returned last
};

}  // namespace lockstep::oracle
