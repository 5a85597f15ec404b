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

namespace {

std::optional<double> real_of(const Json& json) {
  if (const auto* whole = json.as<std::int64_t>()) return static_cast<double>(*whole);
  if (const auto* real = json.as<double>()) return *real;
  return std::nullopt;
}

}  // namespace

void JsonFields::real(std::string_view key, double low, double high, float& value) {
  const Json* found = find(key);
  if (found == nullptr) return;
  const std::optional<double> number = real_of(*found);
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

void JsonFields::numbers(std::string_view key, std::int64_t low, std::int64_t high,
                         std::vector<std::int64_t>& values) {
  const Json* found = find(key);
  if (found == nullptr) return;
  const auto* items = found->as<Json::Array>();
  const auto in_range = [&](const Json& item) {
    const auto* number = item.as<std::int64_t>();
    return number != nullptr && *number >= low && *number <= high;
  };
  const bool good = items != nullptr && std::ranges::all_of(*items, in_range);
  const std::string range = std::to_string(low) + " to " + std::to_string(high);
  if (!expect(good, key, *found, "an array of integers from " + range)) return;
  values.clear();
  for (const Json& item : *items) values.push_back(*item.as<std::int64_t>());
}

void JsonFields::reals(std::string_view key, double low, double high, std::vector<float>& values) {
  const Json* found = find(key);
  if (found == nullptr) return;
  const auto* items = found->as<Json::Array>();
  const auto in_range = [&](const Json& item) {
    const std::optional<double> number = real_of(item);
    return number && *number >= low && *number <= high;
  };
  const bool good =
      items != nullptr && items->size() == values.size() && std::ranges::all_of(*items, in_range);
  const std::string range = shortest(low) + " to " + shortest(high);
  if (!expect(good, key, *found, std::to_string(values.size()) + " numbers from " + range)) return;
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(*real_of((*items)[i]));
  }
}

void JsonFields::only(std::string_view key, const Json& supported) {
  const Json* found = find(key);
  if (found == nullptr) return;
  const std::optional<double> number = real_of(*found);
  const bool good = number ? number == real_of(supported) : to_text(*found) == to_text(supported);
  expect(good, key, *found, to_text(supported) + ": nothing else is supported");
}

void JsonFields::ignore(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) known_.emplace(key);
}

void JsonFields::refuse(std::string_view key, const std::string& message) {
  if (!error_) error_ = Error{source_ + ": /" + std::string(key) + ": " + message};
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
