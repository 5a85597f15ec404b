// Compares what operations declare with what they touch: whatever an operation does not declare is
// taken away while its bytes move.
//
//   before   everything undeclared is kept aside and poisoned
//   bytes    of the operation move, alone
//   after    an undeclared part that is no poison any more was written without being declared;
//            everything undeclared comes back
//
// A read of an undeclared part computes with poison instead, and the judges see it (D1, D2). Reads
// and writes count alike for what stays: that a part declared as read only is not written is
// compared too.
//
// Verified: that nothing undeclared is written, and that nothing that is computed depends on it.
// Not verified: that what is declared is really touched, and what an operation reads of a part that
// it declares as written only. It copies every pool twice per operation: for small pools.
#pragma once

#include <functional>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "device/stepped.h"
#include "pool/group.h"

namespace lockstep::sim {

struct UndeclaredWrite {
  std::string_view operation;
  Component component = Component::full;
  Row row{};
  LayerId layer{};
  Part part = Part::kv;
};

class AccessCheck : public DeviceListener {
 public:
  using Report = std::function<void(const UndeclaredWrite&)>;
  explicit AccessCheck(Report report) : report_(std::move(report)) {}
  // The pools that operations work on; they outlive the check. Before the first operation.
  void watch(PoolGroup& pools);

  void bytes_begin(const Op& op) override;
  void bytes_end(const Op& op) override;

 private:
  // One range of one row, as long as the bytes of an operation move. K and V of a layer are two
  // ranges and one part.
  struct Cell {
    Component component = Component::full;
    Row row{};
    LayerPart part;
    std::span<std::byte> bytes;
    bool declared = false;
    bool written = false;  // declared as written
    std::vector<std::byte> before{};
  };

  void declare(const Access& access);

  Report report_;
  std::vector<Cell> cells_;
  std::multimap<std::tuple<Component, Row, LayerId, Part>, std::size_t> at_;
};

}  // namespace lockstep::sim
