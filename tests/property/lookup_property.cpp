// LOOKUP against the brute-force specification of semantics 9, R1: for any geometry, any holes in
// what the store answers for, any device hit and any length.
#include <set>

#include <rapidcheck.h>

#include "answering_store.h"
#include "catch.h"
#include "device/stepped.h"
#include "event_recorder.h"
#include "fake_timers.h"
#include "link/lookup.h"
#include "oracle/specification.h"
#include "property.h"

namespace lockstep {
namespace {

// Page p of the sequence (from 1) has content p.
struct Held {
  std::array<std::set<std::uint32_t>, 3> pages;
};

class HeldContents : public oracle::Holdings {
 public:
  explicit HeldContents(const Held& held) : held_(held) {}
  bool has(Component component, oracle::ContentId content) const override {
    return held_.pages[index(component)].contains(content.value());
  }

 private:
  const Held& held_;
};

struct Case {
  Geometry geometry;
  std::uint32_t pages = 0;
  Tokens hit;
  Tokens length;
  Held held;
};

// Nearly everything is there, so that windows are often whole and holes decide.
std::set<std::uint32_t> draw_pages(std::uint32_t pages, int percent) {
  std::set<std::uint32_t> there;
  for (std::uint32_t page = 1; page <= pages; ++page) {
    if (*rc::gen::inRange(0, 100) < percent) there.insert(page);
  }
  return there;
}

Case draw_case() {
  Case drawn;
  Geometry& geometry = drawn.geometry;
  geometry.page = Tokens{*rc::gen::inRange<std::int64_t>(1, 6)};
  geometry.has_swa = *rc::gen::arbitrary<bool>();
  geometry.has_mamba = *rc::gen::arbitrary<bool>();
  if (geometry.has_swa) geometry.window = Tokens{*rc::gen::inRange<std::int64_t>(1, 20)};
  drawn.pages = *rc::gen::inRange(1u, 14u);
  const std::int64_t page = geometry.page.value();
  drawn.length = Tokens{page * drawn.pages + *rc::gen::inRange<std::int64_t>(0, page)};
  const Pages limit = geometry.pages(drawn.length - Tokens{1});
  drawn.hit = geometry.tokens(Pages{*rc::gen::inRange<std::int64_t>(0, limit.value() + 1)});
  drawn.held.pages = {draw_pages(drawn.pages, 95), draw_pages(drawn.pages, 80),
                      draw_pages(drawn.pages, 50)};
  return drawn;
}

std::vector<PoolSpec> pools_of(const Geometry& geometry) {
  std::vector<PoolSpec> specs;
  for (Component component : kComponents) {
    if (component == Component::swa && !geometry.has_swa) continue;
    if (component == Component::mamba && !geometry.has_mamba) continue;
    const Part part = component == Component::mamba ? Part::temporal : Part::kv;
    specs.push_back({{component, {{LayerId{0}, part, Bytes{0}, Bytes{8}}}, Bytes{8}},
                     component == Component::mamba ? Tokens{1} : geometry.page,
                     Rows{1}});
  }
  return specs;
}

std::vector<Tokens> by_the_linker(const Case& drawn) {
  testing::FakeTimers timers;
  testing::EventRecorder events;
  SteppedDevice device(timers, CostModel{});
  PoolGroup pools(device, events, RankId{0}, pools_of(drawn.geometry));
  RadixTree tree(drawn.geometry, pools, events, RankId{0}, std::make_unique<EvictionPolicy>(),
                 std::make_unique<NodeSplitter>());
  const KeyScheme keys(drawn.geometry.page, RankId{0}, 1);
  RequestState request;
  request.namespace_hash = keys.namespace_hash({"m", "l", {}, {}});
  request.device_hit = drawn.hit;
  const std::vector<TokenId> tokens(drawn.length.index(), TokenId{7});
  request.hashes = keys.page_hashes(request.namespace_hash, tokens);
  std::set<ObjectKey> there;
  for (Component component : kComponents) {
    for (std::uint32_t page : drawn.held.pages[index(component)]) {
      there.insert(keys.object_key(request.hashes[page - 1], component));
    }
  }
  testing::AnsweringStore store(std::move(there));
  const CacheConfig config;
  const Rank rank{RankId{0}, drawn.geometry, config, device, pools, tree, store, keys, events};
  LookupPhase(rank).run(request, tokens);
  return request.restorable;
}

std::vector<Tokens> by_the_rules(const Case& drawn) {
  std::vector<oracle::ContentId> chain;
  for (std::uint32_t page = 1; page <= drawn.pages; ++page) chain.emplace_back(page);
  std::vector<Tokens> lengths;
  oracle::Specification(drawn.geometry)
      .restorable(HeldContents(drawn.held), chain, drawn.hit, drawn.length, lengths);
  return lengths;
}

std::string text(const std::vector<Tokens>& lengths) {
  std::string all;
  for (Tokens length : lengths) all += " " + std::to_string(length.value());
  return all;
}

}  // namespace

TEST_CASE("lookup = specification") {
  testing::require_property("lookup = specification", 2000, [] {
    const Case drawn = draw_case();
    const std::vector<Tokens> expected = by_the_rules(drawn);
    RC_CLASSIFY(!expected.empty(), "something is restorable");
    const std::vector<Tokens> found = by_the_linker(drawn);
    RC_LOG() << "page " << drawn.geometry.page.value() << " window "
             << drawn.geometry.window.value() << " swa " << drawn.geometry.has_swa << " mamba "
             << drawn.geometry.has_mamba << " hit " << drawn.hit.value() << " length "
             << drawn.length.value() << ": expected" << text(expected) << ", found" << text(found)
             << "\n";
    RC_ASSERT(text(found) == text(expected));
  });
}

}  // namespace lockstep
