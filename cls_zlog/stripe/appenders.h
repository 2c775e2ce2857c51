#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "cls_zlog/base/little_endian.h"
#include "cls_zlog/stripe/header.h"

// The recent writers of a stripe object, which tell a new append from a repeated one without a
// search. Header::appenders has appender_bytes of each: its id, its highest append number u64, and
// the last position of its latest append u64.
namespace zlog::stripe {

struct Appender {
  uint64_t number = 0;
  uint64_t position = 0;
};

// Returns the index of a writer's row in the bytes; npos if there is none.
inline size_t row_of(const std::string& appenders, std::string_view writer) {
  for (size_t at = 0; at < appenders.size(); at += limits::appender_bytes) {
    if (appenders.compare(at, writer.size(), writer) == 0) return at;
  }
  return std::string::npos;
}

inline std::optional<Appender> find_appender(const Header& header, std::string_view writer) {
  const size_t at = row_of(header.appenders, writer);
  if (at == std::string::npos) return std::nullopt;
  const char* const row = header.appenders.data() + at + writer.size();
  return Appender{wire::load<uint64_t>(row), wire::load<uint64_t>(row + sizeof(uint64_t))};
}

// Notes a writer's append, and drops the writer that has not appended for the longest time.
inline void note_appender(Header* header, std::string_view writer, const Appender& last) {
  std::string& rows = header->appenders;
  Appender noted = last;
  if (const auto known = find_appender(*header, writer)) {
    noted.number = std::max(noted.number, known->number);
    rows.erase(row_of(rows, writer), limits::appender_bytes);
  } else if (rows.size() == size_t{limits::appenders_max} * limits::appender_bytes) {
    const auto position = wire::load<uint64_t>(rows.data() + writer.size() + sizeof(uint64_t));
    header->appenders_floor = std::max(header->appenders_floor, end_of(position, 1));
    rows.erase(0, limits::appender_bytes);
  }
  rows.append(writer);
  wire::append(&rows, noted.number);
  wire::append(&rows, noted.position);
}

}  // namespace zlog::stripe
