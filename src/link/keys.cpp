#include "link/keys.h"

#include <bit>

namespace lockstep {
namespace {

static_assert(std::endian::native == std::endian::little &&
                  sizeof(TokenId) == sizeof(std::uint32_t),
              "token ids are hashed as they lie in memory, which must be u32le");

void append_u32le(std::string& bytes, std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) {
    bytes.push_back(static_cast<char>(static_cast<unsigned char>(value >> shift)));
  }
}

// u8 present, then, if present, u32le length and the bytes: missing and empty differ.
void append_field(std::string& bytes, std::optional<std::string_view> field) {
  bytes.push_back(field ? '\1' : '\0');
  if (!field) return;
  append_u32le(bytes, static_cast<std::uint32_t>(field->size()));
  bytes += *field;
}

}  // namespace

std::string KeyScheme::namespace_bytes(const NamespaceFields& fields) const {
  std::string bytes;
  append_field(bytes, "lockstep-1");
  append_field(bytes, fields.model_fingerprint);
  append_field(bytes, fields.layout_fingerprint);
  append_field(bytes, fields.extra_key);
  append_field(bytes, fields.cache_salt);
  return bytes;
}

PageHash KeyScheme::namespace_hash(const NamespaceFields& fields) const {
  const std::string bytes = namespace_bytes(fields);
  return sha_.update(std::as_bytes(std::span(bytes))).finish();
}

std::vector<PageHash> KeyScheme::page_hashes(const PageHash& previous,
                                             std::span<const TokenId> tokens) const {
  const std::size_t page = page_.index();
  std::vector<PageHash> hashes;
  hashes.reserve(tokens.size() / page);
  PageHash last = previous;
  for (std::size_t begin = 0; begin + page <= tokens.size(); begin += page) {
    last = sha_.update(last.bytes).update(std::as_bytes(tokens.subspan(begin, page))).finish();
    hashes.push_back(last);
  }
  return hashes;
}

std::string KeyScheme::object_key(const PageHash& hash, Component component) const {
  std::string key;
  key.reserve(96);
  key += hash.hex();
  key += '/';
  key += name(component);
  key += '/';
  key += std::to_string(rank_.value());
  key += "of";
  key += std::to_string(ranks_);
  return key;
}

}  // namespace lockstep
