#include "cls_zlog/wire/verify_messages.h"

#include <cerrno>

#include "cls_zlog/base/crc32c.h"
#include "cls_zlog/base/limits.h"

namespace zlog {
namespace {

using wire::new_message;
using wire::open_message;
using wire::open_request;
using wire::Reader;
using wire::result;
using wire::Writer;

constexpr uint32_t kRowBytes = 4 + 1 + limits::writer_bytes + 8 + 4 + 8;
constexpr char kNobody[limits::writer_bytes] = {};

std::string_view nobody() { return {kNobody, sizeof(kNobody)}; }

VerifiedRow row_of(Reader* reader) {
  VerifiedRow row;
  row.length = reader->u32();
  const uint8_t state = reader->u8();
  if (state > static_cast<uint8_t>(EntryState::kLost)) reader->fail();
  row.state = static_cast<EntryState>(state);
  row.writer = reader->bytes(limits::writer_bytes);
  row.number = reader->u64();
  row.step = reader->u32();
  row.bytes = reader->u64();
  return row;
}

// Whether the last of the row's numbers is one: it is no larger than 64 bits.
bool numbers_fit(const VerifiedRow& row) {
  return uint64_t{row.length - 1} * row.step <= UINT64_MAX - row.number;
}

}  // namespace

std::string VerifyRequest::encode() const {
  std::string out = new_message();
  Writer writer(&out);
  writer.u64(epoch).u32(bytes_max);
  runs.encode(&writer);
  return out;
}

int VerifyRequest::decode(std::string_view bytes, VerifyRequest* out) {
  Reader reader = open_request(bytes);
  out->epoch = reader.u64();
  out->bytes_max = reader.u32();
  return result(Runs::decode(&reader, &out->runs) && reader.done());
}

bool VerifiedRow::has_ids() const {
  return (state == EntryState::kWritten || state == EntryState::kTrimmed) && writer != nobody();
}

void VerifyReplyBuilder::add(ReadEntry entry, std::string_view data) {
  const bool written = entry.state == EntryState::kWritten;
  data_bytes_ += data.size();
  if (written && entry_crc(positions_[count_], data) != entry.crc) entry.state = EntryState::kLost;
  if (entry.state != EntryState::kWritten && entry.state != EntryState::kTrimmed) {
    entry.writer = {};  // who filled is no append's writer, and a lost one's may be anything
    entry.number = 0;
  }
  if (entry.writer.empty()) entry.writer = nobody();
  if (row_.length == 0 || !joins(entry)) {
    put_row();
    writer_ = entry.writer;
    row_ = VerifiedRow();
    row_.state = entry.state;
    row_.number = entry.number;
  } else if (row_.length == 1) {
    row_.step = static_cast<uint32_t>(entry.number - row_.number);
  }
  row_.length++;
  if (entry.state == EntryState::kWritten) row_.bytes += data.size();
  count_++;
}

bool VerifyReplyBuilder::joins(const ReadEntry& entry) const {
  if (entry.state != row_.state || entry.writer != writer_) return false;
  if (entry.number < row_.number) return false;
  const uint64_t above = entry.number - row_.number;
  return row_.length == 1 ? above <= UINT32_MAX : above == uint64_t{row_.length} * row_.step;
}

void VerifyReplyBuilder::put_row() {
  if (row_.length == 0) return;
  Writer(&encoded_)
      .u32(row_.length)
      .u8(static_cast<uint8_t>(row_.state))
      .bytes(writer_)
      .u64(row_.number)
      .u32(row_.step)
      .u64(row_.bytes);
  rows_++;
}

std::string VerifyReplyBuilder::encode() {
  put_row();
  row_ = VerifiedRow();
  std::string out = highest_.encode();
  Writer(&out).u32(count_).u32(rows_).bytes(encoded_);
  return out;
}

int VerifyReply::decode(std::string_view bytes, uint32_t asked, VerifyReply* out) {
  constexpr size_t highest_bytes = 1 + 1 + 8;  // with the message's version
  if (Highest::decode(bytes.substr(0, highest_bytes), &out->highest) != 0) return -EINVAL;
  Reader reader(bytes.substr(highest_bytes));
  out->count = reader.u32();
  const uint32_t rows = reader.u32();
  if (out->count < 1 || out->count > asked || reader.rest().size() / kRowBytes < rows) {
    return -EINVAL;
  }
  out->rows.clear();
  out->rows.reserve(rows);
  uint64_t positions = 0;
  for (uint32_t i = 0; i < rows; i++) {
    const VerifiedRow row = row_of(&reader);
    if (!reader.ok() || row.length == 0 || !numbers_fit(row)) return -EINVAL;
    positions += row.length;
    out->rows.push_back(row);
  }
  return result(reader.done() && positions == out->count);
}

}  // namespace zlog
