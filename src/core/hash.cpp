#include "core/hash.h"

#define XXH_INLINE_ALL
#include <openssl/evp.h>
#include <xxhash.h>

#include "core/check.h"

namespace lockstep {

std::string PageHash::hex() const {
  constexpr char digits[] = "0123456789abcdef";
  std::string text(bytes.size() * 2, '0');
  char* digit = text.data();
  for (std::byte byte : bytes) {
    *digit++ = digits[static_cast<unsigned>(byte) >> 4];
    *digit++ = digits[static_cast<unsigned>(byte) & 15u];
  }
  return text;
}

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  CHECK("sha256.context", state_->context != nullptr);
  CHECK("sha256.init", EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() {
  EVP_MD_CTX_free(state_->context);
}

Sha256& Sha256::update(std::span<const std::byte> data) {
  CHECK("sha256.update", EVP_DigestUpdate(state_->context, data.data(), data.size()) == 1);
  return *this;
}

PageHash Sha256::finish() {
  PageHash hash;
  unsigned length = 0;
  auto* out = reinterpret_cast<unsigned char*>(hash.bytes.data());
  CHECK("sha256.final",
        EVP_DigestFinal_ex(state_->context, out, &length) == 1 && length == hash.bytes.size());
  // A null type keeps the fetched algorithm, which makes the next start several times cheaper.
  CHECK("sha256.init", EVP_DigestInit_ex(state_->context, nullptr, nullptr) == 1);
  return hash;
}

std::uint64_t xxh3(std::span<const std::byte> data, std::uint64_t seed) {
  return XXH3_64bits_withSeed(data.data(), data.size(), seed);
}

void RunDigest::fold(std::uint64_t word) {
  // The finaliser of splitmix64 over the running value: order-sensitive and cheap.
  std::uint64_t x = (value_ ^ word) + 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  value_ = x ^ (x >> 31);
}

void RunDigest::fold(std::span<const std::byte> data) {
  fold(data.size());
  fold(xxh3(data));
}

}  // namespace lockstep
