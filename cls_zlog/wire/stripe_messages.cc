#include "cls_zlog/wire/stripe_messages.h"

namespace zlog {

bool WriteRequest::take_data(std::string_view behind) {
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

bool VerifyReply::valid() const {
  uint64_t positions = 0;
  for (const VerifiedRow& row : rows) positions += row.length;
  return positions == count;
}

}  // namespace zlog
