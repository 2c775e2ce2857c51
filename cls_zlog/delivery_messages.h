#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Requests and replies of the methods on deliveries to a log, for both sides. The conventions are
// those of messages.h. As those on cursors, every request names the log by its id too.
namespace zlog {

// Which part of which batch of which source. delivery_begin and delivery_read take no more.
struct DeliveryRequest {
  uint64_t log_id = 0;
  std::string_view source;
  uint64_t batch = 0;
  uint32_t part = 0;

  std::string encode() const;
  static int decode(std::string_view bytes, DeliveryRequest* out);
};

struct DeliveryBeginReply {
  uint32_t attempt = 0;  // from 1
  uint32_t grants = 0;   // of the attempts before

  std::string encode() const;
  static int decode(std::string_view bytes, DeliveryBeginReply* out);
};

struct DeliveryGrantRequest {
  DeliveryRequest delivery;
  uint32_t attempt = 0;
  uint64_t epoch = 0;    // in which the positions were granted
  uint64_t first = 0;
  uint32_t count = 0;    // 1 to entries_max
  bool reserve = false;  // nobody hands positions out: these, or the first ones above the tail floor

  std::string encode() const;
  static int decode(std::string_view bytes, DeliveryGrantRequest* out);
};

// Positions [first, first + count).
struct Grant {
  uint64_t first = 0;
  uint64_t count = 0;
};

struct DeliveryReadReply {
  uint32_t attempt = 0;
  std::vector<Grant> grants;  // in the order in which they were given

  std::string encode() const;
  static int decode(std::string_view bytes, DeliveryReadReply* out);
};

constexpr uint64_t batch_all = UINT64_MAX;  // above every batch

struct DeliveryDoneRequest {
  uint64_t log_id = 0;
  std::string_view source;
  uint64_t batch = 0;  // those below it are done

  std::string encode() const;
  static int decode(std::string_view bytes, DeliveryDoneRequest* out);
};

}  // namespace zlog
