#include "store/store.h"

#include <array>

namespace lockstep {

std::string_view name(StoreStatus status) {
  constexpr std::array<std::string_view, 6> names{"ok",          "missing", "short_read",
                                                  "lease_ended", "no_room", "failed"};
  return names[static_cast<std::size_t>(status)];
}

}  // namespace lockstep
