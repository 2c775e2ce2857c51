#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/wire/stripe_messages.h"

// Requests and replies of the methods on offloaded stripes, and the record of one.
namespace zlog {

// How far a stripe is offloaded. The values are on the wire and on disk.
enum class OffloadState : unsigned char {
  kWritten = 1,  // the file is complete; readers use the objects
  kPlaced = 2,   // readers use the file; the objects may be removed
  kRemoved = 3,  // the objects were removed
};

// Consecutive positions of an offloaded stripe, which begin where the previous segment ends.
struct OffloadSegment {
  uint64_t end = 0;  // one past the last position
  uint64_t entries = 0;
  uint64_t bytes = 0;   // their data
  uint64_t oldest = 0;  // the lowest timestamp of an entry, in µs since 1970; 0 if there is none
  uint64_t newest = 0;  // the highest one

  ZLOG_FIELDS(v) {
    v("end", end, wire::position_or_end());
    v("entries", entries);
    v("bytes", bytes);
    v("oldest", oldest);
    v("newest", newest);
  }
  bool valid() const { return oldest <= newest && (entries > 0 || (bytes == 0 && newest == 0)); }
};

// An ended stripe that was copied to a file. The head object stores the same fields.
struct Offload {
  uint64_t id = 0;  // as in the stripe
  uint64_t start = 0;
  uint64_t end = 0;
  OffloadState state = OffloadState::kWritten;
  std::string url;       // of the file
  uint64_t size = 0;     // of the file, in bytes
  std::string checksum;  // SHA-256 of the file
  uint64_t written = 0;  // when the file was written, in µs since 1970, by its writer's clock
  uint64_t entries = 0;
  uint64_t bytes = 0;  // their data
  std::vector<OffloadSegment> segments;

  ZLOG_FIELDS(v) {
    v("id", id, at_least(1));
    v("start", start, wire::position());
    v("end", end, wire::position_or_end());
    v("state", state, between(1, static_cast<uint64_t>(OffloadState::kRemoved)));
    v("url", url, between(1, limits::offload_url_bytes_max));
    v("size", size);
    v("checksum", checksum, wire::raw(limits::sha256_bytes));
    v("written", written);
    v("entries", entries);
    v("bytes", bytes);
    v("segments", segments, between(1, limits::offload_segments_max));
  }
  bool valid() const {
    uint64_t begin = start;
    uint64_t entries_left = entries;
    uint64_t bytes_left = bytes;
    for (const OffloadSegment& segment : segments) {
      if (segment.end <= begin || segment.entries > segment.end - begin) return false;
      begin = segment.end;
      entries_left -= segment.entries;
      bytes_left -= segment.bytes;
    }
    return begin == end && entries_left == 0 && bytes_left == 0;
  }
};

struct OffloadPutRequest : LogRequest, Offload {
  ZLOG_FIELDS(v) {
    LogRequest::each(v);
    Offload::each(v);
  }
};

struct OffloadListRequest : LogRequest {
  uint64_t position = 0;   // list from the record whose stripe has it, or the next one above
  uint32_t count_max = 0;  // records in the reply

  ZLOG_FIELDS(v) {
    LogRequest::each(v);
    v("position", position, wire::position());
    v("count_max", count_max, between(1, limits::offloads_page_max));
  }
};

struct OffloadListReply : MoreReply {
  std::vector<Offload> records;  // ascending

  ZLOG_FIELDS(v) {
    MoreReply::each(v);
    v("records", records, at_most(limits::offloads_page_max));
  }
};

struct OffloadForgetRequest : LogRequest {
  uint64_t end = 0;  // of the stripe
  std::string_view url;

  ZLOG_FIELDS(v) {
    LogRequest::each(v);
    v("end", end, between(1, limits::position_max + 1));
    v("url", url, between(1, limits::offload_url_bytes_max));
  }
};

}  // namespace zlog
