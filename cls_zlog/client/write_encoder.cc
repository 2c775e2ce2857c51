#include "cls_zlog/client/write_encoder.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "cls_zlog/base/crc32c.h"
#include "cls_zlog/base/limits.h"
#include "cls_zlog/client/blocks.h"
#include "cls_zlog/methods.h"
#include "cls_zlog/wire/frame.h"
#include "cls_zlog/wire/stripe_messages.h"

namespace zlog {
namespace {

constexpr std::string_view kWriteMethod = "write";
constexpr std::string_view kAppendMethod = "append";
constexpr std::string_view kTagged = "?";  // any name: decides the frame's version

// How many bytes are copied before their checksum is computed. They fit into the first-level cache.
constexpr size_t kPieceBytes = 16u << 10;

// Returns the padding that makes data at this offset of a request begin on a page in the OSD, so
// that BlueStore writes whole pages of a large batch without copying them. A message's data begins
// on a page in the OSD, but the names of the class and the method precede the request.
size_t padding_at(std::string_view method, size_t offset) {
  constexpr size_t kPageBytes = limits::padding_bytes_max + 1;
  const size_t names_bytes = std::string_view(kClassName).size() + method.size();
  return (kPageBytes - (names_bytes + offset) % kPageBytes) % kPageBytes;
}

template <typename Request>
Request request_of(const WriteHead& head, uint64_t base) {
  Request request;
  request.epoch = head.epoch;
  request.timestamp = head.timestamp;
  request.writer = head.writer;
  request.number = base;
  return request;
}

// Appends the fields before the columns. Fields after the first column, which is missing, are not
// encoded.
template <typename Request>
void append_first_fields(Request* request, std::string* out) {
  wire::Encoder fields(out);
  request->each(fields);
}

}  // namespace

class WriteEncoder::Copier {
 public:
  explicit Copier(const WriteHead& head) : placed_(head.append == nullptr), tags_(head.tags) {
    if (head.mac != nullptr) macs_.emplace(*head.mac);
  }

  // Copies an entry's data, adds its MAC, and returns the entry_crc of both together. For an append,
  // returns the CRC of the data alone. `index` is the index of the entry's tags.
  uint32_t copy(const NewEntry& entry, size_t index, char* out) {
    uint32_t crc = placed_ ? entry_crc(entry.position, {}) : 0;
    const std::string_view data = entry.data;
    for (size_t at = 0; at < data.size(); at += kPieceBytes) {
      const std::string_view piece = data.substr(at, kPieceBytes);
      std::memcpy(out + at, piece.data(), piece.size());
      crc = crc32c({out + at, piece.size()}, crc);
    }
    if (!macs_) return crc;
    char* const mac = out + data.size();
    macs_->make(entry.position, {out, data.size()}, tags_of(index), mac);
    return crc32c({mac, mac_bytes}, crc);
  }

 private:
  std::string tags_of(size_t index) const {
    if (tags_ == nullptr) return {};
    std::vector<std::string_view> tags;
    for (size_t at = tags_->begin_of(index); at < tags_->end_of(index); at++) {
      tags.push_back(tags_->names[tags_->ids[at]]);
    }
    std::sort(tags.begin(), tags.end());
    return mac_tags(tags);
  }

  const bool placed_;
  const EntryTags* const tags_;
  std::optional<MacRun> macs_;
};

int WriteEncoder::begin(const WriteHead& head, const NewEntry* entries, size_t count, bool in_a_row,
                        size_t index) {
  if (head.writer.size() != limits::writer_bytes || count > limits::entries_max) return -EINVAL;
  entries_ = entries;
  count_ = count;
  in_a_row_ = in_a_row;
  head_ = head;
  tags_index_ = index;
  uint64_t smallest = UINT64_MAX - UINT32_MAX, largest = 0, data_bytes = 0;
  for (size_t i = 0; i < count; i++) {
    const size_t bytes = bytes_of(entry(i));
    if (bytes > limits::entry_bytes_max) return -EINVAL;
    data_bytes += bytes;
    smallest = std::min(smallest, entry(i).number);
    largest = std::max(largest, entry(i).number);
  }
  base_ = smallest;
  if (largest > base_ && largest - base_ > UINT32_MAX) return -EINVAL;
  fields_.assign(wire::kFrameBytes, '\0');
  if (!encode_fields()) return -EINVAL;
  data_bytes_ = data_bytes;
  tags_.clear();
  tagged_ = false;
  if (head.tags != nullptr && !encode_tags(*head.tags)) return -EINVAL;
  frame(Compression::kNone, {});
  return size_ <= limits::request_bytes_max ? 0 : -EINVAL;
}

// Encodes the fields before the columns. Returns false if they are not valid.
bool WriteEncoder::encode_fields() {
  if (head_.append == nullptr) {
    auto request = request_of<WriteRequest>(head_, base_);
    const auto position_at = [&](size_t i) { return entry(i).position; };
    if (!Runs::of(head_.striping, count_, position_at, &request.runs)) return false;
    append_first_fields(&request, &fields_);
    return true;
  }
  auto request = request_of<AppendRequest>(head_, base_);
  request.since = head_.append->since;
  request.parts = head_.append->parts;
  size_t sets = 0;
  for (const AppendPart& part : request.parts) {
    std::string encoded;
    if (!wire::encode(part, &encoded)) return false;
    sets += part.unless.size();
  }
  for (size_t i = 1; i < count_; i++) {
    if (entry(i).number <= entry(i - 1).number) return false;
  }
  append_first_fields(&request, &fields_);
  return head_.mac == nullptr && request.since <= limits::position_max + 1 &&
         sets <= limits::append_sets_max && !request.parts.empty() &&
         request.parts.size() <= limits::append_parts_max && request.count() == count_;
}

// Numbers the names in the order of their bytes, so that a reader gets an entry's tags in this order
// from any record. Returns false if there are too many.
bool WriteEncoder::encode_tags(const EntryTags& tags) {
  std::vector<uint32_t> number(tags.names.size());
  std::vector<uint32_t> used;
  for (size_t i = 0; i < count_; i++) {
    const size_t at = tags_index_ + index_of(i);
    for (size_t id = tags.begin_of(at); id < tags.end_of(at); id++) {
      if (number[tags.ids[id]]++ == 0) used.push_back(tags.ids[id]);
    }
  }
  std::sort(used.begin(), used.end(),
            [&](uint32_t one, uint32_t other) { return tags.names[one] < tags.names[other]; });
  std::string names, counts, ids;
  for (uint32_t id = 0; id < used.size(); id++) {
    number[used[id]] = id;
    append_name(tags.names[used[id]], &names);
  }
  std::vector<uint32_t> own;
  for (size_t i = 0; i < count_; i++) {
    const size_t at = tags_index_ + index_of(i);
    own.clear();
    for (size_t id = tags.begin_of(at); id < tags.end_of(at); id++) {
      own.push_back(number[tags.ids[id]]);
    }
    std::sort(own.begin(), own.end());
    counts += static_cast<char>(own.size());
    for (const uint32_t name : own) wire::append(&ids, name);
  }
  if (used.empty()) return true;
  tagged_ = true;
  wire::Encoder fields(&tags_);
  Tags all = {names,
              {counts.data(), static_cast<uint32_t>(counts.size())},
              {ids.data(), static_cast<uint32_t>(ids.size() / sizeof(uint32_t))}};
  all.each(fields, static_cast<uint32_t>(count_), 3);
  return fields.ok() && all.ids.size() <= limits::tag_ids_max &&
         all.valid(static_cast<uint32_t>(count_));
}

// Completes the frame, and computes the size.
void WriteEncoder::frame(Compression compression, const std::vector<WriteBlock>& blocks) {
  WriteRequest request;
  request.compression = compression;
  request.blocks = blocks;
  tail_.clear();
  wire::Encoder tail(&tail_);
  tail("compression", request.compression);
  tail("blocks", request.blocks);
  tail_.append(tags_);
  if (!tagged_) Tags().each(tail, 0, 3);
  const size_t begin = fields_.size() + count_ * 3 * sizeof(uint32_t) + tail_.size();
  if (tagged_) request.tags.names = kTagged;
  const bool append = head_.append != nullptr;
  const wire::Versions versions =
      append ? wire::versions_of(AppendRequest()) : wire::versions_of(request);
  wire::write_frame_head(versions, begin - wire::kFrameBytes, fields_.data());
  const size_t bytes = blocks.empty() ? data_bytes_ : blocks_.size();
  padding_ = bytes < limits::inline_bytes_max
                 ? 0
                 : padding_at(append ? kAppendMethod : kWriteMethod, begin);
  size_ = begin + padding_ + bytes;
}

void WriteEncoder::compress() {
  if (head_.compression == Compression::kNone || data_bytes_ < compress_bytes_min) return;
  std::vector<WriteBlock> blocks;
  if (make_blocks(&blocks)) return frame(head_.compression, blocks);
  crcs_.clear();
}

// Returns the entries that must begin a block, ascending. The entries of two parts may be in one
// block only if neither part has a condition, so that each part can be stored alone.
std::vector<size_t> WriteEncoder::block_begins() const {
  std::vector<size_t> begins;
  if (head_.append == nullptr) return begins;
  size_t begin = 0;
  bool conditional = true;  // the previous part
  for (const AppendPart& part : head_.append->parts) {
    if (conditional || part.conditional()) begins.push_back(begin);
    conditional = part.conditional();
    begin += part.entries;
  }
  return begins;
}

// Returns false if compression does not save enough, as the first block usually shows.
bool WriteEncoder::make_blocks(std::vector<WriteBlock>* blocks) {
  Copier copier(head_);
  std::string plain;
  const std::vector<size_t> begins = block_begins();
  auto next_begin = begins.begin();
  crcs_.clear();
  blocks_.clear();
  for (size_t i = 0; i < count_;) {
    WriteBlock block;
    size_t bytes = 0;
    while (i + block.entries < count_) {
      const size_t next = bytes_of(entry(i + block.entries));
      if (bytes > 0 && bytes + next > block_bytes_max) break;
      while (next_begin != begins.end() && *next_begin <= i) ++next_begin;
      if (next_begin != begins.end() && *next_begin == i + block.entries) break;
      bytes += next;
      block.entries++;
    }
    if (bytes == 0) return false;  // a block must have data
    plain.resize(std::max(plain.size(), bytes));
    size_t end = 0;
    for (const size_t last = i + block.entries; i < last; i++) {
      const NewEntry& next = entry(i);
      wire::append(&crcs_, copier.copy(next, tags_index_ + index_of(i), plain.data() + end));
      end += bytes_of(next);
    }
    const size_t begin = blocks_.size();
    if (!zlog::compress(head_.compression, {plain.data(), bytes}, &blocks_)) return false;
    if (blocks->empty() && !pays(bytes, blocks_.size())) return false;
    const std::string_view stored = std::string_view(blocks_).substr(begin);
    block.stored_bytes = static_cast<uint32_t>(stored.size());
    block.crc = crc32c(stored);
    blocks->push_back(block);
  }
  return pays(data_bytes_, blocks_.size());
}

void WriteEncoder::encode(char* out) const {
  fields_.copy(out, fields_.size());
  char* ends = out + fields_.size();
  char* crcs = ends + count_ * sizeof(uint32_t);
  char* numbers = crcs + count_ * sizeof(uint32_t);
  char* const tail = numbers + count_ * sizeof(uint32_t);
  tail_.copy(tail, tail_.size());
  char* const padding = tail + tail_.size();
  std::memset(padding, 0, padding_);
  char* const data = padding + padding_;
  const bool compressed = !crcs_.empty();
  if (compressed) {
    crcs_.copy(crcs, crcs_.size());
    blocks_.copy(data, blocks_.size());
  }
  std::optional<Copier> copier;
  if (!compressed) copier.emplace(head_);
  uint32_t end = 0;
  for (size_t i = 0; i < count_; i++) {
    const NewEntry& next = entry(i);
    if (copier)
      wire::store(crcs + i * sizeof(uint32_t),
                  copier->copy(next, tags_index_ + index_of(i), data + end));
    end += static_cast<uint32_t>(bytes_of(next));
    wire::store(ends + i * sizeof(uint32_t), end);
    wire::store(numbers + i * sizeof(uint32_t), static_cast<uint32_t>(next.number - base_));
  }
}

}  // namespace zlog
