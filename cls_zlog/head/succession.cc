#include "cls_zlog/head/succession.h"

#include <algorithm>
#include <cstddef>

namespace zlog {

bool may_follow(const View& next, const View* base, Succession* out) {
  const Stripe& last = next.stripes.back();
  const bool makes = last.id == next.epoch;
  if (makes) out->made = &last;
  if (base == nullptr) return makes && next.stripes.size() == 1 && last.start == 0;
  if (next.log_id != base->log_id) return false;
  if (base->state == LogState::kRemoved && next.state != LogState::kRemoved) return false;

  std::vector<Stripe> all = base->stripes;
  if (makes) {
    Stripe ended = all.back();
    all.pop_back();
    if (last.start < ended.start) return false;
    ended.end = last.start;
    if (ended.valid()) {
      all.push_back(ended);
    } else {
      out->left.push_back(ended);
    }
    all.push_back(last);
  }
  if (next.stripes.size() > all.size()) return false;
  const auto kept = all.end() - static_cast<std::ptrdiff_t>(next.stripes.size());
  out->left.insert(out->left.end(), all.begin(), kept);
  return std::equal(kept, all.end(), next.stripes.begin());
}

}  // namespace zlog
