// The result file: one envelope for all verbs, with the list of the verb
// that wrote it. Numbers that are not finite and figures that a run does not have are null.
#pragma once

#include <span>
#include <string_view>

#include "core/json.h"
#include "reports/run_entry.h"

namespace lockstep::reports {

// version, tool, command, ok.
Json::Object result_envelope(std::string_view command, bool ok);

Json run_json(std::span<const RunEntry> entries);

// One violation; the request by name.
Json violation_json(const oracle::Violation& violation, const sim::RunResult& result);
// counters, faults_injected and sometimes of a run.
Json counters_json(const sim::RunResult& result);
// 16 hexadecimal digits.
std::string digest_text(std::uint64_t digest);

}  // namespace lockstep::reports
