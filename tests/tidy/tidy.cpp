// tidy ROOT: checks the repository at ROOT against the rules of rules.h.
// Exit status: 0 nothing found, 1 findings (one per line: path:line: rule: message), 2 bad usage.
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "rules.h"

namespace lockstep::tidy {

namespace {

namespace fs = std::filesystem;

// Folders whose text files are read; of the root itself only its own files are.
constexpr std::array<const char*, 10> kFolders{
    "src", "model", "oracle", "sim", "reports", "include", "tests", "scripts", "scenarios", ".ci"};

// Inputs that are wrong on purpose.
bool is_bad_input(const std::string& path) {
  return path.starts_with("tests/bad_input/") && !path.ends_with(".sh");
}

// Compressed traces and the like hold a zero byte early on.
bool is_text(const std::string& content) {
  return content.find('\0') == std::string::npos;
}

std::string read(const fs::path& path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

void add_file(const fs::path& root, const fs::path& path, std::vector<SourceFile>& files) {
  SourceFile file{path.lexically_relative(root).generic_string(), ""};
  if (is_bad_input(file.path)) return;
  file.text = read(path);
  if (is_text(file.text)) files.push_back(std::move(file));
}

// Sorted by path.
std::vector<SourceFile> read_tree(const fs::path& root) {
  std::vector<SourceFile> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    // In a linked worktree .git is a file that names the repository.
    if (entry.is_regular_file() && entry.path().filename() != ".git") {
      add_file(root, entry.path(), files);
    }
  }
  for (const char* folder : kFolders) {
    if (!fs::exists(root / folder)) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.is_regular_file()) add_file(root, entry.path(), files);
    }
  }
  std::ranges::sort(files, {}, &SourceFile::path);
  return files;
}

int run(const fs::path& root) {
  const std::vector<SourceFile> files = read_tree(root);
  std::vector<Finding> findings = check_tree(files);
  for (const SourceFile& file : files) {
    for (Finding& finding : check_file(file)) findings.push_back(std::move(finding));
  }
  std::ranges::stable_sort(findings, {}, &Finding::path);
  for (const Finding& finding : findings) {
    std::cout << finding.path << ":" << finding.line << ": " << finding.rule << ": "
              << finding.message << "\n";
  }
  std::cout << files.size() << " files, " << findings.size() << " findings\n";
  return findings.empty() ? 0 : 1;
}

}  // namespace

}  // namespace lockstep::tidy

int main(int argc, char** argv) {
  if (argc != 2 || !std::filesystem::exists(std::string(argv[1]) + "/CMakeLists.txt")) {
    std::cerr << "usage: tidy ROOT, where ROOT is the folder of the topmost CMakeLists.txt\n";
    return 2;
  }
  return lockstep::tidy::run(argv[1]);
}
