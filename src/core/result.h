// Result<T>: a value, or the reason why there is none. Errors are values here; nothing throws
// across an interface.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "core/check.h"

namespace lockstep {

// Why something could not be done. `message` names the thing, the value found and what was
// expected.
struct Error {
  std::string message;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // REQUIRES: ok().
  T& value() & { return CHECK("result.value", ok()), std::get<0>(state_); }
  const T& value() const& { return CHECK("result.value", ok()), std::get<0>(state_); }
  T&& value() && { return CHECK("result.value", ok()), std::get<0>(std::move(state_)); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }

  // REQUIRES: !ok().
  const Error& error() const { return CHECK("result.error", !ok()), std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }

  // REQUIRES: !ok().
  const Error& error() const { return CHECK("result.error", !ok()), *error_; }

 private:
  std::optional<Error> error_;
};

}  // namespace lockstep
