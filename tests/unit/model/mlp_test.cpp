// Routing and experts against arithmetic by hand.
#include "model/mlp.h"

#include <cmath>

#include "catch.h"

namespace lockstep::model {
namespace {

// Logits whose sigmoids are 0.5, 0.75, 0.9, 0.2, 0.8.
std::vector<float> logits() {
  std::vector<float> values;
  for (const double p : {0.5, 0.75, 0.9, 0.2, 0.8}) {
    values.push_back(static_cast<float>(std::log(p / (1 - p))));
  }
  return values;
}

TEST_CASE("experts: scored ones share the sum with the shared experts") {
  const ExpertShape shape{4, 2, 1, 8, 8, RouterScore::sigmoid, SharedWeight::scored};
  ExpertWeights weights;
  weights.scale = 3;
  const Routing routing = route(shape, weights, logits().data());
  REQUIRE(routing.chosen.size() == 2);
  REQUIRE((routing.chosen[0].expert == 1 && routing.chosen[1].expert == 2));
  REQUIRE(routing.chosen[0].weight == Approx(3 * 0.75 / (0.75 + 0.9 + 0.8)));
  REQUIRE(routing.chosen[1].weight == Approx(3 * 0.9 / (0.75 + 0.9 + 0.8)));
  REQUIRE(routing.shared[0] == Approx(3 * 0.8 / (0.75 + 0.9 + 0.8)));
}

TEST_CASE("experts: the bias decides who is chosen and not with what weight") {
  const ExpertShape shape{4, 2, 1, 8, 8, RouterScore::sigmoid, SharedWeight::one};
  ExpertWeights weights;
  weights.choice_bias = {0, 0, 0, 0.65f};  // 0.2 + 0.65 is before 0.75, behind 0.9
  const Routing routing = route(shape, weights, logits().data());
  REQUIRE((routing.chosen[0].expert == 2 && routing.chosen[1].expert == 3));
  REQUIRE(routing.chosen[0].weight == Approx(0.9 / 1.1));
  REQUIRE(routing.chosen[1].weight == Approx(0.2 / 1.1));
  REQUIRE(routing.shared == std::vector<float>{1.0f});
}

TEST_CASE("experts: softmax shares, a gate of the shared expert, ties to the lower expert") {
  const ExpertShape shape{4, 2, 1, 8, 8, RouterScore::softmax, SharedWeight::gated};
  const float values[] = {1.0f, 3.0f, 1.0f, 0.0f, static_cast<float>(std::log(3.0))};
  const Routing routing = route(shape, {}, values);
  REQUIRE((routing.chosen[0].expert == 0 && routing.chosen[1].expert == 1));
  REQUIRE(routing.chosen[0].weight == Approx(1 / (1 + std::exp(2.0))));
  REQUIRE(routing.chosen[1].weight == Approx(std::exp(2.0) / (1 + std::exp(2.0))));
  REQUIRE(routing.shared[0] == Approx(0.75));
}

TEST_CASE("experts: their outputs are weighed and summed; squared relu") {
  DecoderShape shape;
  shape.hidden = 2;
  shape.activation = Activation::squared_relu;
  shape.experts = {2, 1, 1, 1, 1, RouterScore::sigmoid, SharedWeight::one};
  LayerWeights layer;
  layer.experts.router = {1, 0, 0, 1};  // the logits are the inputs
  // up(x) = x0 - x1; down spreads it.
  layer.experts.routed = {{{}, {1, -1}, {1, 10}}, {{}, {-1, 1}, {2, 20}}};
  layer.experts.shared = {{{}, {1, 1}, {100, 0}}};
  FeedForward mlp(shape, layer, Mlp::experts);
  const float rows[] = {3, 1, 1, 4};
  float output[4];
  mlp.run(rows, 2, output);
  // Row 0: expert 0, (3 - 1)^2 = 4; shared (3 + 1)^2 = 16. Row 1: expert 1, (4 - 1)^2 = 9; 25.
  REQUIRE((output[0] == 4 + 1600 && output[1] == 40));
  REQUIRE((output[2] == 18 + 2500 && output[3] == 180));
}

}  // namespace
}  // namespace lockstep::model
