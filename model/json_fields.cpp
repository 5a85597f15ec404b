#include "model/json_fields.h"

#include <algorithm>

#include "model/config.h"

namespace lockstep::model {

JsonFields::JsonFields(const Json& object, std::string source)
    : object_(*object.as<Json::Object>()), source_(std::move(source)) {}

void JsonFields::number(std::string_view key, std::int64_t low, std::int64_t high,
                        std::int64_t& value) {
  const Json* found = find(key);
  if (found == nullptr) return;
  const auto* number = found->as<std::int64_t>();
  const bool good = number != nullptr && *number >= low && *number <= high;
  const std::string range = std::to_string(low) + " to " + std::to_string(high);
  if (expect(good, key, *found, "an integer from " + range)) value = *number;
}

void JsonFields::real(std::string_view key, double low, double high, float& value) {
  const Json* found = find(key);
  if (found == nullptr) return;
  std::optional<double> number;
  if (const auto* whole = found->as<std::int64_t>()) number = static_cast<double>(*whole);
  if (const auto* real = found->as<double>()) number = *real;
  const bool good = number && *number >= low && *number <= high;
  const std::string range = shortest(low) + " to " + shortest(high);
  if (expect(good, key, *found, "a number from " + range)) value = static_cast<float>(*number);
}

void JsonFields::boolean(std::string_view key, bool& value) {
  const Json* found = find(key);
  if (found == nullptr) return;
  const auto* flag = found->as<bool>();
  if (expect(flag != nullptr, key, *found, "true or false")) value = *flag;
}

void JsonFields::text(std::string_view key, std::string& value) {
  const Json* found = find(key);
  if (found == nullptr) return;
  const auto* text = found->as<std::string>();
  if (expect(text != nullptr, key, *found, "a string")) value = *text;
}

void JsonFields::texts(std::string_view key, std::vector<std::string>& values) {
  const Json* found = find(key);
  if (found == nullptr) return;
  const auto* items = found->as<Json::Array>();
  const auto is_text = [](const Json& item) { return item.as<std::string>() != nullptr; };
  const bool strings = items != nullptr && std::ranges::all_of(*items, is_text);
  if (!expect(strings, key, *found, "an array of strings")) return;
  values.clear();
  for (const Json& item : *items) values.push_back(*item.as<std::string>());
}

Result<void> JsonFields::finish() const {
  if (error_) return *error_;
  for (const JsonMember& member : object_) {
    if (known_.contains(member.key)) continue;
    return Error{source_ + ": /" + pointer_token(member.key) + ": unknown key"};
  }
  return {};
}

const Json* JsonFields::find(std::string_view key) {
  known_.emplace(key);
  const auto member = std::ranges::find(object_, key, &JsonMember::key);
  const bool given = member != object_.end() && member->value.as<std::nullptr_t>() == nullptr;
  return given ? &member->value : nullptr;
}

bool JsonFields::expect(bool good, std::string_view key, const Json& found,
                        const std::string& expected) {
  if (!good && !error_) {
    error_ = Error{source_ + ": /" + std::string(key) + ": found " + describe(found) +
                   ", expected " + expected};
  }
  return good;
}

}  // namespace lockstep::model
