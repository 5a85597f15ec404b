// The small decoder that runs on the device (model.md). One class per arithmetic; the linker's
// executor and the oracle's replica call the same functions on different memory: pages there, one
// contiguous page here.
//
// A forward is: embed(), run_layer() for each layer ascending, head(). Nothing in it may depend on
// how many tokens, segments or requests share the forward.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/events.h"
#include "core/geometry.h"
#include "core/layout.h"
#include "core/result.h"
#include "device/accelerator.h"
#include "model/config.h"
#include "model/shard.h"
#include "model/spec.h"
#include "pool/group.h"

namespace lockstep::model {

enum class Attention { none, full, swa };

struct LayerShape {
  Attention attention = Attention::none;
  bool recurrent = false;  // has a part of the slot (an Inkling attention layer has both)
};

// Which components the layers of a model have, with its window and state chunk.
Geometry geometry_of(const ModelConfig& config);

// Where the rows of one component lie: row r starts at base + r * layout.row_bytes.
struct RowMemory {
  std::byte* base = nullptr;
  const RowLayout* layout = nullptr;
};

struct Memory {
  std::array<RowMemory, 3> components;  // by index(Component); base null where the model has none
  Tokens page;                          // tokens per FULL and SWA row
  const RowMemory& of(Component component) const { return components[index(component)]; }
};

// One request's tokens [start, start + tokens.size()) in a forward. Spans outlive the forward.
struct Segment {
  std::optional<std::string_view> extra_key;  // changes the embedding
  Tokens start;
  std::span<const TokenId> tokens;
  // Page tables from page 0; pages below an SWA window are not read and may hold the trap row.
  std::span<const Row> full;
  std::span<const Row> swa;
  Row q;  // the state after `start` tokens on entry, after start + tokens.size() on exit
  // Depths in (start, start + tokens.size()], ascending: the state is also written there.
  std::span<const SnapshotView> snapshots;
  // Models on a device only (make_model() with an accelerator), both device memory: where the
  // forward's tokens and tables go, and the output that the last token is taken from, if the host
  // does not know it.
  std::span<std::byte> uploaded = {};
  std::span<const std::byte> input = {};
};

struct Numbers;  // model/numbers.h

class Model {
 public:
  virtual ~Model() = default;

  std::string_view name() const { return name_; }
  const std::vector<LayerShape>& layers() const { return layers_; }
  // Page and track interval left at 1: the cache's configuration fills them in.
  const Geometry& geometry() const { return geometry_; }
  std::int64_t vocab() const { return vocab_; }
  // Names the arithmetic and the weights: equal fingerprints give equal rows for equal tokens.
  const std::string& fingerprint() const { return fingerprint_; }

  // The rows of one component: the declared buffers of its layers, ascending or descending.
  RowLayout layout(Component component, Tokens page, bool descending) const;
  Shard shard() const { return shard_; }
  // Where the bytes of a row of this shard lie in the row of the whole model, in order. One range
  // if this is the whole model.
  std::vector<ByteRange> ranges_in_whole(Component component, Tokens page, bool descending) const;
  // Whether that many ranks can share the heads; else each rank computes the whole model.
  virtual bool splits_into(std::size_t ranks) const { return ranks == 1; }
  const DeclaredState& declared_state() const { return declared_; }

  virtual Bytes activation_bytes() const = 0;  // scratch per token
  virtual Bytes output_bytes() const = 0;      // per token: fp32 logits, or the hidden word

  // Writes the activations of the segment's tokens: tokens.size() * activation_bytes().
  virtual void embed(const Segment& segment, std::span<std::byte> activations) const = 0;
  // Reads and writes rows of `layer` only, and the activations.
  virtual void run_layer(LayerId layer, const Segment& segment, const Memory& memory,
                         std::span<std::byte> activations) const = 0;
  // A layer of a shard: run_heads() on every rank, then, with what all of them left in `partial`
  // (tokens.size() * partial_bytes() each, in the order of the shards), combine_heads() on every
  // rank. Together they are run_layer() of the whole model, bit for bit. Only where splits_into()
  // more than one.
  virtual Bytes partial_bytes() const { return Bytes{0}; }
  virtual void run_heads(LayerId layer, const Segment& segment, const Memory& memory,
                         std::span<const std::byte> activations,
                         std::span<std::byte> partial) const;
  virtual void combine_heads(LayerId layer, const Segment& segment, const Memory& memory,
                             std::span<const std::span<const std::byte>> partials,
                             std::span<std::byte> activations) const;
  // tokens.size() * output_bytes().
  virtual void head(const Segment& segment, std::span<const std::byte> activations,
                    std::span<std::byte> outputs) const = 0;
  // Greedy, ties to the lowest id. `output` is one token's.
  virtual TokenId next_token(std::span<const std::byte> output) const = 0;
  // Sets a slot to the state of zero tokens.
  virtual void clear_slot(std::span<std::byte> slot) const = 0;
  // True if outputs are logits, so that KL means something; false: outputs are compared as words.
  virtual bool has_logits() const = 0;
  // Configuration and weights of a numeric model, for a second implementation; null for the others.
  virtual const Numbers* numbers() const { return nullptr; }

 protected:
  // Everything but the buffers of the declared state, which a subclass declares in ascending order
  // of the layers.
  Model(const ModelConfig& config, std::string fingerprint, Shard shard = {});
  void declare(DeclaredBuffer buffer) { declare(buffer, {buffer.bytes, {{{}, buffer.bytes}}}); }
  // The entry of a buffer (one token's, or the slot's) in the whole model: its size, and where the
  // shard's bytes lie in it.
  struct WholeEntry {
    Bytes bytes;
    std::vector<ByteRange> ranges;
  };
  void declare(DeclaredBuffer buffer, WholeEntry whole);

 private:
  // Calls visit(index of the buffer, how many entries of it a row has), in the order of a row.
  template <class Visit>
  void visit_buffers(Component component, Tokens page, bool descending, Visit visit) const;

  std::string name_;
  std::vector<LayerShape> layers_;
  Geometry geometry_;
  std::int64_t vocab_ = 0;
  std::string fingerprint_;
  Shard shard_;
  DeclaredState declared_;
  std::vector<WholeEntry> whole_;  // parallel to declared_.buffers
};

// A model with the weights of `weight_seed` or of a checkpoint, or one shard of it. REQUIRES: it
// splits into `shard.count`. `cache_page` takes part in the arithmetic of the
// fingerprint model only: the replica passes the page of the cache that it judges, whatever its own
// memory looks like. An error names the preset or the property and what was expected.
//
// With an accelerator, which outlives it, the model's forwards are kernels there, for one rank
// only: activations, partial sums, outputs, slots and Memory::components are device memory, the
// tokens and tables of a segment are uploaded by embed(), and every call launches into the compute
// stream and returns. next_token() reads host memory in either case.
Result<std::unique_ptr<Model>> make_model(const ModelSpec& spec, std::uint64_t weight_seed,
                                          Tokens cache_page, Shard shard = {},
                                          Accelerator* accelerator = nullptr);
// The presets that make_model() knows, sorted.
std::vector<std::string> preset_names();

}  // namespace lockstep::model
