// Field tables of expectations.
#include "core/events.h"
#include "sim/scenario_fields.h"

namespace lockstep::sim {
namespace {

bool is_range(const Json& json) {
  const auto* members = json.as<Json::Object>();
  return members && !members->empty() &&
         std::all_of(members->begin(), members->end(), [](const JsonMember& member) {
           return member.key == "min" || member.key == "max";
         });
}

Codec<NumberRange> range_codec() {
  const auto limit = number(-1e300, 1e300);
  return object<NumberRange>({
      optional_field("min", &NumberRange::min, limit, "smallest"),
      optional_field("max", &NumberRange::max, limit, "largest"),
  });
}

bool read_expected_value(const Cursor& cursor, ExpectedValue& value) {
  const Json& json = cursor.value();
  if (json.as<std::nullptr_t>()) return value = nullptr, true;
  if (const auto* flag = json.as<bool>()) return value = *flag, true;
  if (const auto* text = json.as<std::string>()) return value = *text, true;
  if (json.as<Json::Array>()) {
    return cursor.expected(
        "a number, a range {\"min\", \"max\"}, a string, true, false, null or an object");
  }
  NumberRange range;
  if (is_range(json)) {
    if (!range_codec().read(cursor, range)) return false;
  } else {
    double number = 0;
    if (!sim::number(-1e300, 1e300).read(cursor, number)) return false;
    range = {number, number};
  }
  value = range;
  return true;
}

// Nested objects become paths: {"loaded_rows": {"full": 9}} is the field "loaded_rows.full".
bool read_expected_fields(const Cursor& cursor, const std::string& prefix, ExpectedFields& fields) {
  return read_map(cursor, [&](const std::string& key, const Cursor& place) {
    if (place.value().as<Json::Object>() && !is_range(place.value())) {
      return read_expected_fields(place, prefix + key + ".", fields);
    }
    if (fields.contains(prefix + key))
      return place.fail("expected this field once, found it again");
    return read_expected_value(place, fields[prefix + key]);
  });
}

Json write_expected_value(const ExpectedValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* range = std::get_if<NumberRange>(&value)) {
    if (range->min && range->min == range->max) return *range->min;
    return range_codec().write(*range);
  }
  return nullptr;
}

Codec<ExpectedFields> expected_fields_codec() {
  const auto read = [](const Cursor& cursor, ExpectedFields& fields) {
    fields.clear();
    return read_expected_fields(cursor, "", fields);
  };
  const auto write = [](const ExpectedFields& fields) {
    Json::Object members;
    for (const auto& [path, value] : fields) members.push_back({path, write_expected_value(value)});
    return Json(std::move(members));
  };
  Json schema = Json::Object{
      {"type", "object"},
      {"additionalProperties",
       Json::Object{{"type", Json::Array{"number", "string", "boolean", "null", "object"}}}}};
  return {read, write, std::move(schema), "an object"};
}

bool read_event_name(const Cursor& cursor, std::string& event) {
  if (!name_text().read(cursor, event)) return false;
  const auto names = event_names();
  if (std::find(names.begin(), names.end(), event) != names.end()) return true;
  return cursor.expected("the name of an event");
}

bool read_numbers(const Json::Array& items, std::vector<std::int64_t>& numbers) {
  for (const Json& item : items) {
    const auto* number = item.as<std::int64_t>();
    if (number == nullptr) return false;
    numbers.push_back(*number);
  }
  return true;
}

bool read_event_field(const std::string& key, const Cursor& place, ExpectedEvent& event) {
  const Json& json = place.value();
  if (const auto* number = json.as<std::int64_t>()) return event.fields[key] = *number, true;
  if (const auto* flag = json.as<bool>()) return event.fields[key] = std::int64_t{*flag}, true;
  if (const auto* text = json.as<std::string>()) return event.fields[key] = *text, true;
  std::vector<std::int64_t> numbers;
  const auto* items = json.as<Json::Array>();
  if (items != nullptr && read_numbers(*items, numbers)) {
    return event.fields[key] = std::move(numbers), true;
  }
  return place.expected("an integer, a string, true, false or a list of integers");
}

// "committed", or {"event": "committed", "request": "r2", "boundary": 1152}.
Codec<ExpectedEvent> event_codec() {
  const auto read = [](const Cursor& cursor, ExpectedEvent& event) {
    if (is_text(cursor.value())) return read_event_name(cursor, event.event);
    const bool all = read_map(cursor, [&](const std::string& key, const Cursor& place) {
      if (key == "event") return read_event_name(place, event.event);
      if (key == "request") return name_text().read(place, event.request.emplace());
      return read_event_field(key, place, event);
    });
    return all && (!event.event.empty() || missing_key(cursor, "event", "the name of an event"));
  };
  const auto write = [](const ExpectedEvent& event) {
    Json::Object members{{"event", event.event}};
    if (event.request) members.push_back({"request", *event.request});
    for (const auto& [key, value] : event.fields) {
      std::visit([&, name = key](const auto& plain) { members.push_back({name, plain}); }, value);
    }
    return Json(std::move(members));
  };
  Json::Array names;
  for (std::string_view name : event_names()) names.push_back(name);
  const Json name = Json::Object{{"enum", std::move(names)}};
  Json schema = Json::Object{
      {"anyOf",
       Json::Array{name,
                   Json::Object{
                       {"type", "object"},
                       {"properties", Json::Object{{"event", name}}},
                       {"required", Json::Array{"event"}},
                       {"additionalProperties",
                        Json::Object{{"type", Json::Array{"integer", "string", "boolean", "array"}},
                                     {"items", Json::Object{{"type", "integer"}}}}}}}}};
  return {read, write, std::move(schema), "the name of an event or an object"};
}

}  // namespace

Codec<ExpectSpec> expect_codec() {
  const auto names = array_of(name_text());
  return object<ExpectSpec>({
      optional_field("verdict", &ExpectSpec::pass, choice<bool>({{"pass", true}, {"fail", false}}),
                     "whether nothing is violated"),
      field("requests", &ExpectSpec::requests, map_of(expected_fields_codec()),
            "fields of the result, by request"),
      optional_field("violations", &ExpectSpec::violations, names,
                     "exactly the invariants that are violated"),
      optional_field("violations_at_least", &ExpectSpec::violations_at_least, names,
                     "invariants that are violated, among others"),
      field("counters", &ExpectSpec::counters, expected_fields_codec(), "counters of the result"),
      field("events", &ExpectSpec::events, array_of(event_codec()),
            "events that happen in this order, others between them"),
  });
}

}  // namespace lockstep::sim
