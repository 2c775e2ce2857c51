#include "cls_zlog/wire/stripe_messages.h"

#include "cls_zlog/wire/append_messages.h"

namespace zlog {

bool SentEntries::take_data(std::string_view behind) {
  const uint32_t plain_bytes = ends[ends.size() - 1];
  uint64_t data_bytes = compressed() ? 0 : plain_bytes;
  uint32_t end = 0;  // of the entries of the checked blocks
  for (const WriteBlock& block : blocks) {
    if (block.entries > ends.size() - end) return false;
    const uint32_t begin = begin_of(end);
    end += block.entries;
    if (ends[end - 1] <= begin) return false;
    data_bytes += block.stored_bytes;
  }
  if (compressed() != (compression != Compression::kNone)) return false;
  if (compressed() && (end != ends.size() || plain_bytes > limits::request_bytes_max)) return false;
  if (behind.size() < data_bytes) return false;
  const size_t padding = behind.size() - data_bytes;
  if (padding > limits::padding_bytes_max) return false;
  if (behind.substr(0, padding).find_first_not_of('\0') != std::string_view::npos) return false;
  data = behind.substr(padding);
  return cut(ends, plain_bytes);
}

// The numbers must ascend, so that the last one is the highest. A block whose entries belong to
// several parts could not be stored for one of them alone.
bool AppendRequest::valid() const {
  if (ends.size() > limits::entries_max || !tags_valid()) return false;
  for (uint32_t i = 1; i < numbers.size(); i++) {
    if (numbers[i] <= numbers[i - 1]) return false;
  }
  size_t sets = 0;
  uint32_t begin = 0;  // of the part
  uint32_t block_end = 0;
  auto block = blocks.begin();
  bool unconditional = true;  // the previous part
  for (const AppendPart& part : parts) {
    while (block != blocks.end() && block_end < begin) block_end += block++->entries;
    if (block_end > begin && (part.conditional() || !unconditional)) return false;
    unconditional = !part.conditional();
    sets += part.unless.size();
    begin += part.entries;
  }
  return sets <= limits::append_sets_max;
}

bool VerifyReply::valid() const {
  uint64_t positions = 0;
  for (const VerifiedRow& row : rows) positions += row.length;
  return positions == count;
}

}  // namespace zlog
