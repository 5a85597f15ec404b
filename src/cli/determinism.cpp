#include "cli/determinism.h"

#include "core/hash.h"
#include "reports/event_log.h"

namespace lockstep::cli {
namespace {

class FieldFolder : public FieldVisitor {
 public:
  void number(std::string_view field, std::int64_t value) override {
    fold_text(field);
    digest_.fold(static_cast<std::uint64_t>(value));
  }
  void text(std::string_view field, std::string_view value) override {
    fold_text(field);
    fold_text(value);
  }
  void numbers(std::string_view field, std::span<const std::int64_t> values) override {
    fold_text(field);
    digest_.fold(std::as_bytes(values));
  }
  void bytes(std::string_view field, std::span<const std::byte> value) override {
    fold_text(field);
    digest_.fold(value);
  }
  void fold_text(std::string_view text) { digest_.fold(std::as_bytes(std::span(text))); }
  RunDigest& digest() { return digest_; }

 private:
  RunDigest digest_;
};

}  // namespace

std::uint64_t event_digest(const Event& event) {
  FieldFolder folder;
  folder.digest().fold(event.step.value());
  folder.digest().fold(static_cast<std::uint64_t>(event.time.value()));
  folder.digest().fold(event.rank.value());
  folder.digest().fold(event.request.value());
  folder.fold_text(event_name(event.body));
  visit_fields(event.body, folder);
  return folder.digest().value();
}

void EventComparer::on_event(const Event& event) {
  const std::size_t index = count_++;
  if (differs_at_) return;
  if (index < first_.size() && first_[index] == event_digest(event)) return;
  differs_at_ = index;
  differing_line_ = reports::event_line(event);
}

std::optional<std::string> EventComparer::difference() const {
  if (differs_at_) {
    return "determinism: expected the same events in two runs, the second differs from event " +
           std::to_string(*differs_at_ + 1) + " on: " + differing_line_;
  }
  if (count_ < first_.size()) {
    return "determinism: expected the same events in two runs, the second ends before event " +
           std::to_string(count_ + 1) + " of " + std::to_string(first_.size());
  }
  return std::nullopt;
}

}  // namespace lockstep::cli
