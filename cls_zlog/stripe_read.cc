#include <algorithm>
#include <cerrno>

#include "codes.h"
#include "layout.h"
#include "limits.h"
#include "messages.h"
#include "stripe.h"

namespace zlog::stripe {
namespace {

// One read in progress: it fills a reply position by position until that has enough.
class Reading {
 public:
  Reading(Object& object, Header& header, const ReadRequest& request)
      : positions_(request.runs.positions()),
        bytes_max_(std::min(request.bytes_max, limits::read_reply_bytes_max)),
        stride_(header.stride),
        trim_point_(header.trim_point),
        layout_(object, header),
        walk_(object, header, positions_),
        reply_(header.taken(), request.with_ids, request.runs.count()) {}

  int run(std::string* out) {
    while (!walk_.done() && !full_) {
      Walk::Stretch stretch;
      if (const int r = walk_.next(&stretch); r < 0) return r;
      if (const int r = add(stretch); r < 0) return r;
      if (walk_.bytes_fetched() >= limits::walk_bytes_enough) full_ = true;
    }
    *out = reply_.encode();
    return kOk;
  }

 private:
  int add(const Walk::Stretch& stretch) {
    for (uint32_t i = stretch.begin; i < stretch.end && !full_;) {
      if (positions_[i] < trim_point_) {
        add_state(EntryState::kTrimmed);
        i++;
      } else if (stretch.stored == nullptr) {
        add_state(EntryState::kUnwritten);
        i++;
      } else if (const int r = add_stored(*stretch.stored, stretch.end, &i); r < 0) {
        return r;
      }
    }
    return 0;
  }

  void add_state(EntryState state) {
    ReadEntry entry;
    entry.state = state;
    reply_.add(entry);
  }

  // Adds the i-th position, and those after it (below `end`) whose data can be read together with
  // it.
  int add_stored(const Stored& stored, uint32_t end, uint32_t* i) {
    const Record& record = stored.record;
    const uint32_t first = stored.span.index(positions_[*i], stride_);
    if (record.state_of(first) != EntryState::kWritten) {
      reply_.add(entry_of(record, first));
      (*i)++;
      return 0;
    }
    const uint32_t count = affordable(stored, end, *i);
    full_ = count == 0;
    if (full_) return 0;
    uint32_t answered = 0;
    const int r = layout_.answer(stored, first, first + count, &answered);
    if (r < 0) return r;
    reply_.add({record.timestamp, record.writer, record.number, record.ends, record.crcs,
                record.numbers, first, answered - first});
    for (uint32_t index = answered; index < first + count; index++) {
      ReadEntry entry = entry_of(record, index);
      if (record.bytes_of(index) > 0) entry.state = EntryState::kLost;
      reply_.add(entry);
    }
    *i += count;
    return 0;
  }

  // How many written entries in a row, from the i-th position on, still fit the reply. The reply's
  // first entry always does: else a large one could never be read.
  uint32_t affordable(const Stored& stored, uint32_t end, uint32_t i) const {
    const uint32_t first = stored.span.index(positions_[i], stride_);
    uint64_t bytes = reply_.data_bytes();
    uint32_t count = 0;
    while (i + count < end && positions_[i + count] == positions_[i] + uint64_t{count} * stride_ &&
           stored.record.written(first + count)) {
      bytes += stored.record.bytes_of(first + count);
      const bool first_of_reply = reply_.count() + count == 0;
      if (bytes > bytes_max_ && !first_of_reply) break;
      count++;
    }
    return count;
  }

  static ReadEntry entry_of(const Record& record, uint32_t index) {
    ReadEntry entry;
    entry.state = record.state_of(index);
    entry.timestamp = record.timestamp;
    entry.writer = record.writer;
    entry.reason = record.reason;
    if (record.holds_entries()) {
      entry.crc = record.crcs[index];
      entry.number = record.number + record.numbers[index];
    }
    return entry;
  }

  const std::vector<uint64_t> positions_;
  const uint32_t bytes_max_;
  const uint32_t stride_;
  const uint64_t trim_point_;
  Layout layout_;
  Walk walk_;
  ReadReplyBuilder reply_;
  bool full_ = false;
};

}  // namespace

int read(Object& object, std::string_view in, std::string* out) {
  ReadRequest request;
  if (const int r = ReadRequest::decode(in, &request); r < 0) return r;
  Header header;
  if (const int r = Header::load(object, &header); r < 0) return r;
  if (!header.owns(request.runs)) return -EINVAL;
  if (check_epoch(header, request.epoch, out) != kOk) return kStaleEpoch;
  return Reading(object, header, request).run(out);
}

}  // namespace zlog::stripe
