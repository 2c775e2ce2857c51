#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Requests and replies of the methods on deliveries to a log, for both sides. The conventions are
// those of messages.h. As those on cursors, every request names the log by its id too.
namespace zlog {

// Which part of which batch of which source. delivery_read takes no more.
struct DeliveryRequest {
  uint64_t log_id = 0;
  std::string_view source;
  uint64_t batch = 0;
  uint32_t part = 0;

  std::string encode() const;
  static int decode(std::string_view bytes, DeliveryRequest* out);
};

struct DeliveryBeginRequest {
  DeliveryRequest delivery;
  uint64_t timestamp = 0;  // µs since 1970, by the client's clock

  std::string encode() const;
  static int decode(std::string_view bytes, DeliveryBeginRequest* out);
};

struct DeliveryBeginReply {
  uint32_t attempt = 0;      // from 1
  uint32_t grants = 0;       // of the attempts before
  uint64_t incarnation = 0;  // of the source: tells it from an earlier one that was forgotten

  std::string encode() const;
  static int decode(std::string_view bytes, DeliveryBeginReply* out);
};

struct DeliveryGrantRequest {
  DeliveryRequest delivery;
  uint64_t incarnation = 0;
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
  uint64_t incarnation = 0;  // of the source when the part was first begun
  uint32_t attempt = 0;
  std::vector<Grant> grants;  // in the order in which they were given

  std::string encode() const;
  static int decode(std::string_view bytes, DeliveryReadReply* out);
};

constexpr uint64_t batch_all = UINT64_MAX;  // above every batch

struct DeliveryDoneRequest {
  uint64_t log_id = 0;
  std::string_view source;
  uint64_t batch = 0;        // those below it are done
  uint64_t incarnation = 0;  // of the source that the sender saw; 0: none, or a damaged one
  uint64_t timestamp = 0;    // µs since 1970, by the client's clock

  std::string encode() const;
  static int decode(std::string_view bytes, DeliveryDoneRequest* out);
};

struct DeliveryListRequest {
  uint64_t log_id = 0;
  std::string_view after;  // sources above it; empty: from the first
  uint32_t count_max = 0;  // sources in the reply, 1 to sources_max

  std::string encode() const;
  static int decode(std::string_view bytes, DeliveryListRequest* out);
};

// What the head keeps of a source.
struct DeliverySource {
  uint64_t batch = 0;    // the first one that is not done
  uint32_t parts = 0;    // that are kept, of batches that are not done
  uint64_t created = 0;  // µs since 1970
  uint64_t updated = 0;  // when a part was last begun or a batch done
};

struct NamedDeliverySource {
  std::string_view name;
  DeliverySource source;
};

struct DeliveryListReply {
  bool more = false;
  std::vector<NamedDeliverySource> sources;  // ascending by name

  std::string encode() const;
  static int decode(std::string_view bytes, DeliveryListReply* out);
};

}  // namespace zlog
