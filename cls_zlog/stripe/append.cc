#include <algorithm>
#include <optional>
#include <vector>

#include "cls_zlog/stripe/appenders.h"
#include "cls_zlog/stripe/conditions.h"
#include "cls_zlog/stripe/new_entries.h"
#include "cls_zlog/stripe/stripe.h"

namespace zlog::stripe {
namespace {

// A part of the request, and how much of it was found in the object.
struct Part {
  uint32_t begin = 0;  // its entries
  uint32_t end = 0;
  uint32_t found = 0;  // entries, stored at consecutive positions
  uint64_t first = 0;  // position of the first one

  bool stored() const { return found == end - begin; }
};

class Append {
 public:
  Append(Object& object, Header* header, const AppendRequest& request, NewEntries* entries)
      : object_(object),
        header_(*header),
        request_(request),
        entries_(*entries),
        conditions_(object, *header, request.parts.size()) {
    if (const std::optional<uint64_t> taken = header_.taken()) tail_ = *taken + 1;
    tail_ = std::max(tail_, header_.start.value_or(0));
    uint32_t begin = 0;
    for (const AppendPart& part : request.parts) {
      parts_.push_back({begin, begin + part.entries});
      begin += part.entries;
    }
  }

  Result<AppendReply> run() {
    uint64_t since = tail_;
    ZLOG_TRY(find_stored(&since));
    ZLOG_TRY(same_id_);
    if (stored_ == parts_.size()) return report(tail_);
    if (stored_ > 0) return report(hidden_.code == kOk ? since : request_.since);
    ZLOG_TRY(hidden_);
    if (since < tail_) return report(since);
    ZLOG_TRY(header_.admit(request_.epoch));
    ZLOG_TRY(check_conditions());
    if (refused_) return report(tail_);
    return store_parts();
  }

 private:
  // Finds parts that an earlier copy of this request has stored. If the search is too long for one
  // call, sets `since` to where it stopped.
  int find_stored(uint64_t* since) {
    const std::optional<Appender> known = find_appender(header_, request_.writer);
    const uint64_t lowest = request_.number_of(0);
    const bool covered = request_.since >= header_.appenders_floor;
    if (covered && (!known || lowest > known->number)) return 0;
    uint64_t end = header_.appenders_floor;
    if (known) end = std::max(end, end_of(known->position, 1));
    end = std::min(end, tail_);
    if (request_.since >= end) return 0;
    const uint64_t begin = std::max(request_.since, header_.trim_point);
    if (request_.since < begin) hidden_ = {kBelowTrimPoint, header_.trim_point};
    Sweep sweep(object_, header_, begin, end);
    Layout layout(object_, header_);
    while (!sweep.done() && stored_ < parts_.size()) {
      const uint64_t stop = begin_after(sweep.position());
      if (sweep.enough() && stop > begin) {
        *since = stop;
        return 0;
      }
      Sweep::Part part;
      ZLOG_TRY(sweep.next(&part));
      ZLOG_TRY(look_at(part, &layout));
    }
    return 0;
  }

  // Returns where the next call must begin if this one stops at `position`, which may be within a
  // part.
  uint64_t begin_after(uint64_t position) const {
    if (last_ == nullptr || last_->stored() || last_->first + last_->found != position) {
      return position;
    }
    return last_->first;
  }

  int look_at(const Sweep::Part& span, Layout* layout) {
    if (span.stored == nullptr) {
      if (header_.lost(span.first, span.last + 1)) hide(kLost, span.first);
      return 0;
    }
    const Record& record = span.stored->record;
    if (record.kind == RecordKind::kLost) hide(kLost, span.first);
    if (record.unreadable()) hide(kUnreadable, span.first);
    if (record.kind == RecordKind::kTrim) hide(kBelowTrimPoint, span.last + 1);
    if (!record.holds_entries() || record.origin.writer != request_.writer) return 0;
    Comparison comparison(layout, header_, *span.stored, entries_);
    std::vector<Comparison::Verdict> verdicts;
    for (uint32_t index = span.begin; index < span.end;) {
      const uint64_t position = span.first + (index - span.begin);
      const std::optional<uint32_t> i = entry_with(number_of(record, index));
      if (!i) {
        index++;
        continue;
      }
      uint32_t count = 1;
      while (index + count < span.end && *i + count < request_.ends.size() &&
             number_of(record, index + count) == request_.number_of(*i + count)) {
        count++;
      }
      ZLOG_TRY(comparison.run(*i, index, count, &verdicts));
      for (uint32_t k = 0; k < count; k++) {
        if (verdicts[k] == Comparison::Verdict::kCompare && same_id_.code == kOk) {
          same_id_ = {kSameId, position + k};
        }
        if (verdicts[k] == Comparison::Verdict::kSame) found(*i + k, position + k);
      }
      index += count;
    }
    return 0;
  }

  static uint64_t number_of(const Record& record, uint32_t index) {
    return record.origin.number + record.numbers[index];
  }

  // Returns the index of the entry with this number.
  std::optional<uint32_t> entry_with(uint64_t number) const {
    uint32_t begin = 0;
    for (uint32_t end = request_.numbers.size(); begin < end;) {
      const uint32_t middle = begin + (end - begin) / 2;
      if (request_.number_of(middle) < number) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
    if (begin == request_.numbers.size() || request_.number_of(begin) != number) return {};
    return begin;
  }

  // Notes an entry that is stored at a position. Only the entries of a part that follow each other
  // are an earlier copy of the part.
  void found(uint32_t i, uint64_t position) {
    Part& part =
        *std::upper_bound(parts_.begin(), parts_.end(), i,
                          [](uint32_t entry, const Part& each) { return entry < each.end; });
    if (part.stored()) return;
    last_ = &part;
    if (i == part.begin) {
      part.first = position;
      part.found = 1;
    } else if (i == part.begin + part.found && position == part.first + part.found) {
      part.found++;
    }
    if (part.stored()) stored_++;
  }

  // Notes a position that may hide an earlier copy.
  void hide(Code code, uint64_t position) {
    if (hidden_.code == kOk) hidden_ = {code, position};
  }

  // Finds the parts whose conditions do not hold, or could not be checked in this call.
  int check_conditions() {
    for (uint32_t i = 0; i < parts_.size(); i++) {
      const AppendPart& part = request_.parts[i];
      const bool unread = !part.unless.empty() && part.start > tail_;
      if (unread || (part.expect && (*part.expect < tail_ || (i == 0 && *part.expect != tail_)))) {
        conditions_.note(i, tail_);
      } else if (!part.unless.empty() && part.start > 0 && part.start < header_.trim_point) {
        conditions_.note(i, header_.trim_point - 1);
      } else if (!part.unless.empty()) {
        conditions_.add(i, start_of(part), part.unless);
      }
    }
    ZLOG_TRY(conditions_.search(tail_));
    refused_ = refused_ || conditions_.reached() < tail_;
    for (uint32_t i = 0; i < parts_.size(); i++) refused_ = refused_ || conditions_.conflict(i);
    return 0;
  }

  // Returns the first position that a condition is about. Lower ones are not in this stripe.
  uint64_t start_of(const AppendPart& part) const {
    return std::max({part.start, header_.start.value_or(0), header_.trim_point});
  }

  // Reports about all parts, and stores none.
  AppendReply report(uint64_t since) const {
    AppendReply reply = {header_.fullness(), tail_, since, 0, {}};
    for (uint32_t i = 0; i < parts_.size(); i++) {
      const AppendPart& part = request_.parts[i];
      AppendOutcome outcome = {PartState::kSearched, part.start};
      if (parts_[i].stored()) {
        outcome = {PartState::kAppended, parts_[i].first};
      } else if (const std::optional<uint64_t>& conflict = conditions_.conflict(i)) {
        outcome = {PartState::kConflict, *conflict};
      } else if (!part.unless.empty()) {
        outcome.position = std::max(part.start, conditions_.reached());
      }
      reply.outcomes.push_back(outcome);
    }
    return reply;
  }

  // Returns the number of leading parts whose conditions also hold if all earlier parts are stored.
  uint32_t parts_to_store() {
    Conditions::Matcher matcher(&conditions_, entries_.tags);
    uint32_t count = 0;
    for (; count < parts_.size(); count++) {
      const Part& part = parts_[count];
      const std::optional<uint64_t>& expect = request_.parts[count].expect;
      if (expect && *expect != tail_ + part.begin) break;
      if (conditions_.conflict(count)) break;
      if (matcher.run(part.begin, part.end, tail_ + part.begin) < part.end) {
        return count + 1;
      }
    }
    return count;
  }

  Result<AppendReply> store_parts() {
    const uint32_t count = parts_to_store();
    std::vector<uint32_t> open(parts_[count - 1].end);
    for (uint32_t i = 0; i < open.size(); i++) open[i] = i;
    for (uint32_t i = 0; i < request_.ends.size(); i++) entries_.positions.push_back(tail_ + i);
    const uint64_t last = tail_ + open.back();
    ZLOG_TRY(header_.take(last));
    ZLOG_TRY(conditions_.add_filter());
    note_appender(&header_, request_.writer, {request_.number_of(open.back()), last});
    ZLOG_TRY(store(object_, &header_, entries_, open));
    return AppendReply{header_.fullness(), last + 1, last + 1, count, {}};
  }

  Object& object_;
  Header& header_;
  const AppendRequest& request_;
  NewEntries& entries_;
  std::vector<Part> parts_;
  size_t stored_ = 0;           // parts that were found
  const Part* last_ = nullptr;  // the part whose entry was found last
  uint64_t tail_ = 0;
  Failure same_id_;  // the first entry whose compressed data has to be compared
  Failure hidden_;   // why an earlier copy may exist that was not found
  Conditions conditions_;
  bool refused_ = false;  // some part must not be stored, or not yet
};

}  // namespace

Result<AppendReply> append(Object& object, const AppendRequest& request) {
  NewEntries entries(request, false, {});
  if (!entries.intact()) return Failure{-EINVAL};
  Header header;
  ZLOG_TRY(Header::load(object, &header));
  if (header.stride != 1) return Failure{-EINVAL};
  return Append(object, &header, request, &entries).run();
}

}  // namespace zlog::stripe
