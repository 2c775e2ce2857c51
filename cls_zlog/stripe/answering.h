#pragma once

#include <optional>
#include <string>

#include "cls_zlog/stripe/scan.h"

namespace zlog::stripe {

// What a Scan tells, as the reply of a read, and the data behind it, which the host answers with.
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
  std::string block_;  // the key of the last one that was answered
  std::optional<TagsReader> tags_;
  uint64_t tags_last_ = 0;  // the last position of the record that they are of
  Buffer tags_value_;       // and what they point into
  ReadReplyBuilder builder_;
};

}  // namespace zlog::stripe
