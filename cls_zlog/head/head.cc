#include "cls_zlog/head/head.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>

#include "cls_zlog/base/codes.h"
#include "cls_zlog/head/cursors.h"
#include "cls_zlog/base/envelope.h"
#include "cls_zlog/wire/head_messages.h"
#include "cls_zlog/head/head_state.h"
#include "cls_zlog/base/limits.h"
#include "cls_zlog/wire/messages.h"
#include "cls_zlog/head/stripe_index.h"
#include "cls_zlog/head/view.h"

namespace zlog::head {
namespace {

constexpr std::string_view kViewPrefix = "v.";
constexpr uint64_t kViewsPerListing = 16;  // each up to view_bytes_max

std::string view_key(uint64_t epoch) {
  char digits[16 + 1];
  std::snprintf(digits, sizeof(digits), "%016" PRIx64, epoch);
  return std::string(kViewPrefix) + digits;
}

// The newest view's bytes, which must be there: it is in the head.
int load_newest(Object& object, const Head& head, std::string* out) {
  const std::string key = view_key(head.newest);
  std::string value;
  const int r = object.omap_get(key, &value);
  if (r < 0) return r == -ENOENT ? -EIO : r;
  Unwrapped stored;
  if (!unwrap(key, value, &stored) || !stored.payload.empty()) return -EIO;
  out->assign(stored.body);
  return 0;
}

int refuse(int code, uint64_t epoch, std::string* out) {
  *out = encode_epoch_reply(epoch);
  return code;
}

// The newest view as bytes and decoded; both empty when there is none.
struct Newest {
  std::string bytes;
  View view;
};

int load_newest(Object& object, const Head& head, Newest* out) {
  if (head.newest == 0) return 0;
  if (const int r = load_newest(object, head, &out->bytes); r < 0) return r;
  return View::decode(out->bytes, &out->view) == 0 ? 0 : -EIO;
}

// Stores a view, and removes those of epochs long ago, which nobody works in any more.
int put_view(Object& object, uint64_t epoch, std::string_view view) {
  const std::string key = view_key(epoch);
  if (const int r = object.omap_set(key, wrap(key, view)); r < 0) return r;
  if (epoch <= limits::views_kept_max) return 0;
  return object.omap_remove_range(view_key(0), view_key(epoch - limits::views_kept_max + 1));
}

// Collects views from `from_epoch` on into `values` (key to body) until the reply is full.
int list_views(Object& object, const ViewReadRequest& request,
               std::map<std::string, std::string>* bodies, bool* more) {
  std::string after = request.from_epoch == 0 ? std::string(kViewPrefix)
                                              : view_key(request.from_epoch - 1);
  uint64_t bytes = 0;
  *more = true;
  while (*more && bodies->size() < request.count_max && bytes < limits::read_reply_bytes_max) {
    Page page;
    const uint64_t count = std::min<uint64_t>(request.count_max - bodies->size(), kViewsPerListing);
    const int r = object.omap_list(after, std::string(kViewPrefix), count, &page, more);
    if (r < 0) return r;
    if (page.empty()) return *more ? -EIO : 0;
    for (const auto& [key, value] : page) {
      Unwrapped stored;
      if (!unwrap(key, value.bytes, &stored) || !stored.payload.empty()) return -EIO;
      bytes += stored.body.size();
      bodies->emplace(key, stored.body);
    }
    after = page.rbegin()->first;
  }
  return 0;
}

}  // namespace

int create(Object& object, std::string_view in, std::string*) {
  HeadCreateRequest request;
  if (const int r = HeadCreateRequest::decode(in, &request); r < 0) return r;
  if (const int r = object.create(true); r < 0) return r;
  Head head;
  head.log_id = request.log_id;
  head.name = request.name;
  return head.save(object);
}

int epoch_next(Object& object, std::string_view in, std::string* out) {
  EpochNextRequest request;
  if (const int r = EpochNextRequest::decode(in, &request); r < 0) return r;
  Head head;
  if (const int r = Head::load(object, &head); r < 0) return r;
  if (head.counter == UINT64_MAX) return -ERANGE;
  head.counter++;
  if (request.width != 0) {
    const int r = stripe_index::announce(object, head.counter, request.width);
    if (r < 0) return r;
  }
  EpochNextReply reply;
  reply.epoch = head.counter;
  reply.tail_floor = head.tail_floor;
  *out = reply.encode();
  return head.save(object);
}

int epoch_read(Object& object, std::string_view in, std::string* out) {
  if (const int r = decode_empty(in); r < 0) return r;
  Head head;
  if (const int r = Head::load(object, &head); r < 0) return r;
  EpochReadReply reply;
  reply.counter = head.counter;
  reply.newest = head.newest;
  reply.tail_floor = head.tail_floor;
  reply.trim_point = head.trim_point;
  reply.log_id = head.log_id;
  *out = reply.encode();
  return kOk;
}

int tail_raise(Object& object, std::string_view in, std::string* out) {
  TailRaiseRequest request;
  if (const int r = TailRaiseRequest::decode(in, &request); r < 0) return r;
  Head head;
  if (const int r = Head::load(object, &head); r < 0) return r;
  if (request.log_id != head.log_id) return -ENOENT;
  if (request.epoch != head.counter) return refuse(kStaleEpoch, head.counter, out);
  if (request.tail <= head.tail_floor) return kOk;
  head.tail_floor = request.tail;
  return head.save(object);
}

int trim_point_raise(Object& object, std::string_view in, std::string* out) {
  TrimPointRequest request;
  if (const int r = TrimPointRequest::decode(in, &request); r < 0) return r;
  Head head;
  if (const int r = Head::load(object, &head); r < 0) return r;
  if (request.log_id != head.log_id) return -ENOENT;
  const bool raised = request.position > head.trim_point;
  if (raised && !request.past_cursors) {
    std::optional<uint64_t> held;
    if (const int r = cursors::lowest(object, &held); r < 0) return r;
    if (held && *held < request.position) {
      *out = encode_position_reply(*held);
      return kReadOnly;
    }
  }
  if (raised) head.trim_point = request.position;
  bool more = false;
  if (const int r = stripe_index::trim_to(object, head.trim_point, &more); r < 0) return r;
  *out = encode_more_reply(more);
  return raised ? head.save(object) : kOk;
}

int view_propose(Object& object, std::string_view in, std::string* out) {
  ViewProposeRequest request;
  if (const int r = ViewProposeRequest::decode(in, &request); r < 0) return r;
  View next;
  if (const int r = View::decode(request.view, &next); r < 0) return r;
  Head head;
  if (const int r = Head::load(object, &head); r < 0) return r;
  Newest newest;
  if (const int r = load_newest(object, head, &newest); r < 0) return r;
  if (newest.bytes == request.view) return kOk;
  if (next.epoch <= head.newest) return refuse(kInvalidEpoch, head.newest, out);
  if (next.epoch > head.counter) return refuse(kInvalidEpoch, head.counter, out);
  if (request.base != head.newest) return refuse(kStaleEpoch, head.newest, out);
  if (next.log_id != head.log_id) return -EINVAL;
  const View* base = head.newest == 0 ? nullptr : &newest.view;
  Succession succession;
  if (!may_follow(next, base, &succession)) return -EINVAL;
  if (const int r = stripe_index::end_announcement(object, next.epoch, succession.made); r < 0) return r;
  for (const Stripe& stripe : succession.left) {
    if (const int r = stripe_index::leave(object, stripe, head.trim_point); r < 0) return r;
  }
  if (const int r = put_view(object, next.epoch, request.view); r < 0) return r;
  head.newest = next.epoch;
  return head.save(object);
}

int view_read(Object& object, std::string_view in, std::string* out) {
  ViewReadRequest request;
  if (const int r = ViewReadRequest::decode(in, &request); r < 0) return r;
  Head head;
  if (const int r = Head::load(object, &head); r < 0) return r;
  ViewReadReply reply;
  reply.counter = head.counter;
  reply.newest = head.newest;
  reply.tail_floor = head.tail_floor;
  reply.trim_point = head.trim_point;
  reply.log_id = head.log_id;
  std::map<std::string, std::string> bodies;
  if (!request.latest) {
    if (const int r = list_views(object, request, &bodies, &reply.more); r < 0) return r;
  } else if (head.newest != 0) {
    std::string& body = bodies[view_key(head.newest)];
    if (const int r = load_newest(object, head, &body); r < 0) return r;
  }
  for (const auto& [key, body] : bodies) reply.views.push_back(body);
  *out = reply.encode();
  return kOk;
}

int remove(Object& object, std::string_view in, std::string* out) {
  EpochRequest request;
  if (const int r = EpochRequest::decode(in, &request); r < 0) return r;
  Head head;
  if (const int r = Head::load(object, &head); r < 0) return r;
  Newest newest;
  if (const int r = load_newest(object, head, &newest); r < 0) return r;
  const bool removed = head.newest != 0 && newest.view.state == LogState::kRemoved;
  if (!removed || request.epoch != head.newest) return refuse(kInvalidEpoch, head.newest, out);
  return object.remove();
}

}  // namespace zlog::head
