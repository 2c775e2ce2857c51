#include "cls_zlog/head/stripe_index.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>

#include "cls_zlog/base/codes.h"
#include "cls_zlog/base/envelope.h"
#include "cls_zlog/head/head_state.h"
#include "cls_zlog/base/limits.h"
#include "cls_zlog/wire/messages.h"
#include "cls_zlog/wire/stripe_index_messages.h"
#include "cls_zlog/wire/wire.h"

namespace zlog::stripe_index {
namespace {

// Archived stripes by their last position, so that the first key at or above a position belongs to
// the stripe that holds it; loose ones by their id.
constexpr std::string_view kArchived = "t.";
constexpr std::string_view kLoose = "l.";

std::string key_of(std::string_view prefix, uint64_t number) {
  char digits[16 + 1];
  std::snprintf(digits, sizeof(digits), "%016" PRIx64, number);
  return std::string(prefix) + digits;
}

// The key below all those for `number` and above: where a listing from `number` on begins.
std::string key_before(std::string_view prefix, uint64_t number) {
  return number == 0 ? std::string(prefix) : key_of(prefix, number - 1);
}

int decode_archived(const std::string& key, std::string_view value, Stripe* out) {
  Unwrapped stored;
  if (!unwrap(key, value, &stored) || !stored.payload.empty()) return -EIO;
  wire::Reader reader(stored.body);
  *out = decode_stripe(&reader);
  const bool valid = reader.done() && out->valid() && out->end != limits::end_open &&
                     key == key_of(kArchived, out->end - 1);
  return valid ? 0 : -EIO;
}

int decode_loose(const std::string& key, std::string_view value, LooseStripe* out) {
  Unwrapped stored;
  if (!unwrap(key, value, &stored) || !stored.payload.empty()) return -EIO;
  wire::Reader reader(stored.body);
  out->id = reader.u64();
  out->width = reader.u32();
  const bool valid = reader.done() && out->width >= 1 && out->width <= limits::width_max &&
                     key == key_of(kLoose, out->id);
  return valid ? 0 : -EIO;
}

int put_loose(Object& object, uint64_t id, uint32_t width) {
  const std::string key = key_of(kLoose, id);
  std::string body;
  wire::Writer(&body).u64(id).u32(width);
  return object.omap_set(key, wrap(key, body));
}

// Sets `out` to the loose stripe of that id; -ENOENT: it is not loose.
int get_loose(Object& object, uint64_t id, LooseStripe* out) {
  const std::string key = key_of(kLoose, id);
  std::string value;
  const int r = object.omap_get(key, &value);
  return r < 0 ? r : decode_loose(key, value, out);
}

// Decodes up to `count_max` values from `after` on into `out`.
template <typename T>
int list(Object& object, std::string_view prefix, std::string after, uint32_t count_max,
         int (*decode)(const std::string&, std::string_view, T*), std::vector<T>* out,
         bool* more) {
  *more = true;
  while (*more && out->size() < count_max) {
    Page page;
    const int r = object.omap_list(after, std::string(prefix), count_max - out->size(), &page,
                                   more);
    if (r < 0) return r;
    if (page.empty()) return *more ? -EIO : 0;
    for (const auto& [key, value] : page) {
      T item;
      if (const int bad = decode(key, value.bytes, &item); bad < 0) return bad;
      out->push_back(item);
    }
    after = page.rbegin()->first;
  }
  return 0;
}

// The head of the log that the request is about.
int load(Object& object, uint64_t log_id, head::Head* out) {
  if (const int r = head::Head::load(object, out); r < 0) return r;
  return out->log_id == log_id ? 0 : -ENOENT;
}

}  // namespace

int read(Object& object, std::string_view in, std::string* out) {
  StripesReadRequest request;
  if (const int r = StripesReadRequest::decode(in, &request); r < 0) return r;
  head::Head head;
  if (const int r = load(object, request.log_id, &head); r < 0) return r;
  StripesReadReply reply;
  const int r = list(object, kArchived, key_before(kArchived, request.position), request.count_max,
                     decode_archived, &reply.stripes, &reply.more);
  if (r < 0) return r;
  *out = reply.encode();
  return kOk;
}

int loose(Object& object, std::string_view in, std::string* out) {
  StripesLooseRequest request;
  if (const int r = StripesLooseRequest::decode(in, &request); r < 0) return r;
  head::Head head;
  if (const int r = load(object, request.log_id, &head); r < 0) return r;
  StripesLooseReply reply;
  reply.newest = head.newest;
  const int r = list(object, kLoose, key_of(kLoose, request.after_id), request.count_max,
                     decode_loose, &reply.stripes, &reply.more);
  if (r < 0) return r;
  *out = reply.encode();
  return kOk;
}

int forget(Object& object, std::string_view in, std::string* out) {
  StripeForgetRequest request;
  if (const int r = StripeForgetRequest::decode(in, &request); r < 0) return r;
  head::Head head;
  if (const int r = load(object, request.log_id, &head); r < 0) return r;
  LooseStripe stripe;
  const int r = get_loose(object, request.id, &stripe);
  if (r == -ENOENT) return kOk;
  if (r < 0) return r;
  if (request.id >= head.newest) {
    *out = encode_epoch_reply(head.newest);
    return kInvalidEpoch;
  }
  return object.omap_remove(key_of(kLoose, request.id));
}

int announce(Object& object, uint64_t epoch, uint32_t width) {
  return put_loose(object, epoch, width);
}

int end_announcement(Object& object, uint64_t epoch, const Stripe* made) {
  LooseStripe announced;
  const int r = get_loose(object, epoch, &announced);
  if (r == -ENOENT) return made == nullptr ? 0 : -EINVAL;
  if (r < 0) return r;
  if (made != nullptr && made->width != announced.width) return -EINVAL;
  return object.omap_remove(key_of(kLoose, epoch));
}

int leave(Object& object, const Stripe& stripe, uint64_t trim_point) {
  if (stripe.end <= std::max(trim_point, stripe.start)) {
    return put_loose(object, stripe.id, stripe.width);
  }
  const std::string key = key_of(kArchived, stripe.end - 1);
  std::string body;
  wire::Writer writer(&body);
  encode_stripe(stripe, &writer);
  return object.omap_set(key, wrap(key, body));
}

int trim_to(Object& object, uint64_t trim_point, bool* more) {
  Page page;
  const int r = object.omap_list(std::string(kArchived), std::string(kArchived),
                                 limits::stripes_moved_max, &page, more);
  if (r < 0) return r;
  for (const auto& [key, value] : page) {
    Stripe stripe;
    if (const int bad = decode_archived(key, value.bytes, &stripe); bad < 0) return bad;
    if (stripe.end > trim_point) {
      *more = false;
      return 0;
    }
    if (const int failed = object.omap_remove(key); failed < 0) return failed;
    if (const int failed = put_loose(object, stripe.id, stripe.width); failed < 0) return failed;
  }
  return 0;
}

}  // namespace zlog::stripe_index
