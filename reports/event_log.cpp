#include "reports/event_log.h"

#include <fmt/format.h>

#include <ostream>

#include "core/hash.h"
#include "core/json.h"

namespace lockstep::reports {
namespace {

constexpr std::size_t kMaxHexBytes = 4096;

Json bytes_json(std::span<const std::byte> bytes) {
  if (bytes.size() > kMaxHexBytes) {
    return Json::Object{{"bytes", bytes.size()}, {"xxh3", fmt::format("{:016x}", xxh3(bytes))}};
  }
  std::string hex;
  hex.reserve(bytes.size() * 2);
  constexpr std::string_view digits = "0123456789abcdef";
  for (std::byte byte : bytes) {
    hex += digits[static_cast<std::size_t>(byte >> 4)];
    hex += digits[static_cast<std::size_t>(byte & std::byte{15})];
  }
  return hex;
}

// Collects the fields of an event as members. Each open level holds its members and, where a list
// is being visited, the list, which stands last among them.
class FieldCollector : public FieldVisitor {
 public:
  explicit FieldCollector(Json::Object head) { open_.push_back(std::move(head)); }

  void number(std::string_view field, std::int64_t value) override { add(field, value); }
  void text(std::string_view field, std::string_view value) override { add(field, value); }
  void numbers(std::string_view field, std::span<const std::int64_t> values) override {
    add(field, Json::Array(values.begin(), values.end()));
  }
  void bytes(std::string_view field, std::span<const std::byte> value) override {
    add(field, bytes_json(value));
  }
  void records(std::string_view list, std::int64_t) override { add(list, Json::Array()); }
  void begin_record() override { open_.emplace_back(); }
  void end_record() override {
    Json record = std::move(open_.back());
    open_.pop_back();
    std::get<Json::Array>(open_.back().back().value.value).push_back(std::move(record));
  }

  Json take() { return std::move(open_.front()); }

 private:
  void add(std::string_view field, Json value) {
    open_.back().push_back({std::string(field), std::move(value)});
  }

  std::vector<Json::Object> open_;
};

}  // namespace

std::string event_line(const Event& event) {
  const bool of_request = event.request != kNoRequest;
  FieldCollector fields({{"step", event.step.value()},
                         {"time_ns", event.time.value()},
                         {"rank", event.rank.value()},
                         {"request", of_request ? Json(event.request.value()) : Json()},
                         {"event", event_name(event.body)}});
  visit_fields(event.body, fields);
  return to_text(fields.take());
}

void EventLog::on_event(const Event& event) {
  out_ << event_line(event) << '\n';
}

}  // namespace lockstep::reports
