#include "cls_zlog/client/append_ids.h"

#include <iterator>

namespace zlog {
namespace {

constexpr uint32_t kBlockBits = 16;  // the appends of a block are in one part
constexpr uint32_t kPartBitsMax = 63;

uint64_t block_of(const AppendId& id) { return id.number >> kBlockBits; }

// The finalizer of MurmurHash3.
uint64_t mix(uint64_t value) {
  value = (value ^ value >> 33) * 0xff51afd7ed558ccd;
  value = (value ^ value >> 33) * 0xc4ceb9fe1a85ec53;
  return value ^ value >> 33;
}

}  // namespace

bool AppendIds::belongs(const AppendId& id) const {
  const uint64_t hash = mix(id.writer_high ^ mix(id.writer_low ^ mix(block_of(id))));
  return ((hash ^ part_.bits) & ((uint64_t{1} << part_.count) - 1)) == 0;
}

bool AppendIds::add(const AppendId& id) {
  if (part_.count > 0 && !belongs(id)) return false;
  // The intervals of a block are separate, so the one at or before `id` decides.
  const auto reaches = [&](Intervals::iterator at) {
    return at != last_of_.end() && at->first.same_writer(id) &&
           block_of(at->first) == block_of(id) && at->first.number <= id.number &&
           (id.number <= at->second || id.number == at->second + 1);
  };
  auto at = recent_;
  if (!reaches(at)) {
    at = last_of_.upper_bound(id);
    at = at == last_of_.begin() ? last_of_.end() : std::prev(at);
  }
  if (reaches(at)) {
    if (id.number <= at->second) return true;
    at->second = id.number;
  } else {
    at = last_of_.emplace(id, id.number).first;
  }
  recent_ = join_next(at);
  if (last_of_.size() > intervals_max_ && part_.count < kPartBitsMax) split();
  return false;
}

AppendIds::Intervals::iterator AppendIds::join_next(Intervals::iterator at) {
  const auto next = std::next(at);
  if (next != last_of_.end() && next->first.same_writer(at->first) &&
      next->first.number == at->second + 1 && block_of(next->first) == block_of(at->first)) {
    at->second = next->second;
    last_of_.erase(next);
  }
  return at;
}

// Drops half of the appends; another pass finds them.
void AppendIds::split() {
  left_.push_back({part_.bits | uint64_t{1} << part_.count, part_.count + 1});
  part_.count++;
  for (auto at = last_of_.begin(); at != last_of_.end();) {
    at = belongs(at->first) ? std::next(at) : last_of_.erase(at);
  }
  recent_ = last_of_.end();
}

bool AppendIds::next_part() {
  last_of_.clear();
  recent_ = last_of_.end();
  if (left_.empty()) return false;
  part_ = left_.back();
  left_.pop_back();
  return true;
}

}  // namespace zlog
