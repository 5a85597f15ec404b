// Who listens to what a rank's device does.
#pragma once

namespace lockstep::sim {

// `races`: the race detector (H1). `accesses`: the check that operations declare what they touch,
// which is slow. One of them, because each asks every operation for its accesses.
enum class Watch { nobody, races, accesses };

}  // namespace lockstep::sim
