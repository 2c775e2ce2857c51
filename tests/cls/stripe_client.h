#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.h"
#include "cls_zlog/base/limits.h"
#include "cls_zlog/client/write_encoder.h"
#include "cls_zlog/host/memory.h"
#include "cls_zlog/wire/frame.h"
#include "cls_zlog/wire/read_reply.h"
#include "cls_zlog/wire/stripe_messages.h"

namespace zlog {

// What a method answered.
struct Answer {
  int code = 0;
  std::string reply;

  // The reply, which must be of this type.
  template <typename Reply>
  Reply as() const {
    Reply decoded;
    CHECK(wire::decode(reply, &decoded) == wire::Decoded::kOk);
    return decoded;
  }
  uint64_t number() const { return as<RefusalReply>().number; }
  bool more() const { return as<MoreReply>().more; }
};

// What a read answered about one position, on its own.
struct ReadResult {
  EntryState state = EntryState::kUnwritten;
  uint64_t timestamp = 0;
  std::string writer;
  uint64_t number = 0;
  FillReason reason = FillReason::kUnknown;
  std::string data;
};

// One stripe object on a host in memory: the methods with their messages encoded and decoded.
class StripeClient {
 public:
  StripeClient(uint32_t stride, uint32_t residue) : stride_(stride), residue_(residue) {}

  uint32_t stride() const { return stride_; }
  uint64_t position(uint64_t index) const { return residue_ + index * stride_; }
  MemoryObject content() {
    MemoryObject object;
    CHECK(host_.peek(kObject, &object));
    return object;
  }
  bool exists() {
    MemoryObject object;
    return host_.peek(kObject, &object);
  }
  void replace(MemoryObject object) { host_.poke(kObject, std::move(object)); }

  Answer call(const char* method, std::string_view request) {
    Answer answer;
    answer.code = host_.execute(kObject, method, request, &answer.reply);
    CHECK(answer.code >= 0 || answer.reply.empty());
    return answer;
  }

  Answer seal(uint64_t epoch, bool create) {
    return call("seal", wire::encoded(SealRequest{epoch, stride_, residue_, create}));
  }

  Answer write(uint64_t epoch, uint64_t timestamp, std::string_view writer,
               const std::vector<NewEntry>& entries) {
    std::string request;
    CHECK(encode_write({epoch, timestamp, writer, stride_}, entries, &request) == 0);
    return call("write", request);
  }

  Answer fill(uint64_t epoch, uint64_t timestamp, std::string_view writer, FillReason reason,
              const std::vector<uint64_t>& positions) {
    FillRequest request;
    request.epoch = epoch;
    request.timestamp = timestamp;
    request.writer = writer;
    request.reason = reason;
    request.runs = runs(positions);
    return call("fill", wire::encoded(request));
  }

  Answer trim(uint64_t epoch, const std::vector<uint64_t>& positions) {
    TrimRequest request;
    request.epoch = epoch;
    request.runs = runs(positions);
    return call("trim", wire::encoded(request));
  }

  Answer trim_to(uint64_t epoch, uint64_t position, uint32_t records_max) {
    return call("trim_to", wire::encoded(TrimToRequest{epoch, position, records_max}));
  }

  // The answer, decoded into `results` when it is one.
  Answer read(uint64_t epoch, uint32_t bytes_max, const std::vector<uint64_t>& positions,
              std::vector<ReadResult>* results) {
    ReadRequest request;
    request.epoch = epoch;
    request.with_ids = true;
    request.bytes_max = bytes_max;
    request.runs = runs(positions);
    const Answer answer = call("read", wire::encoded(request));
    results->clear();
    if (answer.code != kOk) return answer;
    const ReadReply reply = answer.as<ReadReply>();
    for (uint32_t i = 0; i < reply.count; i++) {
      const EntryState state = reply.state_of(i, positions[i]);
      results->push_back({state, reply.timestamps[i], std::string(reply.writer_of(i)),
                          reply.numbers[i], reply.reason_of(i),
                          std::string(state == EntryState::kWritten ? reply.data_of(i) : "")});
    }
    return answer;
  }

  // Everything about the positions, in one go.
  std::vector<ReadResult> read_all(uint64_t epoch, const std::vector<uint64_t>& positions) {
    std::vector<ReadResult> results;
    CHECK(read(epoch, limits::read_reply_bytes_max, positions, &results).code == kOk);
    CHECK(results.size() == positions.size());
    return results;
  }

  StatReply stat(uint64_t epoch) {
    const Answer answer = call("stat", wire::encoded(EpochRequest{epoch}));
    CHECK(answer.code == kOk);
    return answer.as<StatReply>();
  }

 private:
  static constexpr const char* kObject = "stripe";

  Runs runs(const std::vector<uint64_t>& positions) const {
    Runs runs;
    CHECK(Runs::of(stride_, positions, &runs));
    return runs;
  }

  const uint32_t stride_;
  const uint32_t residue_;
  MemoryHost host_;
};

}  // namespace zlog
