#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "cls_zlog/wire/frame.h"
#include "cls_zlog/wire/stripe_messages.h"

// Requests and replies of the methods for exactly-once appends.
namespace zlog {

constexpr uint64_t sequence_all = UINT64_MAX;  // above every sequence number

// The request of delivery_read and producer_parts. The latter lists the producer's parts from this
// one on, in the order of their keys.
struct DeliveryRequest : LogRequest {
  std::string_view producer;
  uint64_t sequence = 0;
  uint32_t part = 0;

  ZLOG_FIELDS(v) {
    LogRequest::each(v);
    v("producer", producer, wire::name());
    v("sequence", sequence, at_most(sequence_all - 1));
    v("part", part);
  }
};

struct DeliveryBeginRequest : DeliveryRequest {
  uint64_t timestamp = 0;  // µs since 1970, by the client's clock

  ZLOG_FIELDS(v) {
    DeliveryRequest::each(v);
    v("timestamp", timestamp);
  }
};

struct DeliveryBeginReply {
  uint32_t attempt = 0;      // from 1
  uint32_t grants = 0;       // the number of grants to all earlier attempts, open ones included
  uint64_t incarnation = 0;  // changes if the producer is forgotten and created again

  ZLOG_FIELDS(v) {
    v("attempt", attempt);
    v("grants", grants);
    v("incarnation", incarnation);
  }
};

struct DeliveryGrantRequest : DeliveryRequest {
  uint64_t incarnation = 0;
  uint32_t attempt = 0;
  uint64_t epoch = 0;  // the epoch in which the positions were granted
  uint64_t first = 0;
  uint32_t count = 0;
  bool reserve = false;  // without a sequencer: grant from the tail floor on, if that is higher
  bool open = false;     // grant nothing: note that entries may be at `first` or above

  ZLOG_FIELDS(v) {
    DeliveryRequest::each(v);
    v("incarnation", incarnation);
    v("attempt", attempt);
    v("epoch", epoch);
    v("first", first, wire::position());
    v("count", count, between(1, limits::entries_max));
    v("reserve", reserve);
    v("open", open, wire::any().since(2).heed());
  }
  bool valid() const { return count - 1 <= limits::position_max - first; }
};

struct DeliveryGrantReply {
  uint64_t first = 0;  // the first of the granted positions

  ZLOG_FIELDS(v) { v("first", first, wire::position()); }
};

// Positions [first, first + count).
struct Grant {
  uint64_t first = 0;
  uint64_t count = 0;
  wire::Further further;

  ZLOG_FIELDS(v) {
    v("first", first, wire::position());
    v("count", count, between(1, limits::position_max + 1));
  }
  bool valid() const { return count - 1 <= limits::position_max - first; }
};

// A part: the reply of delivery_read. The head object stores the same fields.
struct DeliveryReadReply {
  uint64_t incarnation = 0;   // of the producer when the part was first begun
  uint32_t attempt = 0;       // the newest one
  std::vector<Grant> grants;  // in the order in which they were made
  uint64_t open_from = 0;     // one above a position from which entries may be; 0: none

  ZLOG_FIELDS(v) {
    v("incarnation", incarnation);
    v("attempt", attempt, at_most(limits::attempts_max));
    v("grants", grants, at_most(limits::grants_max));
    v("open_from", open_from, wire::position_or_end().since(2).heed());
  }
};

// A part, with the numbers that identify it.
struct NumberedPart : DeliveryReadReply {
  uint64_t sequence = 0;
  uint32_t part = 0;

  ZLOG_FIELDS(v) {
    v("sequence", sequence, at_most(sequence_all - 1));
    v("part", part);
    DeliveryReadReply::each(v);
  }
};

struct ProducerPartsReply : MoreReply {
  std::vector<NumberedPart> parts;

  ZLOG_FIELDS(v) {
    MoreReply::each(v);
    v("parts", parts, at_most(limits::parts_page_max));
  }
};

struct ProducerCopyRequest : LogRequest {
  uint64_t epoch = 0;  // in which the log is a mirror
  std::string_view producer;
  uint64_t incarnation = 0;  // the producer's at the source, like created and updated
  uint64_t created = 0;
  uint64_t updated = 0;
  std::vector<NumberedPart> parts;  // ascending

  ZLOG_FIELDS(v) {
    LogRequest::each(v);
    v("epoch", epoch);
    v("producer", producer, wire::name());
    v("incarnation", incarnation, at_least(1));
    v("created", created);
    v("updated", updated);
    v("parts", parts, at_most(limits::parts_page_max));
  }
  bool valid() const {
    return std::adjacent_find(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
             return std::tie(a.sequence, a.part) >= std::tie(b.sequence, b.part);
           }) == parts.end();
  }
};

struct DeliveryDoneRequest : LogRequest {
  std::string_view producer;
  uint64_t sequence = 0;     // sequence numbers below it are complete
  uint64_t incarnation = 0;  // as the client saw it; 0: the producer does not exist, or is damaged
  uint64_t timestamp = 0;    // µs since 1970, by the client's clock
  uint64_t epoch = 0;        // refuse the request in other epochs; 0: in none

  ZLOG_FIELDS(v) {
    LogRequest::each(v);
    v("producer", producer, wire::name());
    v("sequence", sequence);
    v("incarnation", incarnation);
    v("timestamp", timestamp);
    v("epoch", epoch, wire::any().since(2).heed());
  }
};

// Part of the stored value of a producer.
struct ProducerProgress {
  uint64_t sequence = 0;  // the first number that is not complete
  uint32_t parts = 0;     // stored parts, of numbers that are not complete
  uint64_t created = 0;   // µs since 1970
  uint64_t updated = 0;   // when a part was last begun or a sequence number completed

  ZLOG_FIELDS(v) {
    v("sequence", sequence);
    v("parts", parts, at_most(limits::parts_max));
    v("created", created);
    v("updated", updated);
  }
};

struct NamedProducer : ProducerProgress {
  std::string name;
  uint64_t incarnation = 0;

  ZLOG_FIELDS(v) {
    v("name", name, wire::name());
    ProducerProgress::each(v);
    v("incarnation", incarnation, wire::any().since(2));
  }
};

struct DeliveryListReply : MoreReply {
  std::vector<NamedProducer> producers;  // ascending by name

  ZLOG_FIELDS(v) {
    MoreReply::each(v);
    v("producers", producers, at_most(limits::producers_max));
  }
};

}  // namespace zlog
