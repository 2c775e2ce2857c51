#include "cls_zlog/client/audit.h"

#include <cerrno>

#include "cls_zlog/wire/frame.h"
#include "cls_zlog/wire/stripe_messages.h"

namespace zlog {
namespace {

AppendId id_of(const VerifiedRow& row, uint32_t i) {
  return {wire::load<uint64_t>(row.writer.data()), wire::load<uint64_t>(row.writer.data() + 8),
          row.number + uint64_t{i} * row.step};
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
    if (pass_ == Pass::kAll) counts_.back() += row.bytes;
    for (uint32_t i = 0; i < row.length; i++, position = striping_.next(position)) {
      slots_[position - start_] = {row.state, has_ids, has_ids ? id_of(row, i) : AppendId()};
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
  found_.clear();
  for (size_t i = 0; i < slots_.size(); i++) {
    const Slot& slot = slots_[i];
    if (pass_ == Pass::kAll) counts_[static_cast<size_t>(slot.state)]++;
    if (!slot.has_id) continue;
    const bool found = pass_ == Pass::kSearch ? wanted_.count(slot.id) != 0 : ids_.add(slot.id);
    if (found) found_.push_back({slot.id, start_ + i});
  }
}

std::vector<AuditRow> Audit::rows(State state) const {
  const bool by_object = state != State::kUnwritten;
  const uint32_t step = by_object && striping_.shift == 0 ? striping_.stride : 1;
  std::vector<AuditRow> rows;
  std::vector<size_t> ends(by_object ? striping_.stride
                                     : 1);  // one past the last row of each object
  for (size_t i = 0; i < slots_.size(); i++) {
    if (slots_[i].state != state) continue;
    const uint64_t position = start_ + i;
    size_t& end = ends[by_object ? striping_.residue(position) : 0];
    if (end != 0 && rows[end - 1].end == position) {
      rows[end - 1].end += step;
    } else {
      rows.push_back({position, position + step, step});
      end = rows.size();
    }
  }
  return rows;
}

}  // namespace zlog
