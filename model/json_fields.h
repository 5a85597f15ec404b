// Reads the members of one JSON object of a model file.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "core/result.h"

namespace lockstep::model {

// Remembers the first error, so that a caller lists its fields and then asks. A member that is not
// there, or null, leaves the value as it is. Errors name `source`, the member, what was found and
// what was expected.
class JsonFields {
 public:
  // `object` outlives the reader. REQUIRES: it is an object.
  JsonFields(const Json& object, std::string source);

  void number(std::string_view key, std::int64_t low, std::int64_t high, std::int64_t& value);
  void real(std::string_view key, double low, double high, float& value);
  void boolean(std::string_view key, bool& value);
  void text(std::string_view key, std::string& value);
  void texts(std::string_view key, std::vector<std::string>& values);
  void numbers(std::string_view key, std::int64_t low, std::int64_t high,
               std::vector<std::int64_t>& values);
  // As many as `values` has.
  void reals(std::string_view key, double low, double high, std::vector<float>& values);
  // The value of a key that may be an object; null if it is not there.
  const Json* value(std::string_view key) { return find(key); }

  // Keys that may have this one value only, or be missing.
  void only(std::string_view key, const Json& supported);
  // Keys that change nothing.
  void ignore(std::initializer_list<std::string_view> keys);
  // An error of the caller's about `key`.
  void refuse(std::string_view key, const std::string& message);
  void fail(const Error& error) {
    if (!error_) error_ = error;
  }

  const std::string& source() const { return source_; }
  // After the last field: the first error, or the first member that no field asked for.
  Result<void> finish() const;

 private:
  const Json* find(std::string_view key);
  bool expect(bool good, std::string_view key, const Json& found, const std::string& expected);

  const Json::Object& object_;
  std::string source_;
  std::set<std::string, std::less<>> known_;
  std::optional<Error> error_;
};

}  // namespace lockstep::model
