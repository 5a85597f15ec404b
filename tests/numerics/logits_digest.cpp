// Prints a digest of the logits, states and pages of the numeric presets over fixed tokens.
#include <cstdio>

#include "core/hash.h"
#include "model_sandbox.h"

int main() {
  using namespace lockstep;
  RunDigest digest;
  for (const char* preset : {"inkling-nano", "inkling-pico", "mamba2-nano", "gdn-nano", "kda-nano",
                             "lfm2-nano", "hybrid-nano"}) {
    model::ModelSpec spec;
    spec.preset = preset;
    spec.window = Tokens{40};
    const auto model = model::must_make(spec);
    model::Sandbox run(*model, Tokens{16}, Tokens{304}, 5);
    digest.fold(run.feed_split(model::random_tokens(*model, 300, 28), {77, 1, 1, 130}));
    digest.fold(run.state());
    digest.fold(run.pages(Component::full));
    digest.fold(run.pages(Component::swa));
  }
  std::printf("%016llx\n", static_cast<unsigned long long>(digest.value()));
}
