#include "sim/defects/store_defects.h"

#include <algorithm>
#include <array>

#include "sim/defects/parts_with.h"

namespace lockstep::sim::defects {

namespace {

class LeaseIgnored : public LoadQueue {
 public:
  using LoadQueue::LoadQueue;

 protected:
  bool accept(const Load& load, LayerId layer,
              const std::vector<StoreResult>& results) const override {
    const bool ended = std::ranges::any_of(results, [](const StoreResult& result) {
      return result.status == StoreStatus::lease_ended;
    });
    return ended || LoadQueue::accept(load, layer, results);
  }
};

constexpr std::array kStoreDefects{
    Defect{"store.lease_ignored", "C08", "D1", "",
           "a page read after its lease ended counts as good", make<WithLoadQueue<LeaseIgnored>>},
};

}  // namespace

std::span<const Defect> store_defects() {
  return kStoreDefects;
}

}  // namespace lockstep::sim::defects
