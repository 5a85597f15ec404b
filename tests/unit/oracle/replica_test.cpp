// The replica against straight model calls on paged memory, whatever the chunks, the memo and the
// order of requests.
#include <algorithm>

#include "catch.h"
#include "oracle/replica.h"

namespace lockstep::oracle {

namespace {

constexpr Tokens kPage{4};
constexpr std::int64_t kPages = 6;

std::unique_ptr<model::Model> make(std::vector<std::string> layers) {
  model::ModelSpec spec;
  if (std::ranges::find(layers, "swa") != layers.end()) spec.window = Tokens{6};
  spec.layers = std::move(layers);
  return std::move(model::make_model(spec, 3, kPage)).value();
}

// One request, its chain, and everything that one straight call of the model leaves behind in pages
// of its own.
struct Straight {
  Straight(const model::Model& straight_model, ContentTable& contents, std::uint32_t first_token,
           std::int64_t shared)
      : model(straight_model) {
    for (std::int64_t i = 0; i < kPages * kPage.value() + 1; ++i) {
      tokens.push_back(TokenId{static_cast<std::uint32_t>(i < shared ? i : first_token + i)});
    }
    ContentId content = contents.root({model.fingerprint(), "layout", std::nullopt, std::nullopt});
    for (std::size_t page = 0; page < kPages; ++page) {
      content = contents.page_after(content, std::span(tokens).subspan(page * 4, 4));
      chain.push_back(content);
    }
    run();
  }

  void run() {
    model::Memory view;
    view.page = kPage;
    for (Component component : kComponents) {
      layouts[index(component)] = model.layout(component, kPage, false);
      memory[index(component)].resize(layouts[index(component)].row_bytes.index() * 16);
      view.components[index(component)] = {memory[index(component)].data(),
                                           &layouts[index(component)]};
    }
    // Rows in reverse order, so that nothing is contiguous.
    for (std::uint32_t row = 7; row >= 1; --row) table.push_back(Row{row});
    std::vector<SnapshotView> snapshots;
    if (model.geometry().has_mamba) {
      for (std::uint32_t page = 1; page <= kPages; ++page)
        snapshots.push_back({kPage * page, Row{page + 1}});
      model.clear_slot(row(Component::mamba, Row{1}));
    }
    model::Segment segment;
    segment.tokens = tokens;
    segment.full = segment.swa = table;
    segment.q = Row{1};
    segment.snapshots = snapshots;
    std::vector<std::byte> activations(tokens.size() * model.activation_bytes().index());
    outputs.resize(tokens.size() * model.output_bytes().index());
    model.embed(segment, activations);
    for (std::uint32_t layer = 0; layer < model.layers().size(); ++layer) {
      model.run_layer(LayerId{layer}, segment, view, activations);
    }
    model.head(segment, activations, outputs);
  }

  std::span<std::byte> row(Component component, Row row) {
    const std::size_t size = layouts[index(component)].row_bytes.index();
    return std::span(memory[index(component)]).subspan(row.index() * size, size);
  }
  Script script() const {
    return {std::nullopt, tokens, chain, Tokens{static_cast<std::int64_t>(tokens.size())}};
  }

  const model::Model& model;
  std::vector<TokenId> tokens;
  std::vector<ContentId> chain;
  std::array<RowLayout, 3> layouts;
  std::array<std::vector<std::byte>, 3> memory;
  std::vector<Row> table;
  std::vector<std::byte> outputs;
};

void require_equal(Replica& replica, RequestId id, Straight& straight) {
  const Tokens end{static_cast<std::int64_t>(straight.tokens.size())};
  REQUIRE(std::ranges::equal(replica.outputs(id, Tokens{0}, end), straight.outputs));
  for (std::int64_t page = 0; page < kPages; ++page) {
    const RowDigests* digests =
        replica.digests(RankId{0}, straight.chain[static_cast<std::size_t>(page)]);
    REQUIRE(digests != nullptr);
    for (Component component : {Component::full, Component::swa}) {
      if (straight.layouts[index(component)].row_bytes == Bytes{0}) continue;
      const auto row = straight.row(component, straight.table[static_cast<std::size_t>(page)]);
      REQUIRE(!replica.compare(RankId{0}, id, component, row, kPage * page, kPage * (page + 1)));
      REQUIRE(digests->of[index(component)] == row_digest(row));
    }
    if (!straight.model.geometry().has_mamba) continue;
    const auto state = straight.row(Component::mamba, Row{static_cast<std::uint32_t>(page + 2)});
    REQUIRE(digests->of[index(Component::mamba)] == row_digest(state));
  }
}

void advance_in_steps(Replica& replica, RequestId id, const Straight& straight, std::int64_t step) {
  const std::int64_t size = static_cast<std::int64_t>(straight.tokens.size());
  for (std::int64_t end = step; end < size; end += step)
    replica.advance(id, straight.script(), Tokens{end});
  replica.advance(id, straight.script(), Tokens{size});
}

constexpr Bytes kAmple{1 << 20};

}  // namespace

TEST_CASE("any chunking gives the rows, states and outputs of one straight call") {
  for (const auto& layers : std::vector<std::vector<std::string>>{
           {"swa", "full", "rec", "rec"}, {"full", "full"}, {"full", "swa"}, {"rec", "full"}}) {
    const auto model = make(layers);
    ContentTable contents;
    Straight straight(*model, contents, 100, 0);
    for (std::int64_t step : {1, 3, 4, 7, 100}) {
      INFO(layers.front() << " in steps of " << step);
      Replica replica(*model, {}, kPage, false, kAmple);
      advance_in_steps(replica, RequestId{0}, straight, step);
      require_equal(replica, RequestId{0}, straight);
    }
  }
}

TEST_CASE("a shared prefix is taken from the memo, and a forgotten one is computed again") {
  const auto model = make({"swa", "full", "rec", "rec"});
  for (const Bytes limit : {kAmple, Bytes{1}, Bytes{1500}}) {  // all pages, one page, a few
    ContentTable contents;
    Straight first(*model, contents, 100, 10);
    Straight second(*model, contents, 200, 10);
    REQUIRE(first.chain[1] == second.chain[1]);
    REQUIRE(first.chain[2] != second.chain[2]);
    Replica replica(*model, {}, kPage, false, limit);
    advance_in_steps(replica, RequestId{0}, first, 5);
    advance_in_steps(replica, RequestId{1}, second, 6);
    require_equal(replica, RequestId{0}, first);
    require_equal(replica, RequestId{1}, second);
    // Once more after its sequence was closed.
    replica.close(RequestId{0});
    advance_in_steps(replica, RequestId{2}, first, 9);
    require_equal(replica, RequestId{2}, first);
  }
}

TEST_CASE("a differing row is located by layer and token") {
  const auto model = make({"full", "full", "rec"});
  ContentTable contents;
  Straight straight(*model, contents, 100, 0);
  Replica replica(*model, {}, kPage, false, kAmple);
  advance_in_steps(replica, RequestId{0}, straight, 25);
  // A page row is four words of layer 0, then four of layer 1: word 6 is layer 1, third token.
  const auto row = straight.row(Component::full, straight.table[2]);
  row[6 * 8] ^= std::byte{1};
  const auto difference =
      replica.compare(RankId{0}, RequestId{0}, Component::full, row, Tokens{8}, Tokens{12});
  REQUIRE(difference);
  REQUIRE(difference->layer == LayerId{1});
  REQUIRE(difference->token == Tokens{10});
  REQUIRE(!replica.compare(RankId{0}, RequestId{0}, Component::full, row, Tokens{8}, Tokens{10}));
  REQUIRE(replica.find_difference(RankId{0}, Component::full, straight.chain[2], row)->layer ==
          LayerId{1});
}

TEST_CASE("an object order that descends reverses the layers of a row") {
  const auto model = make({"full", "full"});
  ContentTable contents;
  Straight straight(*model, contents, 100, 0);
  Replica replica(*model, {}, kPage, true, kAmple);
  advance_in_steps(replica, RequestId{0}, straight, 25);
  const auto row = straight.row(Component::full, straight.table[0]);
  std::vector<std::byte> reversed(row.begin() + 32, row.end());
  reversed.insert(reversed.end(), row.begin(), row.begin() + 32);
  REQUIRE(replica.digests(RankId{0}, straight.chain[0])->of[index(Component::full)] ==
          row_digest(reversed));
  REQUIRE(
      !replica.compare(RankId{0}, RequestId{0}, Component::full, reversed, Tokens{0}, Tokens{4}));
}

}  // namespace lockstep::oracle
