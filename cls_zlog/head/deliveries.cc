#include "cls_zlog/head/deliveries.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <map>

#include "cls_zlog/base/codes.h"
#include "cls_zlog/wire/delivery_messages.h"
#include "cls_zlog/base/envelope.h"
#include "cls_zlog/head/head_state.h"
#include "cls_zlog/base/limits.h"
#include "cls_zlog/wire/messages.h"
#include "cls_zlog/wire/wire.h"

namespace zlog::deliveries {
namespace {

// A source, and its number among all that the log has ever had: one that was forgotten and comes
// again is another, so that nobody takes an append of either for one of the other.
struct Source : DeliverySource {
  uint64_t incarnation = 0;
};

using Part = DeliveryReadReply;

constexpr std::string_view kSources = "s.";
constexpr std::string_view kParts = "p.";

std::string key_of(std::string_view source) { return std::string(kSources).append(source); }

// No name has a slash in it: so no source's parts are among those of another.
std::string parts_of(std::string_view source) {
  return std::string(kParts).append(source).append("/");
}

std::string key_of(const DeliveryRequest& delivery) {
  char digits[16 + 1 + 8 + 1];
  std::snprintf(digits, sizeof(digits), "%016" PRIx64 ".%08" PRIx32, delivery.batch,
                delivery.part);
  return parts_of(delivery.source) + digits;
}

// Above all parts of batches below `batch`, and not above those of `batch` and later ones.
std::string parts_end(std::string_view source, uint64_t batch) {
  char digits[16 + 1];
  std::snprintf(digits, sizeof(digits), "%016" PRIx64, batch);
  return parts_of(source) + digits;
}

// The head of the log that the request is about: not that of another one which got its name.
int load_head(Object& object, uint64_t log_id, head::Head* out) {
  if (const int r = head::Head::load(object, out); r < 0) return r;
  return out->log_id == log_id ? 0 : -ENOENT;
}

// What is stored under a key. -ENOENT: nothing.
int load_body(Object& object, const std::string& key, std::string* value, std::string_view* body) {
  if (const int r = object.omap_get(key, value); r < 0) return r;
  Unwrapped stored;
  if (!unwrap(key, *value, &stored) || !stored.payload.empty()) return -EIO;
  *body = stored.body;
  return 0;
}

int decode(std::string_view body, Source* out) {
  wire::Reader reader(body);
  out->incarnation = reader.u64();
  out->batch = reader.u64();
  out->parts = reader.u32();
  out->created = reader.u64();
  out->updated = reader.u64();
  return reader.done() && out->parts <= limits::parts_max ? 0 : -EIO;
}

int load(Object& object, const std::string& key, Source* out) {
  std::string value;
  std::string_view body;
  const int r = load_body(object, key, &value, &body);
  return r < 0 ? r : decode(body, out);
}

int save(Object& object, const std::string& key, const Source& source) {
  std::string body;
  wire::Writer writer(&body);
  writer.u64(source.incarnation).u64(source.batch).u32(source.parts);
  writer.u64(source.created).u64(source.updated);
  return object.omap_set(key, wrap(key, body));
}

// Up to `count_max` sources whose keys are above `after`, by key.
int load_page(Object& object, const std::string& after, uint64_t count_max,
              std::map<std::string, Source>* out, bool* more) {
  Page page;
  if (const int r = object.omap_list(after, std::string(kSources), count_max, &page, more); r < 0) {
    return r;
  }
  if (page.empty() && *more) return -EIO;
  for (const auto& [key, value] : page) {
    Unwrapped stored;
    if (!unwrap(key, value.bytes, &stored) || !stored.payload.empty()) return -EIO;
    if (const int r = decode(stored.body, &(*out)[key]); r < 0) return r;
  }
  return 0;
}

// A part is stored as it is sent, without the version of a message.
int load(Object& object, const std::string& key, Part* out) {
  std::string value;
  std::string_view body;
  if (const int r = load_body(object, key, &value, &body); r < 0) return r;
  if (Part::decode(wire::new_message().append(body), out) < 0) return -EIO;
  const auto sound = [](const Grant& grant) {
    return grant.count >= 1 && grant.first <= limits::position_max &&
           grant.count - 1 <= limits::position_max - grant.first;
  };
  const bool valid = out->attempt <= limits::attempts_max &&
                     out->grants.size() <= limits::grants_max &&
                     std::all_of(out->grants.begin(), out->grants.end(), sound);
  return valid ? 0 : -EIO;
}

int save(Object& object, const std::string& key, const Part& part) {
  return object.omap_set(key, wrap(key, part.encode().substr(1)));
}

// Whether the log has room for one more source.
int check_count(Object& object) {
  std::string after(kSources);
  bool more = true;
  uint64_t count = 0;
  while (more) {
    Page page;
    const int r = object.omap_list(after, std::string(kSources), limits::page_records_max, &page,
                                   &more);
    if (r < 0) return r;
    if (page.empty()) return more ? -EIO : 0;
    count += page.size();
    if (count >= limits::sources_max) return -EMFILE;
    after = page.rbegin()->first;
  }
  return 0;
}

// A new source, of the head's next incarnation.
int make(Object& object, uint64_t timestamp, head::Head* head, Source* out) {
  if (const int full = check_count(object); full < 0) return full;
  if (head->sources == UINT64_MAX) return -ERANGE;
  *out = {};
  out->created = timestamp;
  out->incarnation = ++head->sources;
  return head->save(object);
}

int refuse(int code, uint64_t number, std::string* out) {
  *out = encode_position_reply(number);
  return code;
}

// The source that a delivery_done names. Not another one of the name: the request may be a late one
// about a source that was forgotten and has come again. One that is damaged has no incarnation; one
// that is not there yet is named by the next one, so that this is done once.
int load_named(Object& object, const std::string& key, const DeliveryDoneRequest& request,
               head::Head* head, Source* source, std::string* out) {
  const int r = load(object, key, source);
  const bool forget = request.batch == batch_all;
  if (forget && (r == -ENOENT || (r == -EIO && request.incarnation == 0))) {
    *source = {};  // it goes, whatever it was
    return kOk;
  }
  if (r == -ENOENT) {
    const uint64_t next = head->sources + 1;
    if (request.incarnation != next) return refuse(kNotWritten, next, out);
    return make(object, request.timestamp, head, source);
  }
  if (r < 0) return r;
  if (request.incarnation == source->incarnation) return kOk;
  return refuse(kReadOnly, source->incarnation, out);
}

}  // namespace

int begin(Object& object, std::string_view in, std::string* out) {
  DeliveryBeginRequest request;
  if (const int r = DeliveryBeginRequest::decode(in, &request); r < 0) return r;
  const DeliveryRequest& delivery = request.delivery;
  head::Head head;
  if (const int r = load_head(object, delivery.log_id, &head); r < 0) return r;
  const std::string source_key = key_of(delivery.source);
  Source source;
  int loaded = load(object, source_key, &source);
  if (loaded == -ENOENT) loaded = make(object, request.timestamp, &head, &source);
  if (loaded < 0) return loaded;
  source.updated = request.timestamp;
  if (delivery.batch < source.batch) return refuse(kInvalidated, source.batch, out);
  const std::string key = key_of(delivery);
  Part part;
  const int found = load(object, key, &part);
  if (found < 0 && found != -ENOENT) return found;
  if (part.attempt >= limits::attempts_max) return -ERANGE;
  if (found == -ENOENT) {
    if (source.parts >= limits::parts_max) return -EMLINK;
    source.parts++;
    part.incarnation = source.incarnation;
  }
  if (const int r = save(object, source_key, source); r < 0) return r;
  part.attempt++;
  DeliveryBeginReply reply;
  reply.attempt = part.attempt;
  reply.grants = static_cast<uint32_t>(part.grants.size());
  reply.incarnation = part.incarnation;
  *out = reply.encode();
  return save(object, key, part);
}

int grant(Object& object, std::string_view in, std::string* out) {
  DeliveryGrantRequest request;
  if (const int r = DeliveryGrantRequest::decode(in, &request); r < 0) return r;
  head::Head head;
  if (const int r = load_head(object, request.delivery.log_id, &head); r < 0) return r;
  // Before all else: whoever is refused for another reason takes the positions for its own.
  if (request.epoch != head.counter) {
    *out = encode_epoch_reply(head.counter);
    return kStaleEpoch;
  }
  const std::string key = key_of(request.delivery);
  Part part;
  if (const int r = load(object, key, &part); r < 0) return r == -ENOENT ? kNotWritten : r;
  if (request.incarnation != part.incarnation) return kNotWritten;
  if (request.attempt != part.attempt) return refuse(kReadOnly, part.attempt, out);
  uint64_t first = request.first;
  if (request.reserve) first = std::max(first, head.tail_floor);
  if (first > limits::position_max || request.count - 1 > limits::position_max - first) {
    return -ERANGE;
  }
  const uint64_t end = first + request.count;
  if (!part.grants.empty() && part.grants.back().first + part.grants.back().count == first) {
    part.grants.back().count += request.count;
  } else if (part.grants.size() >= limits::grants_max) {
    return -E2BIG;
  } else {
    part.grants.push_back({first, request.count});
  }
  if (const int r = save(object, key, part); r < 0) return r;
  *out = encode_position_reply(first);
  if (end <= head.tail_floor) return kOk;
  head.tail_floor = end;
  return head.save(object);
}

int read(Object& object, std::string_view in, std::string* out) {
  DeliveryRequest request;
  if (const int r = DeliveryRequest::decode(in, &request); r < 0) return r;
  head::Head head;
  if (const int r = load_head(object, request.log_id, &head); r < 0) return r;
  Part part;
  const int r = load(object, key_of(request), &part);
  if (r < 0) return r == -ENOENT ? kNotWritten : r;
  *out = part.encode();
  return kOk;
}

int done(Object& object, std::string_view in, std::string* out) {
  DeliveryDoneRequest request;
  if (const int r = DeliveryDoneRequest::decode(in, &request); r < 0) return r;
  head::Head head;
  if (const int r = load_head(object, request.log_id, &head); r < 0) return r;
  const std::string key = key_of(request.source);
  Source source;
  if (const int r = load_named(object, key, request, &head, &source, out); r != kOk) return r;
  source.updated = request.timestamp;
  source.batch = std::max(source.batch, request.batch);

  const std::string prefix = parts_of(request.source);
  const std::string end = parts_end(request.source, source.batch);
  Page page;
  bool more = false;
  const int r = object.omap_list(prefix, prefix, limits::parts_removed_max, &page, &more);
  if (r < 0) return r;
  if (page.empty() && more) return -EIO;
  uint32_t removed = 0;
  for (const auto& [part, value] : page) {
    if (part >= end && source.batch != batch_all) break;
    if (const int gone = object.omap_remove(part); gone < 0) return gone;
    removed++;
  }
  more = more && removed == page.size();
  source.parts -= std::min(removed, source.parts);
  *out = encode_more_reply(more);
  if (source.batch == batch_all && !more) return object.omap_remove(key);
  return save(object, key, source);
}

int list(Object& object, std::string_view in, std::string* out) {
  DeliveryListRequest request;
  if (const int r = DeliveryListRequest::decode(in, &request); r < 0) return r;
  head::Head head;
  if (const int r = load_head(object, request.log_id, &head); r < 0) return r;
  std::map<std::string, Source> found;
  std::string after = key_of(request.after);
  DeliveryListReply reply;
  reply.more = true;
  while (reply.more && found.size() < request.count_max) {
    const uint64_t left = request.count_max - found.size();
    if (const int r = load_page(object, after, left, &found, &reply.more); r < 0) return r;
    if (!found.empty()) after = found.rbegin()->first;
  }
  reply.sources.reserve(found.size());
  for (const auto& [key, source] : found) {
    reply.sources.push_back({std::string_view(key).substr(kSources.size()), source});
  }
  *out = reply.encode();
  return kOk;
}

}  // namespace zlog::deliveries
