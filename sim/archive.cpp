#include "sim/archive.h"

#include <lzma.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

namespace lockstep::sim {
namespace {

constexpr std::uint64_t kLzmaMemory = std::uint64_t{512} << 20;
constexpr std::size_t kTarBlock = 512;

std::string lzma_problem(lzma_ret status) {
  switch (status) {
    case LZMA_BUF_ERROR:
      return "the file ends too early";
    case LZMA_DATA_ERROR:
      return "damaged data";
    case LZMA_FORMAT_ERROR:
      return "something else";
    case LZMA_MEMLIMIT_ERROR:
      return "one that needs more than 512 MiB to unpack";
    default:
      return "liblzma's error " + std::to_string(static_cast<int>(status));
  }
}

// ---------------------------------------------------------------- tar header fields: offset and
// size

struct TarField {
  std::size_t offset;
  std::size_t size;
};
constexpr TarField kName{0, 100};
constexpr TarField kSize{124, 12};
constexpr TarField kChecksum{148, 8};
constexpr TarField kType{156, 1};
constexpr TarField kMagic{257, 5};
constexpr TarField kPrefix{345, 155};

std::string_view field_of(std::string_view header, TarField field) {
  return header.substr(field.offset, field.size);
}

std::string text_of(std::string_view field) {
  return std::string(field.substr(0, field.find('\0')));
}

std::optional<std::size_t> octal(std::string_view field) {
  std::size_t value = 0;
  bool any = false;
  for (char c : field) {
    if (c == ' ' && !any) continue;
    if (c == ' ' || c == '\0') break;
    if (c < '0' || c > '7') return std::nullopt;
    value = value * 8 + static_cast<std::size_t>(c - '0');
    any = true;
  }
  if (!any) return std::nullopt;
  return value;
}

// The sum of all bytes of the header, its own field taken as blanks.
bool checksum_holds(std::string_view header) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < header.size(); ++i) {
    const bool own = i >= kChecksum.offset && i < kChecksum.offset + kChecksum.size;
    sum += own ? std::size_t{' '} : static_cast<unsigned char>(header[i]);
  }
  return octal(field_of(header, kChecksum)) == sum;
}

std::string member_name(std::string_view header) {
  const std::string prefix = text_of(field_of(header, kPrefix));
  const std::string name = text_of(field_of(header, kName));
  return prefix.empty() ? name : prefix + "/" + name;
}

}  // namespace

bool is_xz(std::string_view bytes) {
  return bytes.starts_with(
      std::string_view("\xfd"
                       "7zXZ\0",
                       6));
}

Result<std::string> unpack_xz(std::string_view bytes, const std::string& source,
                              std::size_t max_bytes) {
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, kLzmaMemory, LZMA_CONCATENATED) != LZMA_OK) {
    return Error{source + ": no memory for unpacking xz"};
  }
  const std::unique_ptr<lzma_stream, void (*)(lzma_stream*)> end(&stream, lzma_end);
  stream.next_in = reinterpret_cast<const std::uint8_t*>(bytes.data());
  stream.avail_in = bytes.size();
  std::string unpacked;
  std::vector<std::uint8_t> buffer(std::size_t{1} << 16);
  while (true) {
    stream.next_out = buffer.data();
    stream.avail_out = buffer.size();
    const lzma_ret status = lzma_code(&stream, LZMA_FINISH);
    unpacked.append(reinterpret_cast<const char*>(buffer.data()), buffer.size() - stream.avail_out);
    if (unpacked.size() > max_bytes) {
      return Error{source + ": expected at most " + std::to_string(max_bytes) +
                   " bytes unpacked, found more"};
    }
    if (status == LZMA_STREAM_END) return unpacked;
    if (status != LZMA_OK) {
      return Error{source + ": expected a complete xz file, found " + lzma_problem(status) +
                   " after " + std::to_string(unpacked.size()) + " bytes unpacked"};
    }
  }
}

bool is_tar(std::string_view bytes) {
  return bytes.size() >= kTarBlock && field_of(bytes, kMagic) == "ustar";
}

Result<std::vector<TarMember>> list_tar(std::string_view bytes, const std::string& source) {
  std::vector<TarMember> members;
  std::size_t at = 0;
  while (true) {
    const std::string place = source + ": byte " + std::to_string(at) + " of the archive";
    if (bytes.size() - at < kTarBlock) {
      return Error{place + ": expected a tar header or the end mark, found the end of the file"};
    }
    const std::string_view header = bytes.substr(at, kTarBlock);
    at += kTarBlock;
    if (std::all_of(header.begin(), header.end(), [](char c) { return c == '\0'; })) return members;
    const std::optional<std::size_t> size = octal(field_of(header, kSize));
    if (field_of(header, kMagic) != "ustar" || !checksum_holds(header) || !size) {
      return Error{place + ": expected a tar header, found damaged data"};
    }
    if (bytes.size() - at < *size) {
      return Error{place + ": expected " + std::to_string(*size) + " bytes of " +
                   member_name(header) + ", found " + std::to_string(bytes.size() - at)};
    }
    const char type = field_of(header, kType).front();
    if (type == '0' || type == '\0')
      members.push_back({member_name(header), bytes.substr(at, *size)});
    const std::size_t padded = (*size + kTarBlock - 1) / kTarBlock * kTarBlock;
    at += std::min(padded, bytes.size() - at);
  }
}

}  // namespace lockstep::sim
