#include "reports/junit.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "reports/console.h"

namespace lockstep::reports {
namespace {

// Characters that XML 1.0 does not allow become '?'.
std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\n':
        out += "&#10;";
        break;
      case '\t':
        out += "&#9;";
        break;
      default:
        out += byte < 0x20 ? '?' : c;
    }
  }
  return out;
}

std::string details(const RunEntry& entry) {
  std::string text;
  for (const std::string& sentence : entry.result.unexpected) text += escaped(sentence) + "\n";
  for (const oracle::Violation& violation : entry.result.violations) {
    text += escaped(violation_line(violation, entry.result)) + "\n";
  }
  return text;
}

std::string first_problem(const RunEntry& entry) {
  if (!entry.result.unexpected.empty()) return entry.result.unexpected.front();
  if (entry.result.violations.empty()) return "not as expected";
  return violation_line(entry.result.violations.front(), entry.result);
}

void append_case(const RunEntry& entry, std::string& xml) {
  xml += fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\"",
                     escaped(entry.file), escaped(entry.name), entry.wall_time.count());
  if (entry.refusal) {
    xml += fmt::format(">\n      <error message=\"{}\"/>\n    </testcase>\n",
                       escaped(entry.refusal->message));
  } else if (!entry.as_expected) {
    xml += fmt::format(">\n      <failure message=\"{}\">{}</failure>\n    </testcase>\n",
                       escaped(first_problem(entry)), details(entry));
  } else {
    xml += "/>\n";
  }
}

}  // namespace

std::string junit_xml(std::span<const RunEntry> entries) {
  const auto errors = std::count_if(entries.begin(), entries.end(), [](const RunEntry& entry) {
    return entry.refusal.has_value();
  });
  const auto failures = std::count_if(entries.begin(), entries.end(), [](const RunEntry& entry) {
    return !entry.refusal && !entry.as_expected;
  });
  std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n";
  xml += fmt::format(
      "  <testsuite name=\"lockstep run\" tests=\"{}\" failures=\"{}\" errors=\"{}\">\n",
      entries.size(), failures, errors);
  for (const RunEntry& entry : entries) append_case(entry, xml);
  return xml + "  </testsuite>\n</testsuites>\n";
}

}  // namespace lockstep::reports
