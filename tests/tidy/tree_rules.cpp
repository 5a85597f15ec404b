#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "rules.h"
#include "text.h"

namespace lockstep::tidy {

namespace {

using Findings = std::vector<Finding>;

struct Floor {
  std::string_view name;
  std::string_view folder;
};

// Lowest first.
constexpr std::array<Floor, 12> kFloors{{{"core", "src/core/"},
                                         {"device", "src/device/"},
                                         {"pool", "src/pool/"},
                                         {"tree", "src/tree/"},
                                         {"store", "src/store/"},
                                         {"link", "src/link/"},
                                         {"model", "model/"},
                                         {"engine", "src/engine/"},
                                         {"oracle", "oracle/"},
                                         {"sim", "sim/"},
                                         {"reports", "reports/"},
                                         {"cli", "src/cli/"}}};

// The judge sees the linker only through core's observer and inspection interfaces.
constexpr std::array<std::string_view, 4> kSeenByOracle{"core", "device", "model", "oracle"};

// Index in kFloors of the floor that the file belongs to.
std::optional<std::size_t> floor_of_file(std::string_view path) {
  for (std::size_t i = 0; i < kFloors.size(); ++i) {
    if (path.starts_with(kFloors[i].folder)) return i;
  }
  return std::nullopt;
}

// Index in kFloors of the floor that an include names.
std::optional<std::size_t> floor_of_include(std::string_view name) {
  const std::string_view first = name.substr(0, name.find('/'));
  for (std::size_t i = 0; i < kFloors.size(); ++i) {
    if (first == kFloors[i].name && first.size() < name.size()) return i;
  }
  return std::nullopt;
}

// The file that an include of a floor means; empty for other includes.
std::string file_of_include(const Include& include) {
  if (!include.quoted) return {};
  const std::optional<std::size_t> floor = floor_of_include(include.name);
  if (!floor) return {};
  const std::string_view rest = std::string_view(include.name).substr(include.name.find('/') + 1);
  return std::string(kFloors[*floor].folder) + std::string(rest);
}

bool may_include(std::size_t from, std::size_t to) {
  if (kFloors[from].name == "oracle") {
    return std::ranges::find(kSeenByOracle, kFloors[to].name) != kSeenByOracle.end();
  }
  return to <= from;
}

void check_floors(const SourceFile& file, const std::vector<Include>& includes,
                  Findings& findings) {
  const std::optional<std::size_t> from = floor_of_file(file.path);
  if (!from) return;
  for (const Include& include : includes) {
    if (!include.quoted) continue;
    const std::optional<std::size_t> to = floor_of_include(include.name);
    const std::string floor(kFloors[*from].name);
    if (!to) {
      findings.push_back({file.path, include.line, "floor",
                          "\"" + include.name + "\" names no floor; write \"floor/file.h\""});
    } else if (!may_include(*from, *to)) {
      const std::string reason = floor == "oracle"
                                     ? " may include core, device and model only"
                                     : " lies below " + std::string(kFloors[*to].name);
      findings.push_back(
          {file.path, include.line, "floor", "\"" + include.name + "\": " + floor + reason});
    }
  }
}

// A library that is slow to compile, and where it may be included.
struct Library {
  std::string_view prefix;  // of the include's name
  std::string_view folder;  // the only folder; empty: any
  std::size_t most_sources;
};
constexpr std::array<Library, 3> kLibraries{{{"nlohmann/", "", kMostJsonSources},
                                             {"CLI/", "src/cli/", 1},
                                             {"rapidcheck", "tests/property/", 1000}}};

class LibraryUse {
 public:
  explicit LibraryUse(Findings& findings) : findings_(findings) {}

  void see(const SourceFile& file, const std::vector<Include>& includes) {
    for (const Library& library : kLibraries) {
      const auto used = std::ranges::find_if(
          includes, [&](const Include& i) { return i.name.starts_with(library.prefix); });
      if (used != includes.end()) see(library, file.path, *used);
    }
  }

 private:
  void see(const Library& library, const std::string& path, const Include& include) {
    const std::string name = "<" + include.name + ">";
    if (is_header(path)) {
      report(path, include.line, name + " in a header; include it in the .cpp only");
    } else if (!path.starts_with(library.folder)) {
      report(path, include.line, name + " belongs below " + std::string(library.folder));
    } else if (++sources_[library.prefix] > library.most_sources) {
      report(path, include.line,
             name + " in more than " + std::to_string(library.most_sources) +
                 " .cpp; use the functions of those that have it");
    }
  }

  void report(const std::string& path, std::size_t line, std::string message) {
    findings_.push_back({path, line, "library", std::move(message)});
  }

  Findings& findings_;
  std::map<std::string_view, std::size_t> sources_;
};

// Names of variables and members that the code declares as unordered containers.
std::set<std::string> unordered_names(std::string_view code) {
  constexpr std::array<std::string_view, 4> containers{"unordered_map", "unordered_set",
                                                       "unordered_multimap", "unordered_multiset"};
  std::set<std::string> names;
  for (std::string_view container : containers) {
    for (std::size_t at = find_token(code, container); at != std::string_view::npos;
         at = find_token(code, container, at + 1)) {
      const std::size_t open = at + container.size();
      if (open >= code.size() || code[open] != '<') continue;
      const std::size_t close = closing_bracket(code, open);
      if (close == std::string_view::npos) continue;
      const std::size_t begin = code.find_first_not_of(" \n&", close + 1);
      if (begin == std::string_view::npos || !is_word(code[begin])) continue;
      std::size_t end = begin;
      while (end < code.size() && is_word(code[end])) ++end;
      names.insert(std::string(code.substr(begin, end - begin)));
    }
  }
  return names;
}

// The last identifier of an expression: "this->nodes_" gives "nodes_", "size()" gives nothing.
std::string_view last_word(std::string_view expression) {
  expression = trim(expression);
  std::size_t begin = expression.size();
  while (begin > 0 && is_word(expression[begin - 1])) --begin;
  return expression.substr(begin);
}

// What a range-for runs over; empty for other loops. `head` is what stands in its parentheses.
std::string_view range_of_loop(std::string_view head) {
  if (head.find(';') != std::string_view::npos) {
    const std::size_t after_init = head.find(';') + 1;
    if (head.find(';', after_init) != std::string_view::npos) return {};
    head.remove_prefix(after_init);
  }
  for (std::size_t i = 0; i < head.size(); ++i) {
    if (head.substr(i).starts_with("::")) {
      ++i;
    } else if (head[i] == ':') {
      return head.substr(i + 1);
    }
  }
  return {};
}

void check_unordered_loops(const SourceFile& file, std::string_view code,
                           const std::set<std::string>& names, Findings& findings) {
  const auto report = [&](std::size_t at, std::string_view name) {
    findings.push_back({file.path, line_of(code, at), "unordered",
                        "iteration over the unordered container " + std::string(name) +
                            "; use std::map, or a vector beside it that keeps the order"});
  };
  for (std::size_t at = find_token(code, "for"); at != std::string_view::npos;
       at = find_token(code, "for", at + 1)) {
    const std::size_t open = code.find_first_not_of(" \n", at + 3);
    if (open == std::string_view::npos || code[open] != '(') continue;
    const std::size_t close = closing_bracket(code, open);
    if (close == std::string_view::npos) continue;
    const std::string name(last_word(range_of_loop(code.substr(open + 1, close - open - 1))));
    if (names.contains(name)) report(at, name);
  }
  for (const std::string& name : names) {
    for (const char* begin : {".begin()", ".cbegin()"}) {
      const std::size_t at = find_token(code, name + begin);
      if (at != std::string_view::npos) report(at, name);
    }
  }
}

// "a/b" for "a/b.h" and "a/b.cpp".
std::string stem(const std::string& path) {
  return path.substr(0, path.rfind('.'));
}

// Where order reaches no digest, anything may be iterated over.
bool order_matters(const std::string& path) {
  return floor_of_file(path).has_value() && !path.starts_with("src/cli/");
}

void check_unordered(std::span<const SourceFile> files, Findings& findings) {
  std::map<std::string, std::string> code_of_path;
  for (const SourceFile& file : files) {
    if (!is_cpp(file.path) || !order_matters(file.path)) continue;
    code_of_path[file.path] = blank_comments_and_literals(file.text);
  }
  for (const SourceFile& file : files) {
    const auto code = code_of_path.find(file.path);
    if (code == code_of_path.end()) continue;
    std::set<std::string> names = unordered_names(code->second);
    const auto header = code_of_path.find(stem(file.path) + ".h");
    if (header != code_of_path.end()) names.merge(unordered_names(header->second));
    check_unordered_loops(file, code->second, names, findings);
  }
}

// Whether the build compiles every .cpp of this one's folder (CMakeLists.txt,
// tests/CMakeLists.txt).
bool is_in_compiled_folder(const std::string& path) {
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  if (folder.starts_with("tests/unit/")) {
    const std::string_view floor = std::string_view(folder).substr(11, folder.size() - 12);
    return floor != "cli" && std::ranges::find(kFloors, floor, &Floor::name) != kFloors.end();
  }
  if (folder == "tests/property/") return true;
  if (folder.starts_with("src/cli/")) return folder == "src/cli/";
  return floor_of_file(path).has_value();
}

// Whether a CMake file of tests/ names this source, as "folder/file.cpp" or "file.cpp".
bool is_named_by_build(const std::string& path, std::span<const SourceFile> files) {
  const std::string file = path.substr(path.rfind('/') + 1);
  return std::ranges::any_of(files, [&](const SourceFile& other) {
    const bool cmake = other.path.ends_with("CMakeLists.txt") || other.path.ends_with(".cmake");
    return cmake && other.path.starts_with("tests/") &&
           find_token(other.text, file) != std::string::npos;
  });
}

void check_dead(std::span<const SourceFile> files, Findings& findings) {
  std::set<std::string> used;
  for (const SourceFile& file : files) {
    if (!is_cpp(file.path)) continue;
    for (const Include& include : includes_of(file.text)) {
      const std::string header = file_of_include(include);
      if (stem(header) != stem(file.path)) used.insert(header);
    }
  }
  for (const SourceFile& file : files) {
    if (is_header(file.path) && floor_of_file(file.path) && !used.contains(file.path)) {
      findings.push_back({file.path, 1, "dead", "no other file includes this header; delete it"});
    }
    if (file.path.ends_with(".cpp") && !is_in_compiled_folder(file.path) &&
        !is_named_by_build(file.path, files)) {
      findings.push_back({file.path, 1, "dead", "no target compiles this file"});
    }
  }
}

}  // namespace

std::vector<Finding> check_tree(std::span<const SourceFile> files) {
  Findings findings;
  LibraryUse library_use(findings);
  for (const SourceFile& file : files) {
    if (!is_cpp(file.path)) continue;
    const std::vector<Include> includes = includes_of(file.text);
    check_floors(file, includes, findings);
    library_use.see(file, includes);
  }
  check_unordered(files, findings);
  check_dead(files, findings);
  return findings;
}

}  // namespace lockstep::tidy
