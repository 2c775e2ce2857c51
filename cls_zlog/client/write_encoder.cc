#include "cls_zlog/client/write_encoder.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cls_zlog/base/crc32c.h"
#include "cls_zlog/base/limits.h"
#include "cls_zlog/methods.h"
#include "cls_zlog/wire/frame.h"
#include "cls_zlog/wire/stripe_messages.h"

namespace zlog {
namespace {

constexpr std::string_view kWriteMethod = "write";

// Copied and summed up at a time: little enough to stay in the first-level cache in between.
constexpr size_t kPieceBytes = 16u << 10;

// Copies `data`, and answers the entry_crc of the copy.
uint32_t copy_entry(uint64_t position, std::string_view data, char* out) {
  uint32_t crc = entry_crc(position, {});
  for (size_t at = 0; at < data.size(); at += kPieceBytes) {
    const std::string_view piece = data.substr(at, kPieceBytes);
    std::memcpy(out + at, piece.data(), piece.size());
    crc = crc32c({out + at, piece.size()}, crc);
  }
  return crc;
}

// What data at this offset of a request lacks to begin with a page in the OSD. There a message's
// data begins with one, and the names of class and method come before the request. The data of
// large batches goes from there to the disk as it is, but to do so, BlueStore copies what does not
// lie in whole pages.
size_t padding_at(size_t offset) {
  constexpr size_t kPageBytes = limits::padding_bytes_max + 1;
  constexpr size_t kNamesBytes = std::string_view(kClassName).size() + kWriteMethod.size();
  return (kPageBytes - (kNamesBytes + offset) % kPageBytes) % kPageBytes;
}

}  // namespace

int WriteEncoder::begin(const WriteHead& head, const NewEntry* entries, size_t count,
                        bool in_a_row) {
  if (head.writer.size() != limits::writer_bytes || count > limits::entries_max) return -EINVAL;
  entries_ = entries;
  count_ = count;
  in_a_row_ = in_a_row;
  spacing_ = head.spacing;
  uint64_t smallest = UINT64_MAX - UINT32_MAX, largest = 0, data_bytes = 0;
  for (size_t i = 0; i < count; i++) {
    if (entry(i).data.size() > limits::entry_bytes_max) return -EINVAL;
    data_bytes += entry(i).data.size();
    smallest = std::min(smallest, entry(i).number);
    largest = std::max(largest, entry(i).number);
  }
  base_ = smallest;
  if (largest > base_ && largest - base_ > UINT32_MAX) return -EINVAL;
  WriteRequest request;
  request.epoch = head.epoch;
  request.timestamp = head.timestamp;
  request.writer = head.writer;
  request.number = base_;
  if (!Runs::of(head.spacing, count, [&](size_t i) { return entry(i).position; }, &request.runs)) {
    return -EINVAL;
  }
  // All of the frame but the columns, which encode() puts where they are to stay.
  fields_.assign(wire::kFrameBytes, '\0');
  wire::Encoder fields(&fields_);
  request.each(fields);
  const size_t begin = fields_.size() + count * 3 * sizeof(uint32_t);
  wire::write_frame_head(wire::versions_of(request), begin - wire::kFrameBytes, fields_.data());
  padding_ = data_bytes < limits::inline_bytes_max ? 0 : padding_at(begin);
  size_ = begin + padding_ + data_bytes;
  return size_ <= limits::request_bytes_max ? 0 : -EINVAL;
}

void WriteEncoder::encode(char* out) const {
  fields_.copy(out, fields_.size());
  char* ends = out + fields_.size();
  char* crcs = ends + count_ * sizeof(uint32_t);
  char* numbers = crcs + count_ * sizeof(uint32_t);
  char* const padding = numbers + count_ * sizeof(uint32_t);
  std::memset(padding, 0, padding_);
  char* const data = padding + padding_;
  uint32_t end = 0;
  for (size_t i = 0; i < count_; i++) {
    const NewEntry& next = entry(i);
    wire::store(crcs + i * sizeof(uint32_t), copy_entry(next.position, next.data, data + end));
    end += static_cast<uint32_t>(next.data.size());
    wire::store(ends + i * sizeof(uint32_t), end);
    wire::store(numbers + i * sizeof(uint32_t), static_cast<uint32_t>(next.number - base_));
  }
}

int encode_write(const WriteHead& head, const std::vector<NewEntry>& entries, std::string* out) {
  WriteEncoder encoder;
  if (const int r = encoder.begin(head, entries.data(), entries.size()); r < 0) return r;
  out->resize(encoder.size());
  encoder.encode(out->data());
  return 0;
}

}  // namespace zlog
