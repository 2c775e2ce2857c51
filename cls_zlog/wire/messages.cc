#include "cls_zlog/wire/messages.h"

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

constexpr uint8_t kWithIds = 1;  // the flag of a read

Highest highest(Reader* reader) {
  Highest highest;
  highest.has = reader->flag();
  highest.position = reader->u64();
  if (highest.position > (highest.has ? limits::position_max : 0)) reader->fail();
  return highest;
}

void put(Writer* writer, const Highest& highest) {
  writer->flag(highest.has).u64(highest.position);
}

Fullness fullness(Reader* reader) {
  Fullness fullness;
  fullness.records = reader->u32();
  fullness.bytes = reader->u64();
  return fullness;
}

void put(Writer* writer, const Fullness& fullness) {
  writer->u32(fullness.records).u64(fullness.bytes);
}

// Whether `ends` cut `data` into entries within the limit.
bool valid_ends(const wire::Column<uint32_t>& ends, std::string_view data) {
  uint32_t begin = 0;
  for (uint32_t i = 0; i < ends.size(); i++) {
    if (ends[i] < begin || ends[i] - begin > limits::entry_bytes_max) return false;
    begin = ends[i];
  }
  return begin == data.size();
}

// The data of a write's entries, at the very end, and before it the zeros that put it there.
bool take_data(Reader* reader, const wire::Column<uint32_t>& ends, std::string_view* data) {
  const size_t left = reader->rest().size();
  if (ends.size() == 0 || left < ends[ends.size() - 1]) return false;
  const size_t padding = left - ends[ends.size() - 1];
  if (padding > limits::padding_bytes_max) return false;
  if (reader->bytes(padding).find_first_not_of('\0') != std::string_view::npos) return false;
  *data = reader->bytes(left - padding);
  return true;
}

std::string encode_number(uint64_t number) {
  std::string out = new_message();
  Writer(&out).u64(number);
  return out;
}

int decode_number(std::string_view bytes, uint64_t* number) {
  Reader reader = open_message(bytes);
  *number = reader.u64();
  return result(reader.done());
}

}  // namespace

std::string encode_epoch_reply(uint64_t epoch) { return encode_number(epoch); }

int decode_epoch_reply(std::string_view bytes, uint64_t* epoch) {
  return decode_number(bytes, epoch);
}

std::string encode_position_reply(uint64_t position) { return encode_number(position); }

int decode_position_reply(std::string_view bytes, uint64_t* position) {
  return decode_number(bytes, position);
}

std::string encode_more_reply(bool more) {
  std::string out = new_message();
  Writer(&out).flag(more);
  return out;
}

int decode_more_reply(std::string_view bytes, bool* more) {
  Reader reader = open_message(bytes);
  *more = reader.flag();
  return result(reader.done());
}

std::string Highest::encode() const {
  std::string out = new_message();
  Writer writer(&out);
  put(&writer, *this);
  return out;
}

int Highest::decode(std::string_view bytes, Highest* out) {
  Reader reader = open_message(bytes);
  *out = highest(&reader);
  return result(reader.done());
}

std::string Fullness::encode() const {
  std::string out = new_message();
  Writer writer(&out);
  put(&writer, *this);
  return out;
}

int Fullness::decode(std::string_view bytes, Fullness* out) {
  Reader reader = open_message(bytes);
  *out = zlog::fullness(&reader);
  return result(reader.done());
}

std::string SealReply::encode() const {
  std::string out = new_message();
  Writer writer(&out);
  put(&writer, highest);
  put(&writer, fullness);
  return out;
}

int SealReply::decode(std::string_view bytes, SealReply* out) {
  Reader reader = open_message(bytes);
  out->highest = zlog::highest(&reader);
  out->fullness = zlog::fullness(&reader);
  return result(reader.done());
}

std::string EpochRequest::encode() const { return encode_number(epoch); }

int EpochRequest::decode(std::string_view bytes, EpochRequest* out) {
  return decode_number(bytes, &out->epoch);
}

std::string SealRequest::encode() const {
  std::string out = new_message();
  Writer(&out).u64(epoch).u32(stride).u32(residue).flag(create);
  return out;
}

int SealRequest::decode(std::string_view bytes, SealRequest* out) {
  Reader reader = open_request(bytes);
  out->epoch = reader.u64();
  out->stride = reader.u32();
  out->residue = reader.u32();
  out->create = reader.flag();
  return result(reader.done() && out->epoch >= 1 && out->stride >= 1 &&
                out->stride <= limits::width_max && out->residue < out->stride);
}

int WriteRequest::decode(std::string_view bytes, WriteRequest* out) {
  Reader reader = open_request(bytes);
  out->epoch = reader.u64();
  out->timestamp = reader.u64();
  out->writer = reader.bytes(limits::writer_bytes);
  out->number = reader.u64();
  if (!Runs::decode(&reader, &out->runs)) return -EINVAL;
  const uint32_t count = out->runs.count();
  out->ends = reader.column<uint32_t>(count);
  out->crcs = reader.column<uint32_t>(count);
  out->numbers = reader.column<uint32_t>(count);
  return result(take_data(&reader, out->ends, &out->data) && reader.done() &&
                out->number <= UINT64_MAX - UINT32_MAX && valid_ends(out->ends, out->data));
}

std::string ReadRequest::encode() const {
  std::string out = new_message();
  Writer writer(&out);
  writer.u64(epoch).u8(with_ids ? kWithIds : 0).u32(bytes_max);
  runs.encode(&writer);
  return out;
}

int ReadRequest::decode(std::string_view bytes, ReadRequest* out) {
  Reader reader = open_request(bytes);
  out->epoch = reader.u64();
  const uint8_t flags = reader.u8();
  out->with_ids = (flags & kWithIds) != 0;
  out->bytes_max = reader.u32();
  return result((flags & ~kWithIds) == 0 && Runs::decode(&reader, &out->runs) && reader.done());
}

ReadReplyBuilder::ReadReplyBuilder(const Highest& highest, bool with_ids, uint32_t count_max)
    : highest_(highest), with_ids_(with_ids) {
  states_.reserve(size_t{count_max} * sizeof(uint8_t));
  timestamps_.reserve(size_t{count_max} * sizeof(uint64_t));
  ends_.reserve(size_t{count_max} * sizeof(uint32_t));
  crcs_.reserve(size_t{count_max} * sizeof(uint32_t));
}

void ReadReplyBuilder::add(const ReadEntry& entry) {
  count_++;
  wire::append(&states_, static_cast<uint8_t>(entry.state));
  wire::append(&timestamps_, entry.timestamp);
  wire::append(&ends_, data_bytes_);
  wire::append(&crcs_, entry.crc);
  if (with_ids_) add_ids(entry.writer, entry.number, entry.reason);
}

void ReadReplyBuilder::add(const ReadEntries& entries) {
  const uint32_t begin = entries.begin_of(entries.first);
  const uint32_t base = data_bytes_ - begin;  // may wrap around, and back when it is added
  const size_t timestamps = timestamps_.size(), ends = ends_.size();
  states_.append(entries.count, static_cast<char>(EntryState::kWritten));
  timestamps_.resize(timestamps + entries.count * sizeof(uint64_t));
  ends_.resize(ends + entries.count * sizeof(uint32_t));
  for (uint32_t i = 0; i < entries.count; i++) {
    wire::store(&timestamps_[timestamps + i * sizeof(uint64_t)], entries.timestamp);
    wire::store(&ends_[ends + i * sizeof(uint32_t)], base + entries.ends[entries.first + i]);
  }
  crcs_.append(entries.crcs.bytes(entries.first, entries.count));
  count_ += entries.count;
  data_bytes_ = base + entries.begin_of(entries.first + entries.count);
  for (uint32_t i = 0; with_ids_ && i < entries.count; i++) {
    const uint64_t number = entries.number + entries.numbers[entries.first + i];
    add_ids(entries.writer, number, FillReason::kUnknown);
  }
}

void ReadReplyBuilder::add_ids(std::string_view writer, uint64_t number, FillReason reason) {
  writers_.append(writer);
  writers_.append(limits::writer_bytes - writer.size(), '\0');
  wire::append(&numbers_, number);
  wire::append(&reasons_, static_cast<uint8_t>(reason));
}

std::string ReadReplyBuilder::encode() const {
  std::string out = new_message();
  Writer writer(&out);
  put(&writer, highest_);
  writer.u32(count_);
  uint64_t total = out.size();
  const std::string* const columns[] = {&states_,  &timestamps_, &ends_,    &crcs_,
                                        &writers_, &numbers_,    &reasons_};
  for (const std::string* column : columns) total += column->size();
  out.reserve(total);
  for (const std::string* column : columns) writer.bytes(*column);
  return out;
}

std::string_view ReadReply::data_of(uint32_t i) const {
  const uint32_t begin = i == 0 ? 0 : ends[i - 1];
  return data.substr(begin, ends[i] - begin);
}

std::string_view ReadReply::writer_of(uint32_t i) const {
  return writers.substr(with_ids ? size_t{i} * limits::writer_bytes : 0,
                        with_ids ? limits::writer_bytes : 0);
}

EntryState ReadReply::state_of(uint32_t i, uint64_t position) const {
  const auto state = static_cast<EntryState>(states[i]);
  if (state != EntryState::kWritten) return state;
  return entry_crc(position, data_of(i)) == crcs[i] ? state : EntryState::kLost;
}

void ReadReply::states_of(uint64_t first, uint32_t stride, uint8_t* out) const {
  for (uint32_t i = 0; i < count; i++) {
    out[i] = static_cast<uint8_t>(state_of(i, first + uint64_t{i} * stride));
  }
}

int ReadReply::decode(std::string_view bytes, bool with_ids, uint32_t asked, ReadReply* out) {
  Reader reader = open_message(bytes);
  out->highest = zlog::highest(&reader);
  out->count = reader.u32();
  out->with_ids = with_ids;
  if (out->count < 1 || out->count > asked) return -EINVAL;
  out->states = reader.column<uint8_t>(out->count);
  out->timestamps = reader.column<uint64_t>(out->count);
  out->ends = reader.column<uint32_t>(out->count);
  out->crcs = reader.column<uint32_t>(out->count);
  out->writers = reader.bytes(with_ids ? uint64_t{out->count} * limits::writer_bytes : 0);
  out->numbers = reader.column<uint64_t>(with_ids ? out->count : 0);
  out->reasons = reader.column<uint8_t>(with_ids ? out->count : 0);
  out->data = reader.bytes(reader.rest().size());
  if (!reader.done() || !valid_ends(out->ends, out->data)) return -EINVAL;
  for (uint32_t i = 0; i < out->count; i++) {
    if (out->states[i] > static_cast<uint8_t>(EntryState::kLost)) return -EINVAL;
    const uint8_t reason = with_ids ? out->reasons[i] : 0;
    if (reason > static_cast<uint8_t>(FillReason::kWriterGaveUp)) return -EINVAL;
    const bool written = out->states[i] == static_cast<uint8_t>(EntryState::kWritten);
    if (!written && !out->data_of(i).empty()) return -EINVAL;
  }
  return 0;
}

std::string FillRequest::encode() const {
  std::string out = new_message();
  Writer fields(&out);
  fields.u64(epoch).u64(timestamp).bytes(writer).u8(static_cast<uint8_t>(reason));
  runs.encode(&fields);
  return out;
}

int FillRequest::decode(std::string_view bytes, FillRequest* out) {
  Reader reader = open_request(bytes);
  out->epoch = reader.u64();
  out->timestamp = reader.u64();
  out->writer = reader.bytes(limits::writer_bytes);
  const uint8_t reason = reader.u8();
  out->reason = static_cast<FillReason>(reason);
  return result(reason <= static_cast<uint8_t>(FillReason::kWriterGaveUp) &&
                Runs::decode(&reader, &out->runs) && reader.done());
}

std::string TrimRequest::encode() const {
  std::string out = new_message();
  Writer writer(&out);
  writer.u64(epoch);
  runs.encode(&writer);
  return out;
}

int TrimRequest::decode(std::string_view bytes, TrimRequest* out) {
  Reader reader = open_request(bytes);
  out->epoch = reader.u64();
  return result(Runs::decode(&reader, &out->runs) && reader.done());
}

std::string TrimToRequest::encode() const {
  std::string out = new_message();
  Writer(&out).u64(epoch).u64(position).u32(records_max);
  return out;
}

int TrimToRequest::decode(std::string_view bytes, TrimToRequest* out) {
  Reader reader = open_request(bytes);
  out->epoch = reader.u64();
  out->position = reader.u64();
  out->records_max = reader.u32();
  return result(reader.done() && out->position <= limits::position_max + 1 &&
                out->records_max >= 1 && out->records_max <= limits::trim_records_max);
}

std::string StatReply::encode() const {
  std::string out = new_message();
  Writer writer(&out);
  writer.u64(object_epoch);
  put(&writer, highest);
  writer.u64(trim_point).u64(entries).u64(bytes).u64(records).u64(stream_bytes);
  writer.u32(stride).u32(residue);
  return out;
}

int StatReply::decode(std::string_view bytes, StatReply* out) {
  Reader reader = open_message(bytes);
  out->object_epoch = reader.u64();
  out->highest = zlog::highest(&reader);
  out->trim_point = reader.u64();
  out->entries = reader.u64();
  out->bytes = reader.u64();
  out->records = reader.u64();
  out->stream_bytes = reader.u64();
  out->stride = reader.u32();
  out->residue = reader.u32();
  return result(reader.done());
}

}  // namespace zlog
