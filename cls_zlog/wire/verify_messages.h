#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/wire/messages.h"

// The request and the reply of `verify`, for both sides; see messages.h for what all have in common.
namespace zlog {

struct VerifyRequest {
  uint64_t epoch = 0;
  uint32_t bytes_max = 0;  // bytes of data to check before stopping; the first entry always is
  Runs runs;

  std::string encode() const;
  static int decode(std::string_view bytes, VerifyRequest* out);
};

// What is known of positions that follow each other in the request.
struct VerifiedRow {
  uint32_t length = 0;      // positions, at least 1
  EntryState state = EntryState::kUnwritten;  // kLost also where stored data fails its CRC
  std::string_view writer;  // writer_bytes; zeros where no append is known
  uint64_t number = 0;      // of the first position's append
  uint32_t step = 0;        // what the number grows by from one position to the next
  uint64_t bytes = 0;       // data of all written entries

  // Whether each position holds, or held until it was trimmed, an append that is known.
  bool has_ids() const;
};

// Builds a verify's reply, position by position: checks each entry's data, and keeps none of it.
class VerifyReplyBuilder {
 public:
  // `positions` are those that were asked for, and must outlive the builder.
  VerifyReplyBuilder(const Highest& highest, const std::vector<uint64_t>& positions)
      : highest_(highest), positions_(positions) {}

  void add(ReadEntry entry, std::string_view data);
  uint64_t data_bytes() const { return data_bytes_; }
  uint32_t count() const { return count_; }
  std::string encode();

 private:
  bool joins(const ReadEntry& entry) const;
  void put_row();

  const Highest highest_;
  const std::vector<uint64_t>& positions_;
  uint64_t data_bytes_ = 0;
  uint32_t count_ = 0;
  uint32_t rows_ = 0;
  VerifiedRow row_;     // the last one; its writer is `writer_`
  std::string writer_;
  std::string encoded_;  // the rows before it
};

// A decoded verify reply: about the first `count` of the positions that were asked.
struct VerifyReply {
  Highest highest;
  uint32_t count = 0;
  std::vector<VerifiedRow> rows;

  // `asked` is the number of positions in the request.
  static int decode(std::string_view bytes, uint32_t asked, VerifyReply* out);
};

}  // namespace zlog
