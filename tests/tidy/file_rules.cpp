#include <algorithm>
#include <array>
#include <string_view>

#include "rules.h"
#include "text.h"

namespace lockstep::tidy {

namespace {

using Findings = std::vector<Finding>;

bool is_code(const std::string& path) {
  constexpr std::array<std::string_view, 4> endings{".py", ".sh", ".cmake", "CMakeLists.txt"};
  if (is_cpp(path) || path.starts_with("scripts/") || path.starts_with(".ci/")) return true;
  return std::ranges::any_of(endings, [&](std::string_view end) { return path.ends_with(end); });
}

// Code points, which is what an editor shows for the characters that occur here.
std::size_t columns(std::string_view line) {
  return static_cast<std::size_t>(std::ranges::count_if(
      line, [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; }));
}

void check_layout(const SourceFile& file, Findings& findings) {
  const std::vector<std::string_view> lines = split_lines(file.text);
  const auto report = [&](std::size_t line, std::string message) {
    findings.push_back({file.path, line, "layout", std::move(message)});
  };
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    if (line.find('\t') != std::string_view::npos) report(i + 1, "tab; write spaces");
    if (line.ends_with(' ') || line.ends_with('\r')) report(i + 1, "space at the end of the line");
    if (is_code(file.path) && columns(line) > kMostColumns) {
      report(i + 1, std::to_string(columns(line)) + " columns, at most " +
                        std::to_string(kMostColumns) + " are allowed");
    }
  }
  if (!file.text.ends_with('\n')) report(lines.size(), "no newline at the end of the file");
}

void check_words(const SourceFile& file, Findings& findings) {
  // In two halves, so that this file does not find itself.
  static const std::array<std::string, 4> unfinished{
      "FIX"
      "ME",
      "TO"
      "DO",
      "XX"
      "X",
      "WI"
      "P"};
  static const std::array<std::string, 2> outside{
      ".."
      "/shared",
      "/wo"
      "rk/"};
  for (const std::string& word : unfinished) {
    for (std::size_t at = find_token(file.text, word); at != std::string::npos;
         at = find_token(file.text, word, at + 1)) {
      findings.push_back({file.path, line_of(file.text, at), "words",
                          word + "; finish it, or say in a sentence what does not hold"});
    }
  }
  for (const std::string& path : outside) {
    const std::size_t at = file.text.find(path);
    if (at == std::string::npos) continue;
    findings.push_back({file.path, line_of(file.text, at), "words",
                        path + " leads out of the repository, which must stand alone"});
  }
}

void check_header(const SourceFile& file, Findings& findings) {
  bool comment = false;
  bool pragma = false;
  for (std::string_view line : split_lines(file.text)) {
    line = trim(line);
    if (line == "#pragma once") {
      pragma = true;
    } else if (line.starts_with("//")) {
      comment = true;
    } else if (!line.empty()) {
      break;
    }
  }
  if (comment && pragma) return;
  findings.push_back({file.path, 1, "header",
                      pragma ? "open with a comment that says what the header is for"
                             : "no #pragma once above the first code"});
}

// What a pair of braces holds. Only a namespace or a type can hold functions.
enum class Scope { declarations, function, other };

// The head without what may stand before the word that says what it is.
std::string_view strip_template_and_attributes(std::string_view head) {
  for (;;) {
    head = trim(head);
    std::size_t open = std::string_view::npos;
    if (head.starts_with("template")) open = head.find('<');
    if (head.starts_with("[[")) open = 0;
    if (open == std::string_view::npos) return head;
    const std::size_t close = closing_bracket(head, open);
    if (close == std::string_view::npos) return head;
    head.remove_prefix(close + 1);
  }
}

bool has_top_level_assignment(std::string_view head) {
  int depth = 0;
  for (std::size_t i = 0; i < head.size(); ++i) {
    if (head[i] == '(') ++depth;
    if (head[i] == ')') --depth;
    if (head[i] == '=' && depth == 0 && !trim(head.substr(0, i)).ends_with("operator")) return true;
  }
  return false;
}

// Whether the brace behind `head` initialises a member, as in "Pool() : rows_" or "Pool() : a_(1),
// b_".
bool ends_in_member_initializer(std::string_view head) {
  const std::string_view tail = trim(head.substr(head.rfind(')') + 1));
  std::size_t colon = tail.find(':');
  while (colon != std::string_view::npos && tail.substr(colon).starts_with("::")) {
    colon = tail.find(':', colon + 2);
  }
  return (colon != std::string_view::npos || tail.starts_with(',')) && !tail.ends_with('}');
}

// What the brace behind `head` opens, at a place where declarations stand.
Scope classify(std::string_view head) {
  constexpr std::array<std::string_view, 7> words{
      "namespace", "inline namespace", "class", "struct", "union", "enum", "extern"};
  head = strip_template_and_attributes(head);
  for (std::string_view word : words) {
    if (find_token(head, word) == 0) return Scope::declarations;
  }
  const auto opened = std::ranges::count(head, '(');
  if (opened == 0 || opened != std::ranges::count(head, ')')) return Scope::other;
  if (head.find("operator") == std::string_view::npos && has_top_level_assignment(head)) {
    return Scope::other;
  }
  return ends_in_member_initializer(head) ? Scope::other : Scope::function;
}

bool is_access_specifier(std::string_view head) {
  head = trim(head);
  return head == "public" || head == "protected" || head == "private";
}

class FunctionLengths {
 public:
  FunctionLengths(const SourceFile& file, std::string code, Findings& findings)
      : file_(file), code_(std::move(code)), findings_(findings) {}

  void check() {
    for (std::size_t i = 0; i < code_.size(); ++i) {
      switch (code_[i]) {
        case '{':
          open(i);
          break;
        case '}':
          close(i);
          break;
        case ';':
          head_ = i + 1;
          break;
        case ':':
          if (is_access_specifier(head_before(i))) head_ = i + 1;
          break;
        default:
          break;
      }
    }
  }

 private:
  struct Opened {
    Scope scope = Scope::other;
    std::size_t first_line = 0;
  };

  std::string_view head_before(std::size_t i) const {
    return std::string_view(code_).substr(head_, i - head_);
  }

  bool among_declarations() const {
    return opened_.empty() || opened_.back().scope == Scope::declarations;
  }

  void open(std::size_t brace) {
    const Scope scope = among_declarations() ? classify(head_before(brace)) : Scope::other;
    const std::size_t start = code_.find_first_not_of(" \n", head_);
    opened_.push_back({scope, line_of(code_, start)});
    if (scope != Scope::other) head_ = brace + 1;
  }

  void close(std::size_t brace) {
    if (opened_.empty()) return;
    const Opened opened = opened_.back();
    opened_.pop_back();
    // Braces of an initializer are part of the declaration that goes on behind them.
    if (opened.scope != Scope::other) head_ = brace + 1;
    const std::size_t lines = line_of(code_, brace) - opened.first_line + 1;
    if (opened.scope != Scope::function || lines <= kMostFunctionLines) return;
    findings_.push_back({file_.path, opened.first_line, "function",
                         std::to_string(lines) + " lines, at most " +
                             std::to_string(kMostFunctionLines) + " are allowed; split it"});
  }

  const SourceFile& file_;
  const std::string code_;
  Findings& findings_;
  std::vector<Opened> opened_;
  std::size_t head_ = 0;  // where the declaration that is being read starts
};

struct Ban {
  std::string_view token;
  std::string_view instead;
  std::vector<std::string_view> allowed;  // folders where the call is legitimate, with the reason
};

const std::vector<Ban>& bans() {
  static const std::vector<std::string_view> nowhere;
  // Progress bars and rates are for people; benchmarks measure real time.
  static const std::vector<std::string_view> wall_clock{"src/cli/", "tests/bench/"};
  static const std::vector<std::string_view> device{"src/device/"};
  static constexpr std::string_view clock = "a Clock that comes in by constructor (core/clock.h)";
  static constexpr std::string_view random = "a substream of the run's seed (core/random.h)";
  static constexpr std::string_view thread = "a Clock or an id (core/ids.h): a run has one thread";
  static constexpr std::string_view memory = "Device::allocate (device/device.h)";
  static const std::vector<Ban> table{
      {"system_clock", clock, wall_clock},
      {"steady_clock", clock, wall_clock},
      {"high_resolution_clock", clock, wall_clock},
      {"clock_gettime", clock, wall_clock},
      {"gettimeofday", clock, wall_clock},
      {"std::time(", clock, wall_clock},
      {"time(nullptr)", clock, wall_clock},
      {"time(NULL)", clock, wall_clock},
      {"time(0)", clock, wall_clock},
      {"std::clock(", clock, wall_clock},
      {"rand(", random, nowhere},
      {"srand(", random, nowhere},
      {"random_device", random, nowhere},
      {"mt19937", random, nowhere},
      {"mt19937_64", random, nowhere},
      {"default_random_engine", random, nowhere},
      {"uniform_int_distribution", random, nowhere},
      {"uniform_real_distribution", random, nowhere},
      {"bernoulli_distribution", random, nowhere},
      {"normal_distribution", random, nowhere},
      {"std::shuffle(", random, nowhere},
      {"std::this_thread", thread, wall_clock},
      {"std::thread::id", thread, nowhere},
      {"gettid", thread, nowhere},
      {"pthread_self", thread, nowhere},
      {"cudaMalloc", memory, device},
      {"cudaMallocAsync", memory, device},
      {"cudaMallocManaged", memory, device},
      {"cudaMallocHost", memory, device},
      {"cudaFree", memory, device},
      {"cudaFreeAsync", memory, device},
  };
  return table;
}

void check_bans(const SourceFile& file, const std::string& code, Findings& findings) {
  for (const Ban& ban : bans()) {
    const bool allowed = std::ranges::any_of(
        ban.allowed, [&](std::string_view folder) { return file.path.starts_with(folder); });
    if (allowed) continue;
    for (std::size_t at = find_token(code, ban.token); at != std::string::npos;
         at = find_token(code, ban.token, at + 1)) {
      findings.push_back({file.path, line_of(code, at), "banned",
                          std::string(ban.token) + "; use " + std::string(ban.instead)});
    }
  }
}

// The first argument of the template whose '<' is at `open`.
std::string_view first_template_argument(std::string_view code, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open + 1; i < code.size(); ++i) {
    if (depth == 0 && (code[i] == ',' || code[i] == '>')) {
      return trim(code.substr(open + 1, i - open - 1));
    }
    if (code[i] == '<') ++depth;
    if (code[i] == '>') --depth;
  }
  return {};
}

void check_pointer_keys(const SourceFile& file, const std::string& code, Findings& findings) {
  constexpr std::array<std::string_view, 6> containers{
      "map<", "set<", "multimap<", "multiset<", "unordered_map<", "unordered_set<"};
  for (std::string_view container : containers) {
    for (std::size_t at = find_token(code, container); at != std::string::npos;
         at = find_token(code, container, at + 1)) {
      std::string_view key = first_template_argument(code, at + container.size() - 1);
      if (key.ends_with("const")) key = trim(key.substr(0, key.size() - 5));
      if (!key.ends_with('*')) continue;
      findings.push_back({file.path, line_of(code, at), "banned",
                          "the pointer " + std::string(key) +
                              " as a key; use an id (core/ids.h), addresses differ between runs"});
    }
  }
}

}  // namespace

bool is_header(const std::string& path) {
  return path.ends_with(".h");
}

bool is_cpp(const std::string& path) {
  constexpr std::array<std::string_view, 5> endings{".h", ".cpp", ".cu", ".cuh", ".cpp.in"};
  return std::ranges::any_of(endings, [&](std::string_view end) { return path.ends_with(end); });
}

std::vector<Finding> check_file(const SourceFile& file) {
  Findings findings;
  check_layout(file, findings);
  check_words(file, findings);
  if (!is_cpp(file.path)) return findings;
  if (is_header(file.path)) check_header(file, findings);
  const std::string code = blank_comments_and_literals(file.text);
  FunctionLengths(file, blank_preprocessor(code), findings).check();
  check_bans(file, code, findings);
  check_pointer_keys(file, code, findings);
  return findings;
}

}  // namespace lockstep::tidy
