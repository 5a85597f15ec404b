// Just enough of two file formats to read a trace as it was published: xz streams and tar archives.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace lockstep::sim {

bool is_xz(std::string_view bytes);
// Decompresses concatenated xz streams. Refuses truncated and damaged data, and more than
// `max_bytes` of it.
Result<std::string> unpack_xz(std::string_view bytes, const std::string& source,
                              std::size_t max_bytes);

struct TarMember {
  std::string name;
  std::string_view content;  // into the archive's bytes
};
bool is_tar(std::string_view bytes);
// Regular files in archive order (ustar; GNU and pax headers are passed over). Refuses truncated
// and damaged archives.
Result<std::vector<TarMember>> list_tar(std::string_view bytes, const std::string& source);

}  // namespace lockstep::sim
