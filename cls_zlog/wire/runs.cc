#include "cls_zlog/wire/runs.h"

#include "cls_zlog/base/limits.h"

namespace zlog {
namespace {

constexpr uint32_t kRunBytes = 8 + 4;
constexpr uint32_t kShiftAt = 16;

}  // namespace

uint32_t packed(const Striping& striping) { return striping.stride | striping.shift << kShiftAt; }

Striping unpacked(uint32_t striping) {
  return {striping & ((1u << kShiftAt) - 1), striping >> kShiftAt};
}

bool Runs::begin(const Striping& striping) {
  striping_ = striping;
  return striping.stride >= 1 && striping.stride <= limits::width_max &&
         striping.shift <= limits::unit_shift_max;
}

// Nothing can overflow: first <= 2^63 - 1, and a run spans less than 2^16 * 2^10 + 2^26.
bool Runs::add(uint64_t first, uint32_t length) {
  if (length == 0 || length > limits::entries_max - count_) return false;
  if (first > limits::position_max) return false;
  if (striping_.after(first, length - 1) > limits::position_max) return false;
  if (!runs_.empty()) {
    if (first == striping_.next(last())) {
      runs_.back().length += length;
      count_ += length;
      return true;
    }
    if (first <= last() || striping_.residue(first) != residue()) return false;
  }
  runs_.push_back({first, length});
  count_ += length;
  return true;
}

bool Runs::decode(wire::Reader* reader, Runs* out) {
  Runs runs;
  const bool begun = runs.begin(unpacked(reader->u32()));
  const uint32_t count = reader->u32();
  if (!reader->ok() || !begun) return false;
  if (count < 1 || count > limits::entries_max || reader->rest().size() / kRunBytes < count) {
    return false;
  }
  runs.runs_.reserve(count);
  for (uint32_t i = 0; i < count; i++) {
    const uint64_t first = reader->u64();
    if (!runs.add(first, reader->u32())) return false;
  }
  *out = std::move(runs);
  return true;
}

void Runs::encode(wire::Writer* writer) const {
  writer->u32(packed(striping_)).u32(static_cast<uint32_t>(runs_.size()));
  for (const Run& run : runs_) writer->u64(run.first).u32(run.length);
}

std::vector<uint64_t> Runs::positions() const {
  std::vector<uint64_t> positions;
  positions.reserve(count_);
  for (const Run& run : runs_) {
    uint64_t position = run.first;
    for (uint32_t i = 0; i < run.length; i++, position = striping_.next(position)) {
      positions.push_back(position);
    }
  }
  return positions;
}

}  // namespace zlog
