#include "sim/race_detector.h"

#include <algorithm>

#include "core/check.h"

namespace lockstep::sim {

namespace {

constexpr std::size_t kParts = 3;  // of a layer: kv, temporal, conv
constexpr std::uint32_t kNoPart = 0xffffffffu;
constexpr std::array kStreams{StreamKind::compute, StreamKind::load, StreamKind::offload};

std::size_t layer_part(LayerId layer, Part part) {
  return layer.index() * kParts + static_cast<std::size_t>(part);
}

}  // namespace

RaceDetector::RaceDetector(const std::vector<PoolSpec>& pools, Report report)
    : report_(std::move(report)) {
  for (const PoolSpec& spec : pools) {
    Pool& pool = pools_[index(spec.layout.component)];
    for (const LayerPart& part : spec.layout.parts) {
      const std::size_t at = layer_part(part.layer, part.part);
      if (pool.part_of.size() <= at) pool.part_of.resize(at + 1, kNoPart);
      // K and V of a layer are two ranges and one part.
      if (pool.part_of[at] != kNoPart) continue;
      pool.part_of[at] = static_cast<std::uint32_t>(pool.parts++);
    }
    pool.cells.resize((spec.capacity.index() + 1) * pool.parts);
  }
}

void RaceDetector::join(StreamClock& into, const StreamClock& from) {
  for (std::size_t i = 0; i < kStreamCount; ++i) into[i] = std::max(into[i], from[i]);
}

void RaceDetector::enqueued(StreamKind stream) {
  at(stream).host_clock.push(host_);
}

RaceDetector::Stream& RaceDetector::next_entry(StreamKind kind) {
  Stream& stream = at(kind);
  join(stream.clock, stream.host_clock.pop());
  return stream;
}

void RaceDetector::recorded(StreamKind stream, DeviceEvent::State& event) {
  const StreamClock& clock = next_entry(stream).clock;
  if (event.reached) return;
  event.clock = clock;
  event.clock_of = this;
}

void RaceDetector::waited(StreamKind stream, const DeviceEvent::State& event) {
  Stream& waiting = next_entry(stream);
  if (event.clock_of == this) join(waiting.clock, event.clock);
}

void RaceDetector::signalled(DeviceEvent::State& event) {
  event.clock = host_;
  event.clock_of = this;
}

void RaceDetector::seen_by_host(const DeviceEvent::State& event) {
  if (event.clock_of == this) join(host_, event.clock);
}

void RaceDetector::op_begins(StreamKind stream, const Op& op) {
  ++next_entry(stream).clock[index(stream)];
  if (!op.accesses) return;
  const NameId name = name_id(op.name);
  op.accesses([&](const Access& each) { access(stream, name, each); });
}

RaceDetector::NameId RaceDetector::name_id(std::string_view name) {
  const auto found = std::ranges::find(names_, name);
  if (found != names_.end()) return static_cast<NameId>(found - names_.begin());
  names_.push_back(name);
  CHECK("races.names", names_.size() < 256);
  return static_cast<NameId>(names_.size() - 1);
}

RaceDetector::Cell& RaceDetector::cell(const Access& access) {
  Pool& pool = pools_[index(access.component)];
  const std::size_t part = layer_part(access.layer, access.part);
  CHECK("races.access.part", part < pool.part_of.size() && pool.part_of[part] != kNoPart);
  const std::size_t at = access.row.index() * pool.parts + pool.part_of[part];
  CHECK("races.access.row", at < pool.cells.size());
  return pool.cells[at];
}

void RaceDetector::access(StreamKind stream, NameId name, const Access& access) {
  if (access.row == kTrapRow) return;
  Cell& touched = cell(access);
  const RaceSide side{names_[name], stream, access.mode};
  const Touch touch{at(stream).clock[index(stream)], name};
  compare(access, side, touched.writer, touched.write, AccessMode::write);
  if (access.mode == AccessMode::read) {
    touched.reads[index(stream)] = touch;
    return;
  }
  for (StreamKind reader : kStreams) {
    compare(access, side, reader, touched.reads[index(reader)], AccessMode::read);
  }
  touched = {.reads = {}, .write = touch, .writer = stream};
}

void RaceDetector::compare(const Access& access, RaceSide later, StreamKind stream, Touch touch,
                           AccessMode mode) {
  // No touch is operation 0, which is over everywhere.
  if (stream == later.stream || touch.operation <= at(later.stream).clock[index(stream)]) return;
  const RaceSide earlier{names_[touch.name], stream, mode};
  if (!reported_.insert({access.component, earlier.operation, later.operation}).second) return;
  report_({access.component, access.row, access.layer, access.part, earlier, later});
}

}  // namespace lockstep::sim
