#pragma once

#include <optional>
#include <string>

#include "cls_zlog/stripe/scan.h"

namespace zlog::stripe {

// Builds the reply to a read from the results of a Scan, with the data.
class Answering {
 public:
  Answering(Object& object, Header& header, bool takes_blocks, bool takes_data,
            ReadReplyBuilder builder)
      : layout_(object, header),
        takes_blocks_(takes_blocks),
        takes_data_(takes_data),
        builder_(std::move(builder)) {}

  void add(const ReadEntry& entry) { builder_.add(entry); }
  int add_written(const Stored& stored, uint32_t first, uint32_t count);

  bool takes_data() const { return takes_data_; }
  uint64_t data_bytes() const { return builder_.data_bytes(); }
  uint32_t count() const { return builder_.count(); }
  bool full() const { return builder_.tags_full(); }
  ReadReplyBuilder& builder() { return builder_; }

 private:
  const TagsReader* tags_of(const Stored& stored);

  Layout layout_;
  const bool takes_blocks_;
  const bool takes_data_;
  std::string block_;  // key of the last block that was answered
  std::optional<TagsReader> tags_;
  uint64_t tags_last_ = 0;  // last position of the record with these tags
  Buffer tags_value_;       // the record's value, into which they point
  ReadReplyBuilder builder_;
};

}  // namespace zlog::stripe
