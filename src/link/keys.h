// How content gets its name: namespace hash, page hashes, object keys (semantics 1, byte for byte).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/component.h"
#include "core/hash.h"
#include "core/ids.h"

namespace lockstep {

// What a namespace is made of besides the version label.
struct NamespaceFields {
  std::string model_fingerprint;
  std::string layout_fingerprint;
  std::optional<std::string> extra_key;
  std::optional<std::string> cache_salt;
};

class KeyScheme {
 public:
  KeyScheme(Tokens page, RankId rank, std::uint32_t ranks)
      : page_(page), rank_(rank), ranks_(ranks) {}
  virtual ~KeyScheme() = default;

  // SHA-256 over "lockstep-1", model, layout, extra_key, cache_salt: each u8 present and, if
  // present, u32le length + bytes.
  PageHash namespace_hash(const NamespaceFields& fields) const;
  // Hashes of the whole pages of `tokens`, chained from `previous` (a namespace hash or the hash of
  // the page before).
  std::vector<PageHash> page_hashes(const PageHash& previous,
                                    std::span<const TokenId> tokens) const;
  // hex(page hash) "/" component "/" rank "of" ranks.
  std::string object_key(const PageHash& hash, Component component) const;

 protected:
  // The bytes that are hashed into a namespace.
  virtual std::string namespace_bytes(const NamespaceFields& fields) const;

 private:
  Tokens page_;
  RankId rank_;
  std::uint32_t ranks_;
  mutable Sha256 sha_;
};

}  // namespace lockstep
