#include "cls_zlog/base/crc32c.h"
#include "cls_zlog/stripe/scan.h"

namespace zlog::stripe {
namespace {

// Builds the reply to a verify from the results of a Scan, and checks the data of each entry.
class Checking {
 public:
  // `positions` are those of the request, and must outlive this object.
  Checking(Object& object, Header& header, const std::vector<uint64_t>& positions, bool keys_only)
      : layout_(object, header), positions_(positions), keys_only_(keys_only) {
    reply_.highest = header.taken();
  }

  void add(const ReadEntry& entry) { add(entry, uint64_t{0}); }

  int add_written(const Stored& stored, uint32_t first, uint32_t count) {
    const Record& record = stored.record;
    if ((keys_only_ && record.streamed()) || record.compressed()) {
      bool intact = true;
      if (record.compressed()) ZLOG_TRY(check_block(stored, &intact));
      for (uint32_t i = first; i < first + count; i++) {
        ReadEntry entry = entry_of(record, i);
        if (!intact) entry.state = EntryState::kLost;
        add(entry, record.bytes_of(i));
      }
      return 0;
    }
    std::string buffer;
    std::string_view data;
    ZLOG_TRY(layout_.data_of(stored, first, first + count, &buffer, &data));
    for (uint32_t index = first; index < first + count; index++) {
      // Data that is cut off fails its checksum too.
      const std::string_view bytes = data.substr(0, record.bytes_of(index));
      ReadEntry entry = entry_of(record, index);
      if (entry_crc(positions_[reply_.count], bytes) != entry.crc) entry.state = EntryState::kLost;
      add(entry, bytes.size());
      data.remove_prefix(bytes.size());
    }
    return 0;
  }

  bool takes_data() const { return true; }
  uint64_t data_bytes() const { return data_bytes_; }
  uint32_t count() const { return reply_.count; }
  bool full() const { return false; }
  VerifyReply take() { return std::move(reply_); }

 private:
  int check_block(const Stored& stored, bool* intact) {
    *intact = true;
    if (keys_only_ && stored.record.streamed()) return 0;
    if (stored.key != block_) {
      std::string buffer;
      std::string_view data;
      ZLOG_TRY(layout_.block_of(stored, &buffer, &data));
      block_intact_ = intact_block(stored.record, data);
      block_ = stored.key;
    }
    *intact = block_intact_;
    return 0;
  }

  void add(const ReadEntry& entry, uint64_t bytes) {
    data_bytes_ += bytes;
    reply_.count++;
    VerifiedRow next;
    next.length = 1;
    next.state = entry.state;
    // A fill has no append, and a lost entry's append is not known.
    if (next.state == EntryState::kWritten || next.state == EntryState::kTrimmed) {
      entry.writer.copy(next.writer.data(), next.writer.size());
      next.number = entry.number;
    }
    if (next.state == EntryState::kWritten) next.bytes = bytes;
    if (reply_.rows.empty() || !joins(next, &reply_.rows.back())) reply_.rows.push_back(next);
  }

  // Extends the row if the next position continues it.
  static bool joins(const VerifiedRow& next, VerifiedRow* row) {
    if (next.state != row->state || next.writer != row->writer) return false;
    if (next.number < row->number) return false;
    const uint64_t above = next.number - row->number;
    if (row->length == 1) {
      if (above > UINT32_MAX) return false;
      row->step = static_cast<uint32_t>(above);
    } else if (above != uint64_t{row->length} * row->step) {
      return false;
    }
    row->length++;
    row->bytes += next.bytes;
    return true;
  }

  Layout layout_;
  const std::vector<uint64_t>& positions_;
  const bool keys_only_;
  std::string block_;  // key of the last block that was checked
  bool block_intact_ = true;
  uint64_t data_bytes_ = 0;
  VerifyReply reply_;
};

}  // namespace

Result<VerifyReply> verify(Object& object, Header& header, const VerifyRequest& request) {
  const std::vector<uint64_t> positions = request.runs.positions();
  Checking reply(object, header, positions, request.keys_only);
  ZLOG_TRY(Scan(object, header, positions, request.bytes_max, &reply).run());
  return reply.take();
}

}  // namespace zlog::stripe
