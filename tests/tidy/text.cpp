#include "text.h"

#include <algorithm>
#include <cctype>

namespace lockstep::tidy {

namespace {

// Whether the quote at `i` separates digits (1'000) and opens no character literal.
bool separates_digits(std::string_view text, std::size_t i) {
  std::size_t start = i;
  while (start > 0 && (is_word(text[start - 1]) || text[start - 1] == '\'')) --start;
  return start < i && std::isdigit(static_cast<unsigned char>(text[start])) != 0;
}

// Offset just behind the literal that opens with the quote at `open`.
std::size_t end_of_literal(std::string_view text, std::size_t open) {
  for (std::size_t i = open + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == text[open]) {
      return i + 1;
    }
  }
  return text.size();
}

// Offset just behind the raw literal R"mark(...)mark" whose quote is at `open`.
std::size_t end_of_raw_literal(std::string_view text, std::size_t open) {
  const std::size_t bracket = text.find('(', open);
  if (bracket == std::string_view::npos) return text.size();
  const std::string_view mark = text.substr(open + 1, bracket - open - 1);
  const std::string closing = ")" + std::string(mark) + "\"";
  const std::size_t end = text.find(closing, bracket);
  return end == std::string_view::npos ? text.size() : end + closing.size();
}

// Offset behind the comment or literal that starts at `i`; `i` itself if neither starts there.
std::size_t end_of_blank(std::string_view text, std::size_t i) {
  const std::string_view rest = text.substr(i);
  if (rest.starts_with("//")) return std::min(text.find('\n', i), text.size());
  if (rest.starts_with("/*")) {
    const std::size_t end = text.find("*/", i + 2);
    return end == std::string_view::npos ? text.size() : end + 2;
  }
  if (rest[0] == '"') {
    const bool raw = i > 0 && text[i - 1] == 'R';
    return raw ? end_of_raw_literal(text, i) : end_of_literal(text, i);
  }
  if (rest[0] == '\'' && !separates_digits(text, i)) return end_of_literal(text, i);
  return i;
}

void blank(std::string& text, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    if (text[i] != '\n') text[i] = ' ';
  }
}

}  // namespace

std::string blank_comments_and_literals(std::string_view text) {
  std::string code(text);
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = end_of_blank(text, i);
    blank(code, i, end);
    i = std::max(end, i + 1);
  }
  return code;
}

std::string blank_preprocessor(std::string code) {
  bool continued = false;
  for (std::size_t begin = 0; begin < code.size();) {
    const std::size_t end = std::min(code.find('\n', begin), code.size());
    const std::string_view line = trim(std::string_view(code).substr(begin, end - begin));
    const bool directive = continued || line.starts_with('#');
    continued = directive && line.ends_with('\\');
    if (directive) blank(code, begin, end);
    begin = end + 1;
  }
  return code;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::size_t line_of(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  return 1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
}

bool is_word(char c) {
  return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0;
}

std::size_t find_token(std::string_view code, std::string_view token, std::size_t from) {
  for (std::size_t at = code.find(token, from); at != std::string_view::npos;
       at = code.find(token, at + 1)) {
    const std::size_t end = at + token.size();
    const bool starts = at == 0 || !is_word(token.front()) || !is_word(code[at - 1]);
    const bool ends = end == code.size() || !is_word(token.back()) || !is_word(code[end]);
    if (starts && ends) return at;
  }
  return std::string_view::npos;
}

std::size_t closing_bracket(std::string_view code, std::size_t open) {
  constexpr std::string_view opening = "(<[{";
  constexpr std::string_view closing = ")>]}";
  const char close = closing[opening.find(code[open])];
  std::size_t depth = 0;
  for (std::size_t i = open; i < code.size(); ++i) {
    if (code[i] == code[open]) ++depth;
    if (code[i] == close && --depth == 0) return i;
  }
  return std::string_view::npos;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view spaces = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(spaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(spaces) - begin + 1);
}

std::vector<Include> includes_of(std::string_view text) {
  constexpr std::string_view directive = "#include";
  const std::string code = blank_comments_and_literals(text);
  const std::vector<std::string_view> code_lines = split_lines(code);
  const std::vector<std::string_view> lines = split_lines(text);
  std::vector<Include> includes;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!trim(code_lines[i]).starts_with(directive)) continue;
    const std::string_view name = trim(trim(lines[i]).substr(directive.size()));
    if (name.empty()) continue;
    const std::size_t end = name.find(name[0] == '<' ? '>' : '"', 1);
    if (end == std::string_view::npos) continue;
    includes.push_back({i + 1, std::string(name.substr(1, end - 1)), name[0] == '"'});
  }
  return includes;
}

}  // namespace lockstep::tidy
