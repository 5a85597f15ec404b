// The rules of style that a program can check.
//
// Verified: what is listed at check_file() and check_tree(). The rules read text, not a parse tree:
// comments and the contents of literals are blanked first, and the code is taken to be formatted by
// clang-format.
//
// Not verified, because text does not show it: whether a name or a comment is true, iteration over
// an unordered container that is reached through an alias, a function or another class, and
// whatever macros and generated files hide.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace lockstep::tidy {

inline constexpr std::size_t kMostColumns = 100;
inline constexpr std::size_t kMostFunctionLines = 70;
inline constexpr std::size_t kMostJsonSources = 5;

// A text file of the repository; `path` is relative to its root, with forward slashes.
struct SourceFile {
  std::string path;
  std::string text;
};

struct Finding {
  std::string path;
  std::size_t line = 0;  // from 1
  std::string rule;
  std::string message;  // what was found, and what to write instead
};

// Rules that look at one file:
//   layout     no tab, no trailing space, a newline at the end; code of at most 100 columns
//   words      no marker of unfinished work, no path that leads out of the repository
//   header     has #pragma once and opens with a comment, before or after it
//   function   at most 70 lines from the first line of its head to its closing brace
//   banned     clocks, random sources, thread identity, raw device memory, pointers as keys
std::vector<Finding> check_file(const SourceFile& file);

// Rules that need the whole tree:
//   floor      an include points to the same floor or a lower one, and names its file from the root
//   library    nlohmann/json in at most five .cpp, CLI11 in one, RapidCheck below tests/property
//   unordered  no iteration over what the file or its own header declares as an unordered container
//   dead       each header is included by a file other than its own .cpp; each .cpp lies in a
//   folder
//              that the build knows
std::vector<Finding> check_tree(std::span<const SourceFile> files);

// Whether the file is C++ (a source, a header, or a template of one).
bool is_cpp(const std::string& path);
bool is_header(const std::string& path);

}  // namespace lockstep::tidy
