#include "cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace lockstep::cli {
namespace {

constexpr std::chrono::milliseconds kRedraw{100};
constexpr std::chrono::seconds kPlainLine{10};
constexpr std::size_t kBarWidth = 30;
// Back to the first column, and clear what an older, longer line left.
constexpr const char* kRewind = "\r\x1b[K";

}  // namespace

bool wants_colours() {
  const char* no_color = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) && (!no_color || *no_color == '\0');
}

Progress::Progress(std::string unit, bool hidden)
    : unit_(std::move(unit)), hidden_(hidden), terminal_(isatty(STDERR_FILENO)) {}

Progress::~Progress() {
  if (drawn_ && terminal_) std::fputs(kRewind, stderr);
}

void Progress::update(std::uint64_t done, std::uint64_t total) {
  if (hidden_ || total == 0) return;
  const Clock::time_point now = Clock::now();
  if (now - shown_ < (terminal_ ? Clock::duration(kRedraw) : Clock::duration(kPlainLine))) return;
  shown_ = now;
  drawn_ = true;
  const std::string text = line(done, total, now);
  if (terminal_) {
    const std::size_t filled = kBarWidth * done / total;
    fmt::print(stderr, "{}[{}{}] {}", kRewind, std::string(filled, '#'),
               std::string(kBarWidth - filled, '.'), text);
  } else {
    fmt::print(stderr, "{}\n", text);
  }
  std::fflush(stderr);
}

std::string Progress::line(std::uint64_t done, std::uint64_t total, Clock::time_point now) const {
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = static_cast<double>(done) / seconds;
  std::string text = fmt::format("{} of {} {}, {:.1f} per second", done, total, unit_, rate);
  if (done > 0) text += fmt::format(", {:.0f} s left", static_cast<double>(total - done) / rate);
  return text;
}

ExitStatus refuse(const std::vector<std::string>& messages) {
  for (const std::string& message : messages) fmt::print(stderr, "{}\n", message);
  return ExitStatus::bad_input;
}

ExitStatus refuse(const Error& error) {
  return refuse(std::vector{error.message});
}

bool write_output(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return true;
  fmt::print(stderr, "{}: cannot be written\n", path);
  return false;
}

bool check_output_folder(const std::string& path) {
  if (path.empty()) return true;
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  std::error_code ignored;
  if (std::filesystem::is_directory(folder, ignored)) return true;
  fmt::print(stderr, "{}: cannot be written, expected the folder {} to exist\n", path,
             folder.string());
  return false;
}

}  // namespace lockstep::cli
