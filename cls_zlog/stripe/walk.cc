#include <algorithm>
#include <iterator>

#include "cls_zlog/base/limits.h"
#include "cls_zlog/base/result.h"
#include "cls_zlog/stripe/layout.h"
#include "cls_zlog/stripe/span_key.h"

namespace zlog {
namespace {

constexpr uint64_t kLikelyBelowMax = 64;  // records fetched for a few descending positions

// The number of records that `count` positions are in, if all records have the same size.
uint64_t likely_records(const Header& header, uint64_t count) {
  const uint64_t entries_each = header.entries / std::max<uint64_t>(header.records, 1);
  return 1 + count / std::max<uint64_t>(entries_each, 1);
}

}  // namespace

RecordIterator::RecordIterator(Object& object, const Header& header, uint64_t likely, bool whole)
    : object_(object),
      striping_(header.striping()),
      residue_(header.residue),
      whole_(whole),
      page_max_(std::clamp<uint64_t>(limits::page_bytes_max / std::max(header.value_bytes, 1u), 1,
                                     limits::page_records_max)),
      page_next_(std::clamp<uint64_t>(likely, 1, page_max_)) {}

int RecordIterator::fetch(uint64_t position) {
  if (bytes_fetched_ > limits::walk_bytes_max) return -E2BIG;
  if (!page_.empty()) {
    page_next_ = 2 * used_ > page_.size() ? std::min(page_next_ * 2, page_max_)
                                          : std::max<uint64_t>(used_, 1);
  }
  used_ = 0;
  picked_ = false;
  page_begin_ = span_key_bound(kRecords, position);
  const int r = object_.omap_list(page_begin_, std::string(kRecords), page_next_, &page_, &more_);
  at_ = page_.begin();
  current_ = Stored();
  if (r < 0) return r;
  if (page_.empty() && more_) return -EIO;
  for (const auto& [key, value] : page_) bytes_fetched_ += value.bytes.size();
  return 0;
}

int RecordIterator::load(const std::vector<std::string>& keys) {
  if (bytes_fetched_ > limits::walk_bytes_max) return -E2BIG;
  start_over(page_next_);
  ZLOG_TRY(object_.omap_get_many(keys, &page_));
  at_ = page_.begin();
  picked_ = true;
  for (const auto& [key, value] : page_) bytes_fetched_ += value.bytes.size();
  return 0;
}

bool RecordIterator::covers(const std::string& key, uint64_t position) const {
  Span span;
  return parse_span_key(kRecords, key, striping_, residue_, &span) && span.covers(position);
}

void RecordIterator::start_over(uint64_t likely) {
  page_.clear();
  at_ = page_.end();
  current_ = Stored();
  more_ = true;
  used_ = 0;
  page_next_ = std::clamp<uint64_t>(likely, 1, page_max_);
}

bool RecordIterator::at_hand(uint64_t position) const {
  const std::string bound = span_key_bound(kRecords, position);
  if (picked_) {
    const auto at = page_.upper_bound(bound);
    return at != page_.end() && covers(at->first, position);
  }
  return bound >= page_begin_ && (!more_ || (!page_.empty() && bound < page_.rbegin()->first));
}

// Cuts a piece from the sparse record, which begins at the record's first position at or above
// `position`.
void RecordIterator::cut(uint64_t position) {
  const Span& span = current_.span;
  const Record& record = current_.record;
  const SparseEntries& left = record.left;
  const uint64_t first =
      position <= span.first ? span.first : striping_.first_at(position, residue_);
  const uint32_t index = striping_.index(span, first);
  const uint32_t i = left.at_or_after(index);
  piece_ = {current_.key, {first, span.last}, {}, current_.value};
  Record& piece = piece_.record;
  const bool entry = i < left.count && left.indexes[i] == index;
  if (!entry) {
    piece.kind = RecordKind::kTrim;
    if (i < left.count) piece_.span.last = striping_.after(first, left.indexes[i] - index - 1);
    return;
  }
  static constexpr char kZeros[sizeof(uint32_t)] = {};
  if (name_begins_.empty()) name_begins_ = left.name_begins();
  piece_.span.last = first;
  piece.kind = RecordKind::kInline;
  piece.count = 1;
  piece.origin = {left.timestamps[i], left.writer_of(i), left.numbers[i]};
  wire::store(piece_end_, left.bytes_of(i));
  piece.states = {kZeros, 1};
  piece.ends = {piece_end_, 1};
  piece.crcs = {left.crcs.bytes(i, 1).data(), 1};
  piece.numbers = {kZeros, 1};
  piece.data = record.data.substr(left.begin_of(i), left.bytes_of(i));
  piece.tags = left.tags_of(i, name_begins_);
}

int RecordIterator::seek(uint64_t position, const Stored** out) {
  const std::string bound = span_key_bound(kRecords, position);
  const bool falls = at_ != page_.begin() && bound < std::prev(at_)->first;
  if (falls || (at_ != page_.end() && at_->first < bound)) at_ = page_.upper_bound(bound);
  if (at_ == page_.end() ? more_ : picked_ && !covers(at_->first, position)) {
    ZLOG_TRY(fetch(position));
  }
  *out = nullptr;
  if (at_ == page_.end()) return 0;
  if (current_.key.data() != at_->first.data()) {
    Span span;
    if (!parse_span_key(kRecords, at_->first, striping_, residue_, &span)) return -EIO;
    const Buffer& value = at_->second;
    const Record record = Record::decode(at_->first, value.bytes, striping_.length(span));
    current_ = {at_->first, span, record, value};
    used_++;
    name_begins_.clear();
  }
  if (whole_ || !current_.record.sparse()) {
    *out = &current_;
  } else {
    cut(position);
    *out = &piece_;
  }
  return 0;
}

Walk::Walk(Object& object, const Header& header, const std::vector<uint64_t>& positions, bool whole,
           const std::vector<std::string>* keys)
    : header_(header),
      positions_(positions),
      keys_(keys),
      descending_(positions.size() > 1 && positions[0] > positions[1]),
      records_(object, header, likely_records(header, positions.size()), whole) {}

// Fetches the record of the next descending position. Also fetches those of some positions below it
// if these are only a few records.
int Walk::fetch_below() {
  const Striping striping = header_.striping();
  const auto likely = [&](uint32_t lowest) {
    return likely_records(header_, striping.length({positions_[lowest], positions_[at_]}));
  };
  uint32_t lowest = at_;
  while (lowest - at_ < ahead_ && lowest + 1 < positions_.size() &&
         likely(lowest + 1) <= kLikelyBelowMax) {
    lowest++;
  }
  ahead_ = 2 * ahead_ + 1;
  records_.start_over(likely(lowest));
  const Stored* stored = nullptr;
  ZLOG_TRY(records_.seek(positions_[lowest], &stored));
  if (records_.at_hand(positions_[at_])) return 0;
  ahead_ = 0;  // there are more records than expected
  records_.start_over(1);
  return 0;
}

// Fetches the records of the next positions with known keys.
int Walk::load_known() {
  std::vector<std::string> keys;
  for (size_t i = at_; i < keys_->size() && keys.size() < records_.page_max(); i++) {
    const std::string& key = (*keys_)[i];
    if (key.empty()) break;
    if (keys.empty() || keys.back() != key) keys.push_back(key);
  }
  return keys.empty() ? 0 : records_.load(keys);
}

int Walk::next(Stretch* out) {
  const Stored* stored = nullptr;
  if (keys_ != nullptr && !records_.at_hand(positions_[at_])) ZLOG_TRY(load_known());
  if (descending_ && !records_.at_hand(positions_[at_])) ZLOG_TRY(fetch_below());
  ZLOG_TRY(records_.seek(positions_[at_], &stored));
  const bool covered = stored != nullptr && stored->span.covers(positions_[at_]);
  auto end = positions_.end();
  if (descending_) {
    end = positions_.begin() + at_ + 1;
  } else if (stored != nullptr) {
    // Up to the record's end, or to its beginning.
    const uint64_t limit = covered ? stored->span.last + 1 : stored->span.first;
    end = std::lower_bound(positions_.begin() + at_, positions_.end(), limit);
  }
  *out = {covered ? stored : nullptr, at_, static_cast<uint32_t>(end - positions_.begin())};
  at_ = out->end;
  return 0;
}

Sweep::Sweep(Object& object, const Header& header, uint64_t begin, uint64_t end, bool whole)
    : header_(header),
      records_(object, header, limits::page_records_max, whole),
      at_(header.first_at(begin)),
      end_(end) {}

int Sweep::next(Part* out) {
  const Striping striping = header_.striping();
  const uint64_t records_end = std::min(end_, header_.records_end());
  const Stored* stored = nullptr;
  if (at_ < records_end) ZLOG_TRY(records_.seek(at_, &stored));
  if (stored != nullptr && stored->span.first >= records_end) stored = nullptr;
  uint64_t end = stored == nullptr ? end_ : stored->span.first;
  const bool covered = stored != nullptr && end <= at_;
  if (covered) end = std::min(stored->span.last + 1, records_end);
  end = header_.first_at(end);
  *out = {{at_, striping.before(end, 1)}, covered ? stored : nullptr};
  if (covered) {
    out->begin = striping.index(stored->span, out->first);
    out->end = striping.index(stored->span, out->last) + 1;
  }
  at_ = end;
  return 0;
}

}  // namespace zlog
