#include "link/transfer.h"

namespace lockstep {

Transfer TransferPlanner::pages(Component component, std::span<const PageHash> hashes,
                                PageRange pages, std::vector<Row> rows) const {
  return {component, std::move(rows), {hashes.begin(), hashes.end()}, pages};
}

Transfer TransferPlanner::state(std::span<const PageHash> run, Pages end, Row row) const {
  return {Component::mamba, {row}, {run.back()}, {end - Pages{1}, end}};
}

}  // namespace lockstep
