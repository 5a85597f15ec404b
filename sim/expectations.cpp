#include "sim/expectations.h"

#include <algorithm>
#include <set>

#include "core/json.h"

namespace lockstep::sim {
namespace {

// ---------------------------------------------------------------- events

// Sees whether the fields of one event hold all values of an expectation. A field that comes more
// than once (records in a list) matches if one of them does; a list of numbers matches an equal
// list, and a number that is its only element.
class FieldMatcher : public FieldVisitor {
 public:
  explicit FieldMatcher(const ExpectedEvent& expected) : expected_(expected) {}

  void number(std::string_view field, std::int64_t value) override { found(field, value); }
  void text(std::string_view field, std::string_view value) override {
    found(field, std::string(value));
  }
  void numbers(std::string_view field, std::span<const std::int64_t> values) override {
    if (values.size() == 1) found(field, values.front());
    found(field, std::vector<std::int64_t>(values.begin(), values.end()));
  }
  void bytes(std::string_view, std::span<const std::byte>) override {}

  bool all() const { return met_.size() == expected_.fields.size(); }

 private:
  void found(std::string_view field, const ExpectedEventValue& value) {
    const auto wanted = expected_.fields.find(std::string(field));
    if (wanted != expected_.fields.end() && wanted->second == value) met_.insert(wanted->first);
  }

  const ExpectedEvent& expected_;
  std::set<std::string> met_;
};

bool matches(const ExpectedEvent& expected, const Event& event,
             const std::map<RequestId, std::string>& names) {
  if (event_name(event.body) != expected.event) return false;
  if (expected.request) {
    const auto name = names.find(event.request);
    if (name == names.end() || name->second != *expected.request) return false;
  }
  FieldMatcher fields(expected);
  visit_fields(event.body, fields);
  return fields.all();
}

std::string describe_event(const ExpectedEvent& event) {
  std::string text = event.event;
  if (event.request) text += " of " + *event.request;
  for (const auto& [field, value] : event.fields) {
    std::visit(
        [&, name = field](const auto& plain) { text += " " + name + "=" + to_text(Json(plain)); },
        value);
  }
  return text;
}

// ---------------------------------------------------------------- fields

NumberRange exactly(double value) {
  return {value, value};
}

ExpectedValue number_or_null(const std::optional<double>& value) {
  if (!value) return nullptr;
  return exactly(*value);
}

template <class T>
ExpectedValue count(T value) {
  return exactly(static_cast<double>(value));
}

std::string describe_value(const ExpectedValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* text = std::get_if<std::string>(&value)) return to_text(Json(*text));
  const auto* range = std::get_if<NumberRange>(&value);
  if (!range) return "null";
  if (range->min && range->min == range->max) return to_text(Json(*range->min));
  std::string text;
  if (range->min) text += ">= " + to_text(Json(*range->min));
  if (range->min && range->max) text += " and ";
  if (range->max) text += "<= " + to_text(Json(*range->max));
  return text;
}

// `actual` is a single value: a number is a range from itself to itself.
bool meets(const ExpectedValue& expected, const ExpectedValue& actual) {
  const auto* wanted = std::get_if<NumberRange>(&expected);
  const auto* found = std::get_if<NumberRange>(&actual);
  if (!wanted || !found) return expected == actual;
  // Written so that a value that is not a number meets no limit.
  return (!wanted->min || *found->min >= *wanted->min) &&
         (!wanted->max || *found->min <= *wanted->max);
}

void compare_fields(const std::string& owner, const ExpectedFields& expected,
                    const ExpectedFields& actual, std::vector<std::string>& unexpected) {
  for (const auto& [path, value] : expected) {
    const auto found = actual.find(path);
    if (found == actual.end()) {
      unexpected.push_back(owner + path + ": expected " + describe_value(value) +
                           ", but there is no such field");
    } else if (!meets(value, found->second)) {
      unexpected.push_back(owner + path + ": expected " + describe_value(value) + ", found " +
                           describe_value(found->second));
    }
  }
}

// ---------------------------------------------------------------- violations

std::string joined(const std::set<std::string>& names) {
  if (names.empty()) return "none";
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::set<std::string> violated(const RunResult& result) {
  std::set<std::string> names;
  for (const oracle::Violation& violation : result.violations) names.insert(violation.invariant);
  return names;
}

void compare_violations(const ExpectSpec& expect, const std::set<std::string>& found,
                        std::vector<std::string>& unexpected) {
  if (expect.violations) {
    const std::set<std::string> wanted(expect.violations->begin(), expect.violations->end());
    if (wanted != found) {
      unexpected.push_back("violations: expected exactly " + joined(wanted) + ", found " +
                           joined(found));
    }
  }
  if (expect.violations_at_least) {
    const std::set<std::string> wanted(expect.violations_at_least->begin(),
                                       expect.violations_at_least->end());
    if (!std::includes(found.begin(), found.end(), wanted.begin(), wanted.end())) {
      unexpected.push_back("violations: expected at least " + joined(wanted) + ", found " +
                           joined(found));
    }
  }
}

}  // namespace

void EventMatcher::on_event(const Event& event) {
  if (matched_ < expected_.size() && matches(expected_[matched_], event, request_names_))
    ++matched_;
}

ExpectedFields flat_fields(const RequestResult& request) {
  const oracle::RequestComparison& comparison = request.comparison;
  ExpectedFields fields{
      {"outcome", request.outcome},
      {"restored_tokens", count(request.restored_tokens.value())},
      {"from_device", count(request.from_device.value())},
      {"from_store", count(request.from_store.value())},
      {"recomputed", request.recomputed},
      {"logprobs_compared", count(comparison.logprobs_compared)},
      {"differing_logprobs", count(comparison.differing_logprobs)},
      {"kl_mean", number_or_null(comparison.kl_mean)},
      {"kl_max", number_or_null(comparison.kl_max)},
      {"kl_reference_mean", number_or_null(comparison.kl_reference_mean)},
      {"kl_reference_max", number_or_null(comparison.kl_reference_max)},
      {"k3_mean", number_or_null(comparison.k3_mean)},
      {"max_abs_dlogprob", number_or_null(comparison.max_abs_dlogprob)},
      {"load_wait_ns", count(request.load_wait.value())},
      {"forward_start_ns", count(request.forward_start.value())},
      {"ttft_ns", count(request.ttft.value())},
  };
  for (const auto& [component, rows] : request.loaded_rows) {
    fields["loaded_rows." + component] = count(rows);
  }
  return fields;
}

bool is_request_field(std::string_view path) {
  static const ExpectedFields fields = flat_fields(RequestResult{});
  return fields.contains(std::string(path));
}

ExpectedFields flat_counters(const RunResult& result) {
  ExpectedFields fields;
  for (const auto& [name, value] : result.counters) fields[name] = count(value);
  for (const auto& [name, value] : result.faults_injected) {
    fields["faults_injected." + name] = count(value);
  }
  for (const auto& [name, value] : result.sometimes) fields["sometimes." + name] = count(value);
  return fields;
}

void judge_expectations(const ExpectSpec* expect, std::size_t events_matched, RunResult& result) {
  result.unexpected.clear();
  ExpectSpec nothing_violated;
  nothing_violated.pass = true;
  const ExpectSpec& wanted = expect ? *expect : nothing_violated;
  if (wanted.pass && *wanted.pass != result.pass()) {
    result.unexpected.push_back(*wanted.pass ? "verdict: expected pass, found fail"
                                             : "verdict: expected fail, found pass");
  }
  compare_violations(wanted, violated(result), result.unexpected);
  for (const auto& [name, fields] : wanted.requests) {
    const auto request = result.requests.find(name);
    if (request == result.requests.end()) {
      result.unexpected.push_back(name + ": expected a request of that name, found none");
      continue;
    }
    compare_fields(name + ".", fields, flat_fields(request->second), result.unexpected);
  }
  compare_fields("counters.", wanted.counters, flat_counters(result), result.unexpected);
  if (events_matched < wanted.events.size()) {
    result.unexpected.push_back(
        "events: expected " + describe_event(wanted.events[events_matched]) + " as number " +
        std::to_string(events_matched + 1) + ", but it did not come after the ones before");
  }
}

}  // namespace lockstep::sim
