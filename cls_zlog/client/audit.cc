#include "cls_zlog/client/audit.h"

#include <algorithm>
#include <cerrno>

#include "cls_zlog/wire/frame.h"
#include "cls_zlog/wire/stripe_messages.h"

namespace zlog {
namespace {

AppendId id_of(const VerifiedRow& row, uint32_t i) {
  return {wire::load<uint64_t>(row.writer.data()), wire::load<uint64_t>(row.writer.data() + 8),
          row.number + uint64_t{i} * row.step};
}

// The counter of each state.
constexpr uint64_t Audit::Counts::* kCounters[] = {
    &Audit::Counts::entries, &Audit::Counts::unwritten, &Audit::Counts::filled,
    &Audit::Counts::trimmed, &Audit::Counts::lost,      &Audit::Counts::unreadable,
    &Audit::Counts::unknown,
};

// Adds a position to a row. False: it does not continue the row.
bool continues(AuditRow* row, uint64_t position) {
  if (row->end != position) return false;
  row->end += row->step;
  return true;
}

}  // namespace

void Audit::begin(Pass pass, uint64_t start, uint64_t end, const Striping& striping) {
  pass_ = pass;
  start_ = start;
  striping_ = striping;
  slots_.assign(end - start, Slot());
}

int Audit::add(std::string_view reply, uint64_t first, uint32_t* count) {
  const uint64_t asked = striping_.count(first, start_ + slots_.size());
  VerifyReply decoded;
  ZLOG_TRY(wire::failure_of(wire::decode(reply, &decoded), -EINVAL, {kStoredTooNew}));
  if (decoded.count > asked) return -EINVAL;
  uint64_t position = first;
  for (const VerifiedRow& row : decoded.rows) {
    const bool has_ids = row.has_ids();
    if (pass_ == Pass::kAll) counts_.bytes += row.bytes;
    for (uint32_t i = 0; i < row.length; i++, position = striping_.next(position)) {
      slots_[position - start_] = {static_cast<State>(row.state), has_ids,
                                   has_ids ? id_of(row, i) : AppendId()};
    }
  }
  *count = decoded.count;
  return 0;
}

void Audit::rest(uint64_t first, State state) {
  const uint64_t end = start_ + slots_.size();
  for (uint64_t p = first; p < end; p = striping_.next(p)) slots_[p - start_].state = state;
}

void Audit::finish() {
  lost_.begin(striping_.stride);
  unreadable_.begin(striping_.stride);
  holes_.clear();
  found_.clear();
  for (size_t i = 0; i < slots_.size(); i++) {
    const Slot& slot = slots_[i];
    if (pass_ == Pass::kAll) note(slot.state, i);
    if (!slot.has_id) continue;
    const bool found = pass_ == Pass::kSearch ? wanted_.count(slot.id) != 0 : ids_.add(slot.id);
    if (found) found_.push_back({slot.id, start_ + i});
  }
}

void Audit::Fate::begin(uint32_t width) {
  rows.clear();
  open.assign(width, 0);
}

void Audit::Fate::add(uint64_t position, const Striping& striping) {
  size_t& last = open[striping.residue(position)];
  if (last != 0 && continues(&rows[last - 1], position)) return;
  const uint32_t step = striping.shift == 0 ? striping.stride : 1;
  rows.push_back({position, position + step, step});
  last = rows.size();
}

void Audit::note(State state, size_t at) {
  const uint64_t position = start_ + at;
  ++(counts_.*kCounters[static_cast<size_t>(state)]);
  if (state == State::kLost) lost_.add(position, striping_);
  if (state == State::kUnreadable) unreadable_.add(position, striping_);
  const bool hole = state == State::kUnwritten;
  if (hole && (holes_.empty() || !continues(&holes_.back(), position))) {
    holes_.push_back({position, position + 1, 1});
  }
}

}  // namespace zlog
