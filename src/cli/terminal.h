// What the terminal can do, and the progress of long work on it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/exit_status.h"
#include "core/result.h"

namespace lockstep::cli {

// Standard output is a terminal and NO_COLOR is not set.
bool wants_colours();

// Shows on stderr how far the work is: a bar with rate and time left on a terminal, elsewhere a
// plain line now and then.
class Progress {
 public:
  // `unit` is plural: "scenarios". Hidden: shows nothing.
  Progress(std::string unit, bool hidden);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::uint64_t done, std::uint64_t total);

 private:
  using Clock = std::chrono::steady_clock;

  std::string line(std::uint64_t done, std::uint64_t total, Clock::time_point now) const;

  std::string unit_;
  bool hidden_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_ = start_;
};

// Says on stderr, a line each, what is wrong with the input.
ExitStatus refuse(const std::vector<std::string>& messages);
ExitStatus refuse(const Error& error);

// Writes the whole file; returns false after saying on stderr that it cannot be written.
bool write_output(const std::string& path, const std::string& text);
// Whether the folder of an output file exists; returns false after saying on stderr that it does
// not.
bool check_output_folder(const std::string& path);

}  // namespace lockstep::cli
