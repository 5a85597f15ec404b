#include "pool/group.h"

#include <functional>

#include "catch.h"
#include "device/stepped.h"
#include "event_recorder.h"
#include "fake_timers.h"

namespace lockstep {
namespace {

// A model of four layers (0 swa, 1 full, 2 and 3 recurrent), page 16, as a scenario would give it.
// KV of 8 bytes per token and layer; per recurrent layer 32 bytes temporal and 12 bytes conv.
struct Setup {
  DeclaredState state;
  std::vector<PoolSpec> pools;

  Setup() {
    state.buffers = {{Component::swa, LayerId{0}, Part::kv, Bytes{8}},
                     {Component::full, LayerId{1}, Part::kv, Bytes{8}},
                     {Component::mamba, LayerId{2}, Part::temporal, Bytes{32}},
                     {Component::mamba, LayerId{2}, Part::conv, Bytes{12}},
                     {Component::mamba, LayerId{3}, Part::temporal, Bytes{32}},
                     {Component::mamba, LayerId{3}, Part::conv, Bytes{12}}};
    state.attention_layers = {LayerId{0}, LayerId{1}};
    state.full_layers = {LayerId{1}};
    state.swa_layers = {LayerId{0}};
    state.geometry.has_swa = true;
    state.geometry.has_mamba = true;
    pools.push_back(paged(Component::full, LayerId{1}));
    pools.push_back(paged(Component::swa, LayerId{0}));
    pools.push_back({RowLayout{Component::mamba,
                               {{LayerId{2}, Part::temporal, Bytes{0}, Bytes{32}},
                                {LayerId{2}, Part::conv, Bytes{32}, Bytes{12}},
                                {LayerId{3}, Part::temporal, Bytes{44}, Bytes{32}},
                                {LayerId{3}, Part::conv, Bytes{76}, Bytes{12}}},
                               Bytes{88}},
                     Tokens{1}, Rows{3}});
  }

  static PoolSpec paged(Component component, LayerId layer) {
    return {RowLayout{component, {{layer, Part::kv, Bytes{0}, Bytes{128}}}, Bytes{128}}, Tokens{16},
            Rows{6}};
  }

  PoolSpec& full() { return pools[0]; }
  PoolSpec& swa() { return pools[1]; }
  PoolSpec& mamba() { return pools[2]; }
};

struct Refusal {
  std::string_view what;
  std::function<void(Setup&)> spoil;
  std::string_view pool;    // the error begins with it
  std::string_view reason;  // the error contains it
};

// Each spoilt setup is refused, with an error that names the pool and the reason.
void require_refused(const std::vector<Refusal>& refusals) {
  for (const Refusal& refusal : refusals) {
    Setup setup;
    refusal.spoil(setup);
    CAPTURE(refusal.what);
    const Result<void> checked = check_pools(setup.state, setup.pools);
    REQUIRE_FALSE(checked.ok());
    const std::string& message = checked.error().message;
    CAPTURE(message);
    REQUIRE(message.starts_with(refusal.pool));
    REQUIRE(message.find(refusal.reason) != std::string::npos);
  }
}

TEST_CASE("pools that hold the declared state are accepted") {
  const Setup setup;
  REQUIRE(check_pools(setup.state, setup.pools).ok());
}

TEST_CASE("a state chunk that divides the page or is a multiple of it is accepted") {
  for (std::int64_t chunk : {1, 8, 16, 64}) {
    Setup setup;
    setup.state.geometry.state_chunk = Tokens{chunk};
    CAPTURE(chunk);
    REQUIRE(check_pools(setup.state, setup.pools).ok());
  }
}

TEST_CASE("models with fewer components are accepted") {
  Setup full_only;
  full_only.state.buffers = {full_only.state.buffers[1]};
  full_only.state.attention_layers = {LayerId{1}};
  full_only.state.swa_layers = {};
  full_only.state.geometry.state_chunk = Tokens{24};  // means nothing without recurrent layers
  full_only.pools = {full_only.full()};
  REQUIRE(check_pools(full_only.state, full_only.pools).ok());

  Setup conv_only;
  conv_only.state.buffers = {{Component::mamba, LayerId{0}, Part::conv, Bytes{12}}};
  conv_only.state.attention_layers = conv_only.state.full_layers = conv_only.state.swa_layers = {};
  conv_only.pools = {
      {RowLayout{Component::mamba, {{LayerId{0}, Part::conv, Bytes{0}, Bytes{12}}}, Bytes{12}},
       Tokens{1}, Rows{1}}};
  REQUIRE(check_pools(conv_only.state, conv_only.pools).ok());
}

TEST_CASE("declared properties that a row copy cannot carry are refused") {
  require_refused(
      {{"scaled KV", [](Setup& s) { s.state.kv_scale = true; }, "full pool: ", "kv_scale"},
       {"scaled KV of a model without FULL layers",
        [](Setup& s) {
          s.state.kv_scale = true;
          s.pools.erase(s.pools.begin());
        },
        "swa pool: ", "kv_scale"},
       {"unified memory", [](Setup& s) { s.state.virtual_slots = true; },
        "full pool: ", "virtual_slots"},
       {"int8 checkpoints", [](Setup& s) { s.state.state_dtype = "int8"; },
        "mamba pool: ", "state_dtype: \"int8\""},
       {"per-slot state outside the transfer", [](Setup& s) { s.state.extra_slot_state = {"ple"}; },
        "mamba pool: ", "extra_slot_state: per-slot state outside the transfer (ple)"},
       {"declared as not contiguous", [](Setup& s) { s.state.contiguous_rows = false; },
        "full pool: ", "contiguous_rows"}});
}

TEST_CASE("pools of an impossible shape are refused") {
  require_refused(
      {{"a gap between parts",
        [](Setup& s) {
          s.mamba().layout.parts[1].offset = Bytes{36};
          s.mamba().layout.row_bytes = Bytes{92};
        },
        "mamba pool: ", "not contiguous: conv of layer 2"},
       {"overlapping parts", [](Setup& s) { s.mamba().layout.parts[1].offset = Bytes{28}; },
        "mamba pool: ", "not contiguous: conv of layer 2"},
       {"bytes after the last part", [](Setup& s) { s.swa().layout.row_bytes = Bytes{136}; },
        "swa pool: ", "not contiguous: its parts end at byte 128 of rows of 136 bytes"},
       {"page sizes that differ", [](Setup& s) { s.swa().page = Tokens{32}; },
        "swa pool: ", "page of 32 tokens differs from the full pool's 16"},
       {"a page of no tokens", [](Setup& s) { s.full().page = Tokens{0}; },
        "full pool: ", "page of 0 tokens"},
       {"a slot of several tokens", [](Setup& s) { s.mamba().page = Tokens{16}; },
        "mamba pool: ", "page of 16 tokens, expected 1"},
       {"zero rows", [](Setup& s) { s.mamba().capacity = Rows{0}; },
        "mamba pool: ", "zero-size: 0 rows"},
       {"a negative number of rows", [](Setup& s) { s.full().capacity = Rows{-1}; },
        "full pool: ", "zero-size: -1 rows"},
       {"rows of no bytes", [](Setup& s) { s.swa().layout = RowLayout{Component::swa, {}, {}}; },
        "swa pool: ", "zero-size: rows of 0 bytes"},
       {"duplicate pools", [](Setup& s) { s.pools.push_back(s.full()); },
        "full pool: ", "duplicate: registered 2 times"},
       {"no pool at all", [](Setup& s) { s.pools.clear(); }, "full pool: ", "missing"},
       {"neither temporal nor conv buffers",
        [](Setup& s) {
          s.mamba().layout =
              RowLayout{Component::mamba, {{LayerId{2}, Part::kv, Bytes{0}, Bytes{8}}}, Bytes{8}};
        },
        "mamba pool: ", "neither temporal nor conv"},
       {"state_chunk and page of which neither divides the other",
        [](Setup& s) { s.state.geometry.state_chunk = Tokens{24}; },
        "mamba pool: ", "state_chunk 24 and page 16: neither divides the other"},
       {"a state_chunk of no tokens", [](Setup& s) { s.state.geometry.state_chunk = Tokens{0}; },
        "mamba pool: ", "state_chunk of 0 tokens"}});
}

TEST_CASE("pools that do not hold what the model declares are refused") {
  require_refused(
      {{"layer sets that overlap", [](Setup& s) { s.state.swa_layers.push_back(LayerId{1}); },
        "swa pool: ", "layer sets overlap: layer 1"},
       {"an attention layer in no set",
        [](Setup& s) { s.state.attention_layers.push_back(LayerId{7}); },
        "full pool: ", "do not cover the attention layers: layer 7"},
       {"a set with a layer that is no attention layer",
        [](Setup& s) { s.state.swa_layers.push_back(LayerId{2}); },
        "swa pool: ", "layer 2 of its set is no attention layer"},
       {"a pool that lacks a layer of its set",
        [](Setup& s) {
          s.state.swa_layers = {};
          s.state.full_layers = {LayerId{0}, LayerId{1}};
        },
        "full pool: ", "does not hold layer 0"},
       {"a missing pool", [](Setup& s) { s.pools.erase(s.pools.begin() + 1); },
        "swa pool: ", "does not hold layer 0"},
       {"declared state without a buffer",
        [](Setup& s) {
          s.state.buffers.push_back({Component::mamba, LayerId{1}, Part::conv, Bytes{4}});
        },
        "mamba pool: ",
        "conv of layer 1: the model declares 4 bytes per row, the pool registers 0"},
       {"a buffer that the model does not declare", [](Setup& s) { s.state.buffers.pop_back(); },
        "mamba pool: ",
        "conv of layer 3: the model declares 0 bytes per row, the pool registers 12"},
       {"a KV buffer of another size", [](Setup& s) { s.state.buffers[1].bytes = Bytes{4}; },
        "full pool: ",
        "kv of layer 1: the model declares 64 bytes per row, the pool registers 128"},
       {"a declared component without a pool", [](Setup& s) { s.pools.pop_back(); }, "mamba pool: ",
        "temporal of layer 2: the model declares 32 bytes per row, the pool registers 0"}});
}

TEST_CASE("a group has one pool per registered component") {
  testing::FakeTimers timers;
  SteppedDevice device(timers, CostModel{});
  testing::EventRecorder events;
  Setup setup;
  setup.pools.erase(setup.pools.begin() + 1);
  PoolGroup group(device, events, RankId{0}, setup.pools);
  REQUIRE(group.has(Component::full));
  REQUIRE_FALSE(group.has(Component::swa));
  REQUIRE(group.pool(Component::full).capacity() == Rows{6});
  REQUIRE(group.pool(Component::mamba).capacity() == Rows{3});
  REQUIRE(group.pool(Component::mamba).layout().row_bytes == Bytes{88});
  REQUIRE_THROWS_AS(group.pool(Component::swa), ContractFailure);
}

}  // namespace
}  // namespace lockstep
