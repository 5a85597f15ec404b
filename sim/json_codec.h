// Typed reading and writing of JSON from one table.
//
// A Codec<V> knows one type: it reads a V from JSON, writes it back, and describes it in JSON
// Schema (draft-07). An object is a table of fields; each names a member, its codec and its meaning
// in one line. The default of a field is what a default-constructed object holds. So reading,
// printing and the schema cannot disagree.
//
// The first error of a document is kept in its ReadState and ends the reading.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/ids.h"
#include "core/json.h"
#include "core/result.h"

namespace lockstep::sim {

struct ReadState {
  std::string source;  // "scenarios/x.json", "trace.jsonl:12"
  std::optional<Error> error;
};

// A place in a document: the value there and the way to it. Children refer to their parent, which
// outlives them.
class Cursor {
 public:
  Cursor(const Json& value, ReadState& state) : value_(&value), state_(&state) {}

  const Json& value() const { return *value_; }
  Cursor member(std::string_view key, const Json& value) const { return {*this, key, 0, value}; }
  Cursor item(std::size_t index, const Json& value) const { return {*this, {}, index, value}; }
  // "/cache/page"; empty for the document itself.
  std::string pointer() const;
  // "source: /pointer", for messages that come later.
  std::string place() const;

  // Records "expected <what>, found <the value here>". Returns false, as all reading does after an
  // error.
  bool expected(std::string_view what) const;
  // Records `message` for this place.
  bool fail(std::string_view message) const;

 private:
  Cursor(const Cursor& parent, std::string_view key, std::size_t index, const Json& value)
      : value_(&value), state_(parent.state_), parent_(&parent), key_(key), index_(index) {}

  const Json* value_;
  ReadState* state_;
  const Cursor* parent_ = nullptr;
  std::string_view key_;
  std::size_t index_ = 0;
};

template <class V>
struct Codec {
  // Reads onto a value that holds its default. Returns false after recording an error.
  std::function<bool(const Cursor&, V&)> read;
  std::function<Json(const V&)> write;
  Json schema;
  std::string what;  // "an integer >= 1"
};

// ---------------------------------------------------------------- scalars

inline constexpr std::int64_t kMaxExactInteger = (std::int64_t{1} << 53) - 1;

// "an integer >= 1", "an integer from 0 to 1".
std::string describe_range(std::int64_t min, std::int64_t max);
Json integer_schema(std::int64_t min, std::int64_t max);
bool read_integer(const Cursor& cursor, std::int64_t min, std::int64_t max, std::int64_t& value);

template <class V>
std::int64_t plain_integer(const V& value) {
  if constexpr (std::integral<V>) {
    return static_cast<std::int64_t>(value);
  } else {
    return static_cast<std::int64_t>(value.value());
  }
}

// V is an integer, a Count or an Id.
template <class V>
Codec<V> integer(std::int64_t min, std::int64_t max = kMaxExactInteger) {
  const auto read = [min, max](const Cursor& cursor, V& value) {
    std::int64_t number = 0;
    if (!read_integer(cursor, min, max, number)) return false;
    if constexpr (std::integral<V>) {
      value = static_cast<V>(number);
    } else {
      value = V{static_cast<decltype(value.value())>(number)};
    }
    return true;
  };
  return {read, [](const V& value) { return Json(plain_integer(value)); }, integer_schema(min, max),
          describe_range(min, max)};
}

Codec<double> number(double min, double max);
Codec<bool> boolean();
Codec<std::string> text();       // any
Codec<std::string> name_text();  // not empty

// One of a few words.
template <class E>
Codec<E> choice(std::vector<std::pair<std::string, E>> choices) {
  Json::Array words;
  std::string what = "one of";
  for (const auto& [word, value] : choices) {
    words.push_back(word);
    what += (words.size() == 1 ? " \"" : ", \"") + word + "\"";
  }
  if (choices.size() == 1) what = "\"" + choices.front().first + "\"";
  const auto read = [choices, what](const Cursor& cursor, E& value) {
    const auto* word = cursor.value().as<std::string>();
    for (const auto& [candidate, meaning] : choices) {
      if (word && *word == candidate) return value = meaning, true;
    }
    return cursor.expected(what);
  };
  const auto write = [choices](const E& value) {
    for (const auto& [word, meaning] : choices) {
      if (meaning == value) return Json(word);
    }
    return Json();
  };
  return {read, write, Json::Object{{"enum", std::move(words)}}, what};
}

// ---------------------------------------------------------------- lists and maps

bool read_array(const Cursor& cursor, std::size_t min_items,
                const std::function<bool(const Cursor& item)>& read_item);
bool read_map(const Cursor& cursor,
              const std::function<bool(const std::string& key, const Cursor& item)>& read_item);

template <class V>
Codec<std::vector<V>> array_of(Codec<V> item, std::size_t min_items = 0) {
  const auto read = [read_one = item.read, min_items](const Cursor& cursor,
                                                      std::vector<V>& values) {
    values.clear();
    return read_array(cursor, min_items,
                      [&](const Cursor& place) { return read_one(place, values.emplace_back()); });
  };
  const auto write = [write_one = item.write](const std::vector<V>& values) {
    Json::Array items;
    for (const V& value : values) items.push_back(write_one(value));
    return Json(std::move(items));
  };
  Json schema =
      Json::Object{{"type", "array"}, {"items", std::move(item.schema)}, {"minItems", min_items}};
  return {read, write, std::move(schema), "an array"};
}

// An object whose keys are names.
template <class V>
Codec<std::map<std::string, V>> map_of(Codec<V> item) {
  const auto read = [read_one = item.read](const Cursor& cursor, std::map<std::string, V>& values) {
    values.clear();
    return read_map(cursor, [&](const std::string& key, const Cursor& place) {
      return read_one(place, values[key]);
    });
  };
  const auto write = [write_one = item.write](const std::map<std::string, V>& values) {
    Json::Object members;
    for (const auto& [key, value] : values) members.push_back({key, write_one(value)});
    return Json(std::move(members));
  };
  Json schema = Json::Object{{"type", "object"},
                             {"propertyNames", Json::Object{{"minLength", 1}}},
                             {"additionalProperties", std::move(item.schema)}};
  return {read, write, std::move(schema), "an object"};
}

// ---------------------------------------------------------------- objects

template <class T>
struct Field {
  std::string name;
  std::string meaning;
  bool required = false;
  std::function<bool(const Cursor&, T&)> read;
  std::function<std::optional<Json>(const T&)> write;  // nothing: the key is absent
  Json schema;
  std::string what;
};

// A member with a default.
template <class T, class V>
Field<T> field(std::string name, V T::* member, Codec<V> codec, std::string meaning) {
  const auto read = [member, read_it = codec.read](const Cursor& cursor, T& object) {
    return read_it(cursor, object.*member);
  };
  const auto write = [member, write_it = codec.write](const T& object) {
    return std::optional<Json>(write_it(object.*member));
  };
  return {std::move(name),         std::move(meaning),   false, read, write,
          std::move(codec.schema), std::move(codec.what)};
}

// A member that must be given.
template <class T, class V>
Field<T> required_field(std::string name, V T::* member, Codec<V> codec, std::string meaning) {
  Field<T> result = field(std::move(name), member, std::move(codec), std::move(meaning));
  result.required = true;
  return result;
}

// A member that may be absent.
template <class T, class V>
Field<T> optional_field(std::string name, std::optional<V> T::* member, Codec<V> codec,
                        std::string meaning) {
  const auto read = [member, read_it = codec.read](const Cursor& cursor, T& object) {
    return read_it(cursor, (object.*member).emplace());
  };
  const auto write = [member, write_it = codec.write](const T& object) -> std::optional<Json> {
    if (!(object.*member)) return std::nullopt;
    return write_it(*(object.*member));
  };
  return {std::move(name),         std::move(meaning),   false, read, write,
          std::move(codec.schema), std::move(codec.what)};
}

// The value itself, below one key: {"evict": {...}}.
template <class T>
Field<T> whole_field(std::string name, Codec<T> codec, std::string meaning) {
  const auto write = [write_it = codec.write](const T& object) {
    return std::optional<Json>(write_it(object));
  };
  return {std::move(name),         std::move(meaning),   true, codec.read, write,
          std::move(codec.schema), std::move(codec.what)};
}

// The keys must be among `known`; records an error that lists them.
bool check_keys(const Cursor& cursor, const std::vector<std::string_view>& known);
bool missing_key(const Cursor& cursor, const std::string& name, const std::string& what);
Json with_note(Json schema, const std::string& meaning, const std::optional<Json>& fallback);
Json object_schema(Json::Object properties, Json::Array required);

template <class T>
bool read_fields(const std::vector<Field<T>>& fields, const Cursor& cursor, T& object) {
  if (!cursor.value().as<Json::Object>()) return cursor.expected("an object");
  std::vector<std::string_view> known;
  for (const Field<T>& field : fields) known.push_back(field.name);
  if (!check_keys(cursor, known)) return false;
  for (const Field<T>& field : fields) {
    const Json* value = cursor.value().find(field.name);
    if (!value) {
      if (field.required) return missing_key(cursor, field.name, field.what);
      continue;
    }
    if (!field.read(cursor.member(field.name, *value), object)) return false;
  }
  return true;
}

template <class T>
Json schema_of(const std::vector<Field<T>>& fields) {
  Json::Object properties;
  Json::Array required;
  for (const Field<T>& field : fields) {
    std::optional<Json> fallback;
    if (!field.required) fallback = field.write(T{});
    properties.push_back({field.name, with_note(field.schema, field.meaning, fallback)});
    if (field.required) required.push_back(field.name);
  }
  return object_schema(std::move(properties), std::move(required));
}

template <class T>
Codec<T> object(std::vector<Field<T>> table) {
  const auto fields = std::make_shared<const std::vector<Field<T>>>(std::move(table));
  const auto read = [fields](const Cursor& cursor, T& object) {
    return read_fields(*fields, cursor, object);
  };
  const auto write = [fields](const T& object) {
    Json::Object members;
    for (const Field<T>& field : *fields) {
      if (std::optional<Json> value = field.write(object)) {
        members.push_back({field.name, *std::move(value)});
      }
    }
    return Json(std::move(members));
  };
  return {read, write, schema_of(*fields), "an object"};
}

// ---------------------------------------------------------------- forms

// A V that is written as a W. `decode` returns what was expected if the W means no V, else nothing.
template <class V, class W>
Codec<V> mapped(Codec<W> wire, std::function<std::string(const W&, V&)> decode,
                std::function<W(const V&)> encode) {
  const auto read = [read_wire = wire.read, decode](const Cursor& cursor, V& value) {
    W form{};
    if (!read_wire(cursor, form)) return false;
    const std::string wanted = decode(form, value);
    return wanted.empty() || cursor.expected(wanted);
  };
  const auto write = [write_wire = wire.write, encode](const V& value) {
    return write_wire(encode(value));
  };
  return {read, write, std::move(wire.schema), std::move(wire.what)};
}

// One of two forms: the JSON decides which is read, the value which is written.
template <class V>
Codec<V> either(Codec<V> first, Codec<V> second, std::function<bool(const Json&)> reads_first,
                std::function<bool(const V&)> writes_first) {
  const std::string what = first.what + " or " + second.what;
  const auto read = [read_first = first.read, read_second = second.read, reads_first](
                        const Cursor& cursor, V& value) {
    return reads_first(cursor.value()) ? read_first(cursor, value) : read_second(cursor, value);
  };
  const auto write = [write_first = first.write, write_second = second.write,
                      writes_first](const V& value) {
    return writes_first(value) ? write_first(value) : write_second(value);
  };
  Json schema =
      Json::Object{{"anyOf", Json::Array{std::move(first.schema), std::move(second.schema)}}};
  return {read, write, std::move(schema), what};
}

inline bool is_text(const Json& json) {
  return json.as<std::string>() != nullptr;
}
inline bool is_array(const Json& json) {
  return json.as<Json::Array>() != nullptr;
}

// One alternative of a variant whose objects are told apart by one key.
template <class Variant>
struct Form {
  std::string key;
  Codec<Variant> codec;
};

template <class Variant, class T>
Form<Variant> form(std::string key, Codec<T> codec) {
  const auto read = [read_it = codec.read](const Cursor& cursor, Variant& value) {
    return read_it(cursor, value.template emplace<T>());
  };
  const auto write = [write_it = codec.write](const Variant& value) {
    return write_it(std::get<T>(value));
  };
  return {std::move(key), {read, write, std::move(codec.schema), std::move(codec.what)}};
}

// REQUIRES: forms are in the order of the variant's alternatives.
template <class Variant>
Codec<Variant> forms(std::vector<Form<Variant>> list) {
  const auto all = std::make_shared<const std::vector<Form<Variant>>>(std::move(list));
  std::string what = "an object with one of the keys";
  Json::Array schemas;
  for (const Form<Variant>& one : *all) {
    what += (schemas.empty() ? " \"" : ", \"") + one.key + "\"";
    schemas.push_back(one.codec.schema);
  }
  const auto read = [all, what](const Cursor& cursor, Variant& value) {
    for (const Form<Variant>& one : *all) {
      if (cursor.value().find(one.key)) return one.codec.read(cursor, value);
    }
    return cursor.expected(what);
  };
  const auto write = [all](const Variant& value) {
    return (*all)[value.index()].codec.write(value);
  };
  return {read, write, Json::Object{{"anyOf", std::move(schemas)}}, what};
}

}  // namespace lockstep::sim
