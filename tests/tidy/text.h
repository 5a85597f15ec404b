// Reading C++ as text: enough of the language to find words, braces and includes, and no more.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::tidy {

// The text with comments and the contents of string and character literals replaced by spaces. Line
// breaks stay, so that offsets and line numbers keep their meaning.
std::string blank_comments_and_literals(std::string_view text);

// The same with preprocessor lines replaced by spaces too. Takes what the function above returns.
std::string blank_preprocessor(std::string code);

// Lines without their line break; a break at the very end starts no further line.
std::vector<std::string_view> split_lines(std::string_view text);

// Number of the line that holds `offset`, from 1.
std::size_t line_of(std::string_view text, std::size_t offset);

// Whether the character can be part of an identifier.
bool is_word(char c);

// Offset of the next `token` at or after `from` that is not part of a longer word; npos if none.
std::size_t find_token(std::string_view code, std::string_view token, std::size_t from = 0);

// Offset of the bracket that closes the one at `open`; npos if none. REQUIRES: code[open] is one of
// "(<[{".
std::size_t closing_bracket(std::string_view code, std::size_t open);

// Without spaces and line breaks at both ends.
std::string_view trim(std::string_view text);

struct Include {
  std::size_t line = 0;
  std::string name;     // between the quotes or angle brackets
  bool quoted = false;  // "name", not <name>
};
std::vector<Include> includes_of(std::string_view text);

}  // namespace lockstep::tidy
