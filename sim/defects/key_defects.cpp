#include "sim/defects/key_defects.h"

#include <array>

#include "sim/defects/parts_with.h"

namespace lockstep::sim::defects {

namespace {

class NoSalt : public KeyScheme {
 public:
  using KeyScheme::KeyScheme;

 protected:
  std::string namespace_bytes(const NamespaceFields& fields) const override {
    NamespaceFields left = fields;
    left.cache_salt.reset();
    return KeyScheme::namespace_bytes(left);
  }
};

class NoExtra : public KeyScheme {
 public:
  using KeyScheme::KeyScheme;

 protected:
  std::string namespace_bytes(const NamespaceFields& fields) const override {
    NamespaceFields left = fields;
    left.extra_key.reset();
    return KeyScheme::namespace_bytes(left);
  }
};

class NoLayout : public KeyScheme {
 public:
  using KeyScheme::KeyScheme;

 protected:
  std::string namespace_bytes(const NamespaceFields& fields) const override {
    NamespaceFields left = fields;
    left.layout_fingerprint.clear();
    return KeyScheme::namespace_bytes(left);
  }
};

class Ambiguous : public KeyScheme {
 public:
  using KeyScheme::KeyScheme;

 protected:
  std::string namespace_bytes(const NamespaceFields& fields) const override {
    return "lockstep-1" + fields.model_fingerprint + fields.layout_fingerprint +
           fields.extra_key.value_or("") + fields.cache_salt.value_or("");
  }
};

constexpr std::array kKeyDefects{
    Defect{"key.no_salt", "C19", "R1", "", "salt left out of the hash",
           make<WithKeyScheme<NoSalt>>},
    Defect{"key.ambiguous", "C19", "R1", "", "fields concatenated without lengths",
           make<WithKeyScheme<Ambiguous>>},
    Defect{"key.no_layout", "C20 C21", "D1", "R1", "layout not in the namespace",
           make<WithKeyScheme<NoLayout>>},
    Defect{"key.no_extra", "C19", "D1", "R1", "extra_key left out of the hash",
           make<WithKeyScheme<NoExtra>>},
};

}  // namespace

std::span<const Defect> key_defects() {
  return kKeyDefects;
}

}  // namespace lockstep::sim::defects
