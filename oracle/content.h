// The oracle's own names for content (semantics 1), written from the rules and not from the
// linker's code.
//
// A content is a prefix that ends at a page border, in one namespace: "these tokens, for this
// model, layout, adapter and tenant". Each distinct one gets a small dense id, so that everything
// else in the oracle is an array over contents:
//
//   root (0 pages) <- page 1 <- page 2 <- ...      parent() goes left; hash() is the SHA-256 that a
//   correct key holds
//
// Two contents are equal exactly if their page hashes are: the oracle relies on SHA-256 as the
// system under test does. Lengths are in pages; the table only grows and owns everything in it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/hash.h"
#include "core/ids.h"

namespace lockstep::oracle {

using ContentId = Id<struct ContentTag>;
inline constexpr ContentId kNoContent{0xffffffffu};

// What tells one namespace from another besides the version label.
struct NamespaceName {
  std::string_view model_fingerprint;
  std::string_view layout_fingerprint;
  std::optional<std::string_view> extra_key;
  std::optional<std::string_view> cache_salt;
};

class ContentTable {
 public:
  // The empty prefix of a namespace.
  ContentId root(const NamespaceName& name);
  // `previous` followed by one page. REQUIRES: `tokens` is one page.
  ContentId page_after(ContentId previous, std::span<const TokenId> tokens);

  const PageHash& hash(ContentId content) const { return entries_[content.index()].hash; }
  ContentId parent(ContentId content) const { return entries_[content.index()].parent; }
  // How many pages the prefix has.
  Pages pages(ContentId content) const { return entries_[content.index()].pages; }
  // The first `pages` pages of `content`. REQUIRES: pages <= pages(content).
  ContentId prefix(ContentId content, Pages pages) const;
  std::optional<ContentId> find(const PageHash& hash) const;
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    PageHash hash;
    ContentId parent;
    Pages pages;
  };
  ContentId intern(const PageHash& hash, ContentId parent, Pages pages);

  std::vector<Entry> entries_;
  std::unordered_map<PageHash, ContentId> by_hash_;  // looked up only, never iterated
  Sha256 sha_;
};

}  // namespace lockstep::oracle
