// JSON as a value: what scenarios, traces and results are read from and written to.
//
// Reading is strict: duplicate keys, nesting deeper than 32 and anything that is not one JSON
// document are errors that name the place. Members keep the order of the text, so that writing is
// deterministic.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/result.h"

namespace lockstep {

struct Json;

// A template only so that it is not looked into before Json is complete.
template <class Value>
struct BasicJsonMember {
  std::string key;
  Value value;
};
using JsonMember = BasicJsonMember<Json>;

struct Json {
  using Array = std::vector<Json>;
  using Object = std::vector<JsonMember>;

  Json() = default;
  // The implicit conversions let a document be written as it reads.
  // NOLINTBEGIN(google-explicit-constructor)
  Json(std::nullptr_t) {}
  template <std::same_as<bool> Flag>
  Json(Flag flag) : value(flag) {}
  template <std::integral Number>
    requires(!std::same_as<Number, bool>)
  Json(Number number) : value(static_cast<std::int64_t>(number)) {}
  Json(double number) : value(number) {}
  Json(const char* text) : value(std::string(text)) {}
  Json(std::string_view text) : value(std::string(text)) {}
  Json(std::string text) : value(std::move(text)) {}
  Json(Array items) : value(std::move(items)) {}
  Json(Object members) : value(std::move(members)) {}
  Json(const std::vector<std::int64_t>& numbers) : value(Array(numbers.begin(), numbers.end())) {}
  // NOLINTEND(google-explicit-constructor)

  template <class T>
  const T* as() const {
    return std::get_if<T>(&value);
  }
  // The member of that name of an object; null if there is none, or if this is no object.
  const Json* find(std::string_view key) const;

  // Integers that do not fit 64 bits signed are held as double.
  std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, Array, Object> value;
};

// Reads one document. An error reads "source: line 3, column 7: ..." or "source: /pointer: ...".
Result<Json> parse_json(std::string_view text, const std::string& source);

// One line, no spaces beyond one after ':' and ','. A number that is not finite becomes null.
std::string to_text(const Json& json);
// Indented by two spaces; arrays and objects without containers inside stay on one line while they
// fit 100 columns.
std::string to_pretty_text(const Json& json);

// A short form for error messages: the value of a scalar, "an array", "an object".
std::string describe(const Json& json);

// A key as a JSON pointer writes it: '~' and '/' escaped.
std::string pointer_token(std::string_view key);

// The whole file, or an error that names it: no such file, a directory, more than `max_bytes`.
Result<std::string> read_text_file(const std::string& path, std::size_t max_bytes);

}  // namespace lockstep
