#include "cls_zlog/head/deliveries.h"

#include <algorithm>

#include "cls_zlog/base/hex.h"
#include "cls_zlog/head/head.h"
#include "cls_zlog/head/omap_table.h"

namespace zlog::deliveries {
namespace {

// A source. Its incarnation is its number among all sources that the log has ever had, so a source
// that was forgotten and made again is another one.
struct Source : SourceProgress {
  uint64_t incarnation = 0;
  wire::Further further;

  template <typename V>
  void each(V& v) {
    v("incarnation", incarnation);
    SourceProgress::each(v);
  }
};

using Part = wire::Kept<DeliveryReadReply>;

constexpr head::OmapTable<Source> kSources("s.");
constexpr head::OmapTable<Part> kParts("p.");

// No name has a slash, so the parts of two sources do not mix.
std::string parts_of(std::string_view source) { return kParts.key(source).append("/"); }

std::string key_of(const DeliveryRequest& delivery) {
  return parts_of(delivery.source) + head::hex_digits(delivery.batch) + '.' + hex(delivery.part, 8);
}

// kLimitReached: the log has no room for another source.
Failure check_room(Object& object, const Head& head) {
  ZLOG_TRY(kSources.check_room(object, limits::sources_max));
  return head.sources == UINT64_MAX ? Failure{kLimitReached, UINT64_MAX} : Failure{};
}

// A new source, of the head's next incarnation.
Source make(uint64_t timestamp, Head* head) {
  Source source;
  source.created = timestamp;
  source.incarnation = ++head->sources;
  return source;
}

// The source that a delivery_done names; `made`: it is new, and the head counts it. A late request
// about a source that was forgotten and made again has another incarnation. A damaged source has
// none, and a new one the next incarnation, so that it is made once.
Failure load_named(Object& object, const DeliveryDoneRequest& request, Head* head, Source* source,
                   bool* made) {
  *made = false;
  const Failure loaded = kSources.get(object, kSources.key(request.source), source);
  const bool missing = loaded.code == -ENOENT;
  const bool damaged = loaded.code == -EIO && request.incarnation == 0;
  if (request.batch == batch_all && (missing || damaged)) {
    *source = {};  // forgotten, whatever it was
    return {};
  }
  if (missing) {
    const uint64_t next = head->sources + 1;
    if (request.incarnation != next) return {kNotFound, next};
    ZLOG_TRY(check_room(object, *head));
    *source = make(request.timestamp, head);
    *made = true;
    return {};
  }
  ZLOG_TRY(loaded);
  if (request.incarnation == source->incarnation) return {};
  return {kSuperseded, source->incarnation};
}

}  // namespace

Result<DeliveryBeginReply> begin(Object& object, Head& head, const DeliveryBeginRequest& request) {
  const std::string source_key = kSources.key(request.source);
  Source source;
  const Failure known = kSources.get(object, source_key, &source);
  const bool is_new = known.code == -ENOENT;
  if (!is_new) ZLOG_TRY(known);
  if (request.batch < source.batch) return Failure{kBatchDone, source.batch};
  const std::string key = key_of(request);
  Part part;
  const Failure begun = kParts.get(object, key, &part);
  const bool first = begun.code == -ENOENT;
  if (!first) ZLOG_TRY(begun);
  if (part.attempt >= limits::attempts_max) return Failure{kLimitReached, limits::attempts_max};
  if (first && source.parts >= limits::parts_max) return Failure{kLimitReached, limits::parts_max};
  if (is_new) {
    ZLOG_TRY(check_room(object, head));
    source = make(request.timestamp, &head);
    ZLOG_TRY(head.save(object));
  }
  if (first) {
    source.parts++;
    part.incarnation = source.incarnation;
  }
  source.updated = request.timestamp;
  part.attempt++;
  ZLOG_TRY(kSources.put(object, source_key, source));
  ZLOG_TRY(kParts.put(object, key, part));
  return DeliveryBeginReply{part.attempt, static_cast<uint32_t>(part.grants.size()),
                            part.incarnation};
}

Result<DeliveryGrantReply> grant(Object& object, Head& head, const DeliveryGrantRequest& request) {
  // Checked first: an attempt that is refused for another reason fills the positions as its own.
  if (request.epoch != head.counter) return Failure{kStaleEpoch, head.counter};
  const std::string key = key_of(request);
  Part part;
  ZLOG_TRY(head::or_not_found(kParts.get(object, key, &part)));
  if (request.incarnation != part.incarnation) return Failure{kNotFound};
  if (request.attempt != part.attempt) return Failure{kSuperseded, part.attempt};
  uint64_t first = request.first;
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
  Source source;
  bool made = false;
  ZLOG_TRY(load_named(object, request, &head, &source, &made));
  source.updated = request.timestamp;
  source.batch = std::max(source.batch, request.batch);

  const std::string prefix = parts_of(request.source);
  // Above the parts of batches below this one, below those of later ones.
  const std::string end = prefix + head::hex_digits(source.batch);
  Page page;
  MoreReply reply;
  ZLOG_TRY(object.omap_list(prefix, prefix, limits::parts_removed_max, &page, &reply.more));
  if (page.empty() && reply.more) return Failure{-EIO};
  uint32_t removed = 0;
  for (const auto& [part, value] : page) {
    if (part >= end && source.batch != batch_all) break;
    ZLOG_TRY(object.omap_remove(part));
    removed++;
  }
  reply.more = reply.more && removed == page.size();
  source.parts -= std::min(removed, source.parts);
  if (made) ZLOG_TRY(head.save(object));
  const std::string key = kSources.key(request.source);
  if (source.batch == batch_all && !reply.more) {
    ZLOG_TRY(object.omap_remove(key));
  } else {
    ZLOG_TRY(kSources.put(object, key, source));
  }
  return reply;
}

Result<DeliveryListReply> list(Object& object, Head&, const NamesRequest& request) {
  DeliveryListReply reply;
  ZLOG_TRY(kSources.list(object, kSources.key(request.after), request.count_max, &reply.more,
                         [&](const std::string& name, const Source& source) {
                           reply.sources.push_back({source, name});
                         }));
  return reply;
}

}  // namespace zlog::deliveries
