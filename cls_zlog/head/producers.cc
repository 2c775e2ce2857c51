#include "cls_zlog/head/producers.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "cls_zlog/base/hex.h"
#include "cls_zlog/head/head.h"
#include "cls_zlog/head/omap_table.h"

namespace zlog::producers {
namespace {

// A producer. Its incarnation is its number among all producers that the log has ever had, so a
// producer that is forgotten and created again gets another incarnation.
struct Producer : ProducerProgress {
  uint64_t incarnation = 0;
  wire::Further further;

  ZLOG_FIELDS(v) {
    v("incarnation", incarnation);
    ProducerProgress::each(v);
  }
};

using Part = wire::Kept<DeliveryReadReply>;

constexpr head::OmapTable<Producer> kProducers("s.");
constexpr head::OmapTable<Part> kParts("p.");

// No name has a slash, so the parts of two producers do not mix.
std::string parts_of(std::string_view producer) { return kParts.key(producer).append("/"); }

std::string key_of(std::string_view producer, uint64_t sequence, uint32_t part) {
  return parts_of(producer) + head::hex_digits(sequence) + '.' + hex(part, 8);
}

std::string key_of(const DeliveryRequest& request) {
  return key_of(request.producer, request.sequence, request.part);
}

// Notes that entries may be at or above a position.
void open(uint64_t first, Part* part) {
  part->open_from = part->open_from == 0 ? first + 1 : std::min(part->open_from, first + 1);
}

// Adds the grants of the same part. A grant that was copied earlier may be longer now.
Failure merge(const DeliveryReadReply& copied, Part* part) {
  if (copied.open_from != 0) open(copied.open_from - 1, part);
  for (const Grant& grant : copied.grants) {
    const auto known =
        std::find_if(part->grants.begin(), part->grants.end(),
                     [&grant](const Grant& each) { return each.first == grant.first; });
    if (known != part->grants.end()) {
      known->count = std::max(known->count, grant.count);
    } else if (part->grants.size() >= limits::grants_max) {
      return {kLimitReached, limits::grants_max};
    } else {
      part->grants.push_back(grant);
    }
  }
  return {};
}

// Returns kLimitReached if the log has no space for another producer.
Failure check_space(Object& object, const Head& head) {
  ZLOG_TRY(kProducers.check_space(object, limits::producers_max));
  return head.producers == UINT64_MAX ? Failure{kLimitReached, UINT64_MAX} : Failure{};
}

// Returns a new producer with the head's next incarnation.
Producer make(uint64_t timestamp, Head* head) {
  Producer producer;
  producer.created = timestamp;
  producer.incarnation = ++head->producers;
  return producer;
}

// Loads the producer that a delivery_done names. If there is none, creates it, counts it in the
// head, and sets `made`. The request must contain the producer's incarnation. For a new producer
// this is the next free one, so that late requests create none, and for a damaged producer it is 0.
Failure load_named(Object& object, const DeliveryDoneRequest& request, Head* head,
                   Producer* producer, bool* made) {
  *made = false;
  const Failure loaded = kProducers.get(object, kProducers.key(request.producer), producer);
  const bool missing = loaded.code == -ENOENT;
  const bool damaged = loaded.code == -EIO && request.incarnation == 0;
  if (request.sequence == sequence_all && (missing || damaged)) {
    *producer = {};  // forgotten, whatever it was
    return {};
  }
  if (missing) {
    const uint64_t next = head->producers + 1;
    if (request.incarnation != next) return {kNotFound, next};
    ZLOG_TRY(check_space(object, *head));
    *producer = make(request.timestamp, head);
    *made = true;
    return {};
  }
  ZLOG_TRY(loaded);
  if (request.incarnation == producer->incarnation) return {};
  return {kSuperseded, producer->incarnation};
}

}  // namespace

Result<DeliveryBeginReply> begin(Object& object, Head& head, const DeliveryBeginRequest& request) {
  const std::string producer_key = kProducers.key(request.producer);
  Producer producer;
  ZLOG_TRY(head::or_initial(kProducers.get(object, producer_key, &producer)));
  const bool is_new = producer.incarnation == 0;
  if (request.sequence < producer.sequence) return Failure{kSequenceDone, producer.sequence};
  const std::string key = key_of(request);
  Part part;
  ZLOG_TRY(head::or_initial(kParts.get(object, key, &part)));
  const bool first = part.attempt == 0;
  if (part.attempt >= limits::attempts_max) return Failure{kLimitReached, limits::attempts_max};
  if (first && producer.parts >= limits::parts_max)
    return Failure{kLimitReached, limits::parts_max};
  if (is_new) {
    ZLOG_TRY(check_space(object, head));
    producer = make(request.timestamp, &head);
    ZLOG_TRY(head.save(object));
  }
  if (first) {
    producer.parts++;
    part.incarnation = producer.incarnation;
  }
  producer.updated = request.timestamp;
  part.attempt++;
  ZLOG_TRY(kProducers.put(object, producer_key, producer));
  ZLOG_TRY(kParts.put(object, key, part));
  const uint64_t grants = part.grants.size() + (part.open_from == 0 ? 0 : 1);
  return DeliveryBeginReply{part.attempt, static_cast<uint32_t>(grants), part.incarnation};
}

Result<DeliveryGrantReply> grant(Object& object, Head& head, const DeliveryGrantRequest& request) {
  // This is checked first, because an attempt that is refused for another reason fills the
  // positions as its own.
  if (request.epoch != head.counter) return Failure{kStaleEpoch, head.counter};
  const std::string key = key_of(request);
  Part part;
  ZLOG_TRY(head::or_not_found(kParts.get(object, key, &part)));
  if (request.incarnation != part.incarnation) return Failure{kNotFound};
  if (request.attempt != part.attempt) return Failure{kSuperseded, part.attempt};
  uint64_t first = request.first;
  if (request.open) {
    open(first, &part);
    ZLOG_TRY(kParts.put(object, key, part));
    return DeliveryGrantReply{first};
  }
  if (request.reserve) first = std::max(first, head.tail_floor);
  if (first > limits::position_max || request.count - 1 > limits::position_max - first) {
    return Failure{-ERANGE};
  }
  const uint64_t end = first + request.count;
  ZLOG_TRY(head::check_tail(object, head, end));
  if (!part.grants.empty() && part.grants.back().first + part.grants.back().count == first) {
    part.grants.back().count += request.count;
  } else if (part.grants.size() >= limits::grants_max) {
    return Failure{kLimitReached, limits::grants_max};
  } else {
    part.grants.push_back({first, request.count, {}});
  }
  ZLOG_TRY(kParts.put(object, key, part));
  if (end > head.tail_floor) {
    head.tail_floor = end;
    ZLOG_TRY(head.save(object));
  }
  return DeliveryGrantReply{first};
}

Result<DeliveryReadReply> read(Object& object, Head&, const DeliveryRequest& request) {
  Part part;
  ZLOG_TRY(head::or_not_found(kParts.get(object, key_of(request), &part)));
  return DeliveryReadReply(part);
}

Result<MoreReply> done(Object& object, Head& head, const DeliveryDoneRequest& request) {
  if (request.epoch != 0 && request.epoch != head.counter) {
    return Failure{kStaleEpoch, head.counter};
  }
  Producer producer;
  bool made = false;
  ZLOG_TRY(load_named(object, request, &head, &producer, &made));
  producer.updated = request.timestamp;
  producer.sequence = std::max(producer.sequence, request.sequence);

  const std::string prefix = parts_of(request.producer);
  // This key is above those of lower sequence numbers, and below all others.
  const std::string end = prefix + head::hex_digits(producer.sequence);
  Page page;
  MoreReply reply;
  ZLOG_TRY(object.omap_list(prefix, prefix, limits::parts_removed_max, &page, &reply.more));
  if (page.empty() && reply.more) return Failure{-EIO};
  uint32_t removed = 0;
  for (const auto& [part, value] : page) {
    if (part >= end && producer.sequence != sequence_all) break;
    ZLOG_TRY(object.omap_remove(part));
    removed++;
  }
  reply.more = reply.more && removed == page.size();
  producer.parts -= std::min(removed, producer.parts);
  if (made) ZLOG_TRY(head.save(object));
  const std::string key = kProducers.key(request.producer);
  if (producer.sequence == sequence_all && !reply.more) {
    ZLOG_TRY(object.omap_remove(key));
  } else {
    ZLOG_TRY(kProducers.put(object, key, producer));
  }
  return reply;
}

Result<DeliveryListReply> list(Object& object, Head&, const NamesRequest& request) {
  DeliveryListReply reply;
  ZLOG_TRY(kProducers.list(object, kProducers.key(request.after), request.count_max, &reply.more,
                           [&](const std::string& name, const Producer& producer) {
                             reply.producers.push_back({producer, name, producer.incarnation});
                           }));
  return reply;
}

Result<ProducerPartsReply> parts(Object& object, Head&, const DeliveryRequest& request) {
  const std::string prefix = parts_of(request.producer);
  // Without a part number, this key is below those of all parts of its sequence number.
  const std::string after = request.part == 0
                                ? prefix + head::hex_digits(request.sequence)
                                : key_of(request.producer, request.sequence, request.part - 1);
  Page page;
  ProducerPartsReply reply;
  ZLOG_TRY(object.omap_list(after, prefix, limits::parts_page_max, &page, &reply.more));
  if (page.empty() && reply.more) return Failure{-EIO};
  for (const auto& [key, value] : page) {
    if (key.size() != prefix.size() + 25) return Failure{-EIO};
    Part part;
    ZLOG_TRY(from_stored(key, value.bytes, &part));
    NumberedPart& numbered = reply.parts.emplace_back();
    static_cast<DeliveryReadReply&>(numbered) = std::move(part);
    numbered.sequence = std::strtoull(key.c_str() + prefix.size(), nullptr, 16);
    numbered.part = std::strtoul(key.c_str() + prefix.size() + 17, nullptr, 16);
  }
  return reply;
}

Result<Empty> copy(Object& object, Head& head, const ProducerCopyRequest& request) {
  if (request.epoch != head.counter) return Failure{kStaleEpoch, head.counter};
  const std::string producer_key = kProducers.key(request.producer);
  Producer producer;
  ZLOG_TRY(head::or_initial(kProducers.get(object, producer_key, &producer)));
  if (producer.incarnation == 0 && request.incarnation > head.producers) {
    ZLOG_TRY(check_space(object, head));
    producer.incarnation = head.producers = request.incarnation;
    producer.created = request.created;
    ZLOG_TRY(head.save(object));
  }
  if (producer.incarnation != request.incarnation) {
    return Failure{kSuperseded, producer.incarnation};
  }
  producer.updated = std::max(producer.updated, request.updated);
  for (const NumberedPart& copied : request.parts) {
    if (copied.sequence < producer.sequence) continue;
    const std::string key = key_of(request.producer, copied.sequence, copied.part);
    Part part;
    const Failure loaded = kParts.get(object, key, &part);
    ZLOG_TRY(head::or_initial(loaded));
    if (loaded.code == -ENOENT) {
      if (producer.parts >= limits::parts_max) return Failure{kLimitReached, limits::parts_max};
      producer.parts++;
      part.incarnation = producer.incarnation;
    }
    part.attempt = std::max(part.attempt, copied.attempt);
    ZLOG_TRY(merge(copied, &part));
    ZLOG_TRY(kParts.put(object, key, part));
  }
  ZLOG_TRY(kProducers.put(object, producer_key, producer));
  return Empty();
}

}  // namespace zlog::producers
