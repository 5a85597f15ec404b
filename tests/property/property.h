// RapidCheck properties inside Catch2 cases, with either version of Catch2.
#pragma once

#include <functional>
#include <string>

namespace lockstep::testing {

// Draws `cases` cases; one that fails is shrunken and fails the Catch2 case. They come from a fixed
// seed, so that a change is judged by what the change before was. The message of a failure holds
// the seed and the counterexample; RC_PARAMS="seed=7 max_success=5000" (RapidCheck's own variable)
// draws others.
void require_property(const std::string& name, int cases, const std::function<void()>& property);

}  // namespace lockstep::testing
