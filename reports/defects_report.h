// What `lockstep defects` reports: the planted defects, and the kill matrix.
#pragma once

#include <span>
#include <string>

#include "core/json.h"
#include "sim/defects/defect.h"
#include "sim/kill_matrix.h"

namespace lockstep::reports {

// Id, class, phase, required invariant and what is wrong.
std::string defect_list_text(std::span<const sim::Defect> defects);
Json defect_list_json(std::span<const sim::Defect> defects);

// Per defect the seeds that it took and who saw it; per detector what would be missed without it.
std::string kill_matrix_text(const sim::KillMatrix& matrix);
Json kill_matrix_json(const sim::KillMatrix& matrix);

}  // namespace lockstep::reports
