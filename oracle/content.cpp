#include "oracle/content.h"

#include <bit>

#include "core/check.h"

namespace lockstep::oracle {

namespace {

// u8 present and, if present, u32le length + bytes.
void append_field(std::string& bytes, std::optional<std::string_view> field) {
  bytes.push_back(field ? '\1' : '\0');
  if (!field) return;
  for (unsigned shift = 0; shift < 32; shift += 8) {
    bytes.push_back(static_cast<char>((field->size() >> shift) & 0xffu));
  }
  bytes.append(*field);
}

// Tokens are hashed as little-endian u32, which is how this machine stores them.
static_assert(std::endian::native == std::endian::little && sizeof(TokenId) == 4);

}  // namespace

ContentId ContentTable::root(const NamespaceName& name) {
  std::string bytes;
  append_field(bytes, "lockstep-1");
  append_field(bytes, name.model_fingerprint);
  append_field(bytes, name.layout_fingerprint);
  append_field(bytes, name.extra_key);
  append_field(bytes, name.cache_salt);
  return intern(sha_.update(std::as_bytes(std::span(bytes))).finish(), kNoContent, Pages{0});
}

ContentId ContentTable::page_after(ContentId previous, std::span<const TokenId> tokens) {
  sha_.update(hash(previous).bytes).update(std::as_bytes(tokens));
  return intern(sha_.finish(), previous, pages(previous) + Pages{1});
}

ContentId ContentTable::prefix(ContentId content, Pages pages) const {
  CHECK("content.prefix", pages <= this->pages(content));
  while (this->pages(content) > pages) content = parent(content);
  return content;
}

std::optional<ContentId> ContentTable::find(const PageHash& hash) const {
  const auto found = by_hash_.find(hash);
  if (found == by_hash_.end()) return std::nullopt;
  return found->second;
}

ContentId ContentTable::intern(const PageHash& hash, ContentId parent, Pages pages) {
  const auto [entry, is_new] =
      by_hash_.try_emplace(hash, ContentId{static_cast<std::uint32_t>(entries_.size())});
  if (is_new) entries_.push_back({hash, parent, pages});
  return entry->second;
}

}  // namespace lockstep::oracle
