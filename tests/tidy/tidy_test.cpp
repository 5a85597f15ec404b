// Snippets that must and must not be flagged.
#include <algorithm>
#include <string>
#include <vector>

#include "catch.h"
#include "rules.h"
#include "text.h"

using namespace lockstep::tidy;

namespace {

using Rules = std::vector<std::string>;

Rules rules_of(const std::vector<Finding>& findings) {
  Rules rules;
  for (const Finding& finding : findings) rules.push_back(finding.rule);
  return rules;
}

Rules file_rules(const std::string& path, const std::string& text) {
  return rules_of(check_file({path, text}));
}

// The tree's findings of one rule only.
std::vector<Finding> tree_findings(const std::string& rule, const std::vector<SourceFile>& files) {
  std::vector<Finding> findings = check_tree(files);
  std::erase_if(findings, [&](const Finding& finding) { return finding.rule != rule; });
  return findings;
}

std::string function_of(std::size_t lines, const std::string& head = "int f() {\n") {
  std::string text = head;
  for (std::size_t i = 2; i < lines; ++i) text += "  g();\n";
  return text + "}\n";
}

const std::string kHeader = "// What it is for.\n#pragma once\n";

}  // namespace

TEST_CASE("Comments and literals are blanked, and nothing else moves") {
  REQUIRE(blank_comments_and_literals("a // b\nc") == "a     \nc");
  REQUIRE(blank_comments_and_literals("a /* b\nc */ d") == "a     \n     d");
  REQUIRE(blank_comments_and_literals("f(\"x // y\", 'z')") == "f(        ,    )");
  REQUIRE(blank_comments_and_literals("\"a\\\"b\" c") == "       c");
  REQUIRE(blank_comments_and_literals("R\"(a \" b)\" c") == "R" + std::string(10, ' ') + "c");
  REQUIRE(blank_comments_and_literals("R\"m(a )\" b)m\" c") == "R" + std::string(13, ' ') + "c");
  REQUIRE(blank_comments_and_literals("1'000'000 'x'") == "1'000'000    ");
}

TEST_CASE("A token is no part of a longer word") {
  REQUIRE(find_token("strand(rand()", "rand(") == 7);
  REQUIRE(find_token("operand", "rand") == std::string::npos);
  REQUIRE(find_token("randomly", "random") == std::string::npos);
}

TEST_CASE("Includes are read with their line and kind") {
  const std::vector<Include> includes =
      includes_of("// #include \"no.h\"\n#include <vector>\n#include \"core/ids.h\"  // why\n");
  REQUIRE(includes.size() == 2);
  REQUIRE((includes[0].line == 2 && includes[0].name == "vector" && !includes[0].quoted));
  REQUIRE((includes[1].line == 3 && includes[1].name == "core/ids.h" && includes[1].quoted));
}

TEST_CASE("layout: tabs, trailing spaces, the last line break, columns") {
  REQUIRE(file_rules("src/core/a.cpp", "int a;\n").empty());
  REQUIRE(file_rules("src/core/a.cpp", "\tint a;\n") == Rules{"layout"});
  REQUIRE(file_rules("src/core/a.cpp", "int a; \n") == Rules{"layout"});
  REQUIRE(file_rules("src/core/a.cpp", "int a;\r\n") == Rules{"layout"});
  REQUIRE(file_rules("src/core/a.cpp", "int a;") == Rules{"layout"});
  REQUIRE(file_rules("src/core/a.cpp", "") == Rules{"layout"});
  REQUIRE(file_rules("src/core/a.cpp", "//" + std::string(98, 'x') + "\n").empty());
  REQUIRE(file_rules("src/core/a.cpp", "//" + std::string(99, 'x') + "\n") == Rules{"layout"});
  REQUIRE(file_rules("README.md", std::string(200, 'x') + "\n").empty());
  REQUIRE(file_rules("scripts/demo", "#" + std::string(100, 'x') + "\n") == Rules{"layout"});
  std::string accents = "//";
  for (int i = 0; i < 98; ++i) accents += "\xc3\xa9";  // 98 characters in 196 bytes
  REQUIRE(file_rules("src/core/a.cpp", accents + "\n").empty());
}

TEST_CASE("words: unfinished work and paths out of the repository") {
  REQUIRE(file_rules("README.md",
                     "TO"
                     "DO: write\n") == Rules{"words"});
  REQUIRE(file_rules("src/core/a.cpp",
                     "// FIX"
                     "ME\n") == Rules{"words"});
  REQUIRE(file_rules("scripts/demo",
                     "mktemp /tmp/a.XX"
                     "XX"
                     "XX\n")
              .empty());
  REQUIRE(file_rules("README.md",
                     "see .."
                     "/shared/design\n") == Rules{"words"});
}

TEST_CASE("header: a comment and #pragma once above the first code") {
  REQUIRE(file_rules("src/core/a.h", kHeader + "int f();\n").empty());
  REQUIRE(file_rules("src/core/a.h", "#pragma once\n\n// Why.\nint f();\n").empty());
  REQUIRE(file_rules("src/core/a.h", "#pragma once\nint f();\n") == Rules{"header"});
  REQUIRE(file_rules("src/core/a.h", "// Why.\nint f();\n#pragma once\n") == Rules{"header"});
  REQUIRE(file_rules("src/core/a.cpp", "int f() { return 1; }\n").empty());
}

TEST_CASE("function: at most 70 lines, whatever stands around it") {
  REQUIRE(file_rules("src/core/a.cpp", function_of(70)).empty());
  REQUIRE(file_rules("src/core/a.cpp", function_of(71)) == Rules{"function"});
  const auto in = [](const std::string& around, std::size_t lines, const std::string& head) {
    return file_rules("src/core/a.cpp", around + function_of(lines, head) + "}\n");
  };
  REQUIRE(in("namespace a {\n", 71, "void f(int a = {}) {\n") == Rules{"function"});
  REQUIRE(in("class A {\n public:\n", 71, "int f() const override {\n") == Rules{"function"});
  REQUIRE(in("struct A {\n", 71, "A() : a_{1}, b_{2} {\n") == Rules{"function"});
  REQUIRE(in("struct A {\n", 71, "A(int a) noexcept : a_(a), b_{2} {\n") == Rules{"function"});
  REQUIRE(in("struct A {\n", 70, "A(int a) noexcept : a_(a), b_{2} {\n").empty());
  REQUIRE(in("namespace a {\n", 71, "auto f() -> std::string {\n") == Rules{"function"});
  REQUIRE(in("namespace a {\n", 71, "template <class T>\nT f() {\n") == Rules{"function"});
  REQUIRE(in("struct A {\n", 71, "bool operator==(const A& other) const {\n") == Rules{"function"});
  REQUIRE(in("int f() { return 1; }\nnamespace a {\n", 71, "TEST_CASE(\"a {\") {\n") ==
          Rules{"function"});
}

TEST_CASE("function: long classes, tables and macros are none") {
  REQUIRE(file_rules("src/core/a.cpp", function_of(200, "class A : public B {\n")).empty());
  REQUIRE(
      file_rules("src/core/a.cpp", function_of(200, "template <class T>\nclass A {\n")).empty());
  REQUIRE(file_rules("src/core/a.cpp", function_of(200, "namespace a {\n")).empty());
  std::string table = "constexpr auto kTable = std::to_array<Row>({\n";
  for (int i = 0; i < 100; ++i) table += "    {\"a\", Tokens(1)},\n";
  REQUIRE(file_rules("src/core/a.cpp", table + "});\n").empty());
  std::string macro = "#define A(x) \\\n";
  for (int i = 0; i < 100; ++i) macro += "  f(x) { \\\n";
  REQUIRE(file_rules("src/core/a.cpp", macro + "  g(x)\n").empty());
}

TEST_CASE("function: the report names the first line of the head") {
  const std::vector<Finding> findings =
      check_file({"src/core/a.cpp", "int a;\n\n// Comment.\n" + function_of(75)});
  REQUIRE(findings.size() == 1);
  REQUIRE(findings[0].line == 4);
  REQUIRE(findings[0].message.find("75 lines") != std::string::npos);
}

TEST_CASE("banned: each call names its replacement, and comments and names are free") {
  const auto message = [](const std::string& line) {
    const std::vector<Finding> findings = check_file({"src/core/a.cpp", line + "\n"});
    return findings.size() == 1 && findings[0].rule == "banned" ? findings[0].message : "";
  };
  REQUIRE(message("auto t = std::chrono::steady_clock::now();").find("core/clock.h") !=
          std::string::npos);
  REQUIRE(message("long t = time(nullptr);").find("core/clock.h") != std::string::npos);
  REQUIRE(message("int r = rand();").find("core/random.h") != std::string::npos);
  REQUIRE(message("int r = std::rand();").find("core/random.h") != std::string::npos);
  REQUIRE(message("std::mt19937 generator(1);").find("core/random.h") != std::string::npos);
  REQUIRE(message("std::random_device device;").find("core/random.h") != std::string::npos);
  REQUIRE_FALSE(message("auto id = std::this_thread::get_id();").empty());
  REQUIRE(message("std::map<Node*, int> order;").find("core/ids.h") != std::string::npos);
  REQUIRE(message("std::set<const Node* const> seen;").find("core/ids.h") != std::string::npos);
  REQUIRE(message("cudaMalloc(&pointer, 16);").find("device/device.h") != std::string::npos);
  for (const char* fine :
       {"// steady_clock", "const char* text = \"rand()\";", "Nanoseconds run_time(0);",
        "std::map<NodeId, Node*> nodes;", "int operand(int a);", "double time(Stream stream);"}) {
    REQUIRE(message(fine).empty());
  }
}

TEST_CASE("banned: wall clocks are legitimate in the command line, device memory in its back end") {
  const std::string clock = "auto t = std::chrono::steady_clock::now();\n";
  REQUIRE(file_rules("src/cli/progress.cpp", clock).empty());
  REQUIRE(file_rules("sim/world.cpp", clock) == Rules{"banned"});
  REQUIRE(file_rules("src/device/cuda.cpp", "cudaMalloc(&pointer, 16);\n").empty());
  REQUIRE(file_rules("src/cli/run.cpp", "int r = rand();\n") == Rules{"banned"});
}

TEST_CASE("floor: an include points down, and the oracle does not see the linker") {
  const auto flagged = [](const std::string& path, const std::string& include) {
    return !tree_findings("floor", {{path, "#include \"" + include + "\"\n"}}).empty();
  };
  REQUIRE_FALSE(flagged("src/link/a.cpp", "link/keys.h"));
  REQUIRE_FALSE(flagged("src/link/a.cpp", "core/ids.h"));
  REQUIRE(flagged("src/link/a.cpp", "model/model.h"));
  REQUIRE(flagged("src/store/a.h", "link/keys.h"));
  REQUIRE(flagged("src/core/a.cpp", "device/device.h"));
  REQUIRE_FALSE(flagged("src/engine/a.cpp", "model/model.h"));
  REQUIRE(flagged("model/a.cpp", "engine/engine.h"));
  REQUIRE_FALSE(flagged("oracle/a.cpp", "model/model.h"));
  REQUIRE_FALSE(flagged("oracle/a.cpp", "device/device.h"));
  for (const char* hidden : {"pool/group.h", "tree/tree.h", "store/store.h", "link/keys.h",
                             "engine/engine.h", "sim/world.h"}) {
    REQUIRE(flagged("oracle/a.cpp", hidden));
  }
  REQUIRE_FALSE(flagged("sim/defects/a.cpp", "oracle/judge.h"));
  REQUIRE(flagged("sim/a.cpp", "reports/junit.h"));
  REQUIRE_FALSE(flagged("src/cli/a.cpp", "reports/junit.h"));
  REQUIRE_FALSE(flagged("tests/unit/core/a.cpp", "sim/world.h"));
  REQUIRE(flagged("src/link/a.cpp", "keys.h"));
}

TEST_CASE("library: what is slow to compile stays in few files") {
  std::vector<SourceFile> files;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    files.push_back({"sim/" + std::string(name) + ".cpp", "#include <nlohmann/json.hpp>\n"});
  }
  REQUIRE(tree_findings("library", files).empty());
  files.push_back({"sim/f.cpp", "#include <nlohmann/json.hpp>\n"});
  REQUIRE(tree_findings("library", files).size() == 1);
  const auto flagged = [](const std::string& path, const std::string& include) {
    return !tree_findings("library", {{path, "#include <" + include + ">\n"}}).empty();
  };
  REQUIRE(flagged("sim/a.h", "nlohmann/json_fwd.hpp"));
  REQUIRE(flagged("sim/a.cpp", "CLI/CLI.hpp"));
  REQUIRE_FALSE(flagged("src/cli/main.cpp", "CLI/CLI.hpp"));
  REQUIRE(flagged("tests/unit/core/a.cpp", "rapidcheck.h"));
  REQUIRE_FALSE(flagged("tests/property/a.cpp", "rapidcheck.h"));
  REQUIRE(tree_findings("library", {{"src/cli/a.cpp", "#include <CLI/CLI.hpp>\n"},
                                    {"src/cli/b.cpp", "#include <CLI/CLI.hpp>\n"}})
              .size() == 1);
}

TEST_CASE("unordered: no loop over a container whose order is that of a hash") {
  const std::string member = kHeader + "std::unordered_map<Key, std::vector<int>> nodes_;\n";
  const auto flagged = [&](const std::string& code, const std::string& path = "src/tree/a.cpp") {
    const std::vector<SourceFile> files{{"src/tree/a.h", member}, {path, code + "\n"}};
    return !tree_findings("unordered", files).empty();
  };
  REQUIRE(flagged("for (const auto& [key, node] : nodes_) f(node);"));
  REQUIRE(flagged("for (auto& node : this->nodes_) f(node);"));
  REQUIRE(flagged("for (int i = 0; auto& node : nodes_) f(node, i);"));
  REQUIRE(flagged("for (auto it = nodes_.begin(); it != nodes_.end(); ++it) f(*it);"));
  REQUIRE(flagged("std::unordered_set<int> seen;\nfor (int s : seen) f(s);"));
  REQUIRE_FALSE(flagged("auto it = nodes_.find(key);\nif (it != nodes_.end()) f(*it);"));
  REQUIRE_FALSE(flagged("for (int i : nodes_.at(key)) f(i);"));
  REQUIRE_FALSE(flagged("std::map<int, int> order;\nfor (auto& o : order) f(o);"));
  REQUIRE_FALSE(flagged("for (auto& node : nodes_) f(node);", "src/tree/b.cpp"));  // another nodes_
  REQUIRE_FALSE(
      flagged("std::unordered_set<int> s;\nfor (int i : s) f(i);", "tests/unit/core/a.cpp"));
}

TEST_CASE("dead: headers that nobody includes, sources that nobody compiles") {
  const SourceFile header{"src/core/a.h", kHeader};
  const SourceFile own{"src/core/a.cpp", "#include \"core/a.h\"\n"};
  const SourceFile user{"model/b.cpp", "#include \"core/a.h\"\n"};
  REQUIRE(tree_findings("dead", {header, own}).size() == 1);
  REQUIRE(tree_findings("dead", {header, own, user}).empty());
  const auto compiled = [](const std::string& path) {
    return tree_findings("dead", {{path, "int a;\n"}}).empty();
  };
  REQUIRE(compiled("src/cli/main.cpp"));
  REQUIRE_FALSE(compiled("src/cli/verbs/main.cpp"));
  REQUIRE_FALSE(compiled("src/helper/a.cpp"));
  REQUIRE(compiled("sim/defects/a.cpp"));
  REQUIRE(compiled("tests/unit/core/a.cpp"));
  REQUIRE_FALSE(compiled("tests/unit/a.cpp"));
  REQUIRE_FALSE(compiled("tests/unit/cli/a.cpp"));
  const SourceFile build{"tests/CMakeLists.txt", "add_executable(tidy tidy/tidy.cpp)\n"};
  REQUIRE(tree_findings("dead", {build, {"tests/tidy/tidy.cpp", ""}}).empty());
  REQUIRE(tree_findings("dead", {build, {"tests/tidy/other.cpp", ""}}).size() == 1);
}
