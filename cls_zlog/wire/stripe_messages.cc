#include "cls_zlog/wire/stripe_messages.h"

#include "cls_zlog/wire/entry_data.h"

namespace zlog {

bool WriteRequest::take_data(std::string_view behind) {
  const uint32_t data_bytes = ends[ends.size() - 1];
  if (behind.size() < data_bytes) return false;
  const size_t padding = behind.size() - data_bytes;
  if (padding > limits::padding_bytes_max) return false;
  if (behind.substr(0, padding).find_first_not_of('\0') != std::string_view::npos) return false;
  data = behind.substr(padding);
  return wire::cut(ends, data);
}

bool VerifyReply::valid() const {
  uint64_t positions = 0;
  for (const VerifiedRow& row : rows) positions += row.length;
  return positions == count;
}

}  // namespace zlog
