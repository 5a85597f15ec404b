// The recurrent mixers in fp64, token by token: a second implementation of model/recurrent.h, from
// the equations there.
#pragma once

#include <vector>

#include "model/config.h"
#include "model/weights.h"

namespace lockstep::oracle {

using Array = std::vector<double>;

// The weights of one layer's recurrent mixer in fp64.
struct ReferenceRecurrent {
  ReferenceRecurrent(model::Mixer mixer, const model::DecoderShape& shape,
                     const model::RecurrentWeights& weights);

  model::Mixer mixer;
  model::DecoderShape shape;
  Array in, conv, conv_bias, a_log, dt_bias, skip, decay, gate, norm, out;
};

// What later tokens need of earlier ones.
struct RecurrentHistory {
  Array conv_inputs;  // [token][channel], of all tokens
  Array state;        // after the last token; empty before the first
};

// The mixer's output for the next token, whose normed input is given.
Array recur(const ReferenceRecurrent& layer, RecurrentHistory& history, const Array& input);

// One token of one value head of a delta rule, with state [value][key]: what the rows of the
// decayed state lack of the value is learned, times beta; the output is read with the query /
// sqrt(key dim).
struct DeltaInputs {
  Array query, key, value, decay;  // the decay of each key element
  double beta = 0;
};
Array delta_head(const DeltaInputs& inputs, double* state);

// The pieces that both parts of the reference use.
Array widen(const std::vector<float>& values);
// The row vector x times a matrix [x.size()][outputs].
Array times(const Array& x, const Array& matrix);
// x / sqrt(mean(x^2) + eps) * weight, for each group of weight.size() values.
Array normed(Array x, const Array& weight, double eps);
double sigmoid(double x);

}  // namespace lockstep::oracle
