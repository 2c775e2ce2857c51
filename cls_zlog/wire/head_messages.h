#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/wire/stripe_messages.h"
#include "cls_zlog/wire/view.h"

// Requests and replies of the methods on head objects and on directory objects.
namespace zlog {

// The request of head_create, directory_add and directory_remove.
struct NamedLogRequest {
  std::string_view name;
  uint64_t log_id = 0;  // differs from that of an earlier log with the same name

  ZLOG_FIELDS(v) {
    v("name", name, wire::name());
    v("log_id", log_id);
  }
};

struct EpochNextRequest {
  uint32_t width = 0;  // of the stripe that may be created in the new epoch; 0: none
  uint64_t above = 0;  // an epoch with which an object is sealed

  ZLOG_FIELDS(v) {
    v("width", width, at_most(limits::width_max));
    v("above", above, at_most(limits::epoch_max).since(2));
  }
};

struct EpochNextReply {
  uint64_t epoch = 0;       // the counter's new value
  uint64_t tail_floor = 0;  // the epoch's tail must start at or above it

  ZLOG_FIELDS(v) {
    v("epoch", epoch);
    v("tail_floor", tail_floor);
  }
};

// The reply of epoch_read.
struct HeadReply {
  uint64_t counter = 0;     // the last epoch that was granted; 0: none
  uint64_t newest = 0;      // epoch of the newest view; 0: none
  uint64_t tail_floor = 0;  // a new epoch's tail starts at or above it
  uint64_t trim_point = 0;  // every position below it is trimmed
  uint64_t log_id = 0;

  ZLOG_FIELDS(v) {
    v("counter", counter);
    v("newest", newest);
    v("tail_floor", tail_floor);
    v("trim_point", trim_point);
    v("log_id", log_id);
  }
};

struct TailRaiseRequest : LogRequest {
  uint64_t epoch = 0;
  uint64_t tail = 0;

  ZLOG_FIELDS(v) {
    LogRequest::each(v);
    v("epoch", epoch);
    v("tail", tail, wire::position_or_end());
  }
};

struct TrimPointRequest : LogRequest {
  uint64_t position = 0;      // everything below it counts as trimmed
  bool past_cursors = false;  // trim even if a cursor is below it

  ZLOG_FIELDS(v) {
    LogRequest::each(v);
    v("position", position, wire::position_or_end());
    v("past_cursors", past_cursors);
  }
};

struct ViewProposeRequest {
  uint64_t base = 0;      // epoch of the view that this one was made from; 0: none
  std::string_view view;  // encoded (view.h)

  ZLOG_FIELDS(v) {
    v("base", base);
    v("view", view, at_most(limits::view_bytes_max));
  }
};

struct ViewReadRequest {
  uint64_t from_epoch = 0;
  uint32_t count_max = 0;  // views in the reply
  bool latest = false;     // only the newest view; ignore from_epoch

  ZLOG_FIELDS(v) {
    v("from_epoch", from_epoch);
    v("count_max", count_max, between(1, limits::views_page_max));
    v("latest", latest);
  }
};

struct ViewReadReply : HeadReply {
  bool more = false;               // the log has views above the last of them
  std::vector<std::string> views;  // encoded, ascending by epoch

  ZLOG_FIELDS(v) {
    HeadReply::each(v);
    v("more", more);
    v("views", views, at_most(limits::views_page_max));
  }
};

struct StripesReadRequest : LogRequest {
  uint64_t position = 0;   // list from the stripe that holds it, or the next one above
  uint32_t count_max = 0;  // stripes in the reply

  ZLOG_FIELDS(v) {
    LogRequest::each(v);
    v("position", position, wire::position());
    v("count_max", count_max, between(1, limits::stripes_page_max));
  }
};

struct StripesReadReply : MoreReply {
  std::vector<Stripe> stripes;  // ascending

  ZLOG_FIELDS(v) {
    MoreReply::each(v);
    v("stripes", stripes, at_most(limits::stripes_page_max));
  }
};

struct StripesLooseRequest : LogRequest {
  uint64_t after_id = 0;   // list stripes with higher ids
  uint32_t count_max = 0;  // stripes in the reply

  ZLOG_FIELDS(v) {
    LogRequest::each(v);
    v("after_id", after_id);
    v("count_max", count_max, between(1, limits::stripes_page_max));
  }
};

// A stripe whose objects may exist but are not needed (head/stripe_index.h). The head object stores
// the same fields.
struct PendingStripe {
  uint64_t id = 0;
  uint32_t width = 0;

  ZLOG_FIELDS(v) {
    v("id", id);
    v("width", width, between(1, limits::width_max));
  }
};

struct StripesLooseReply {
  uint64_t newest = 0;                 // epoch of the newest view
  bool more = false;                   // the log has pending stripes above the last of them
  std::vector<PendingStripe> stripes;  // ascending

  ZLOG_FIELDS(v) {
    v("newest", newest);
    v("more", more);
    v("stripes", stripes, at_most(limits::stripes_page_max));
  }
};

struct StripeForgetRequest : LogRequest {
  uint64_t id = 0;

  ZLOG_FIELDS(v) {
    LogRequest::each(v);
    v("id", id);
  }
};

// The reply of retention_read. The head object stores the same fields.
struct RetentionReply {
  uint64_t version = 0;  // the number of writes; 0: never written
  std::string state;     // docs/formats/head.md

  ZLOG_FIELDS(v) {
    v("version", version);
    v("state", state, at_most(limits::retention_bytes_max));
  }
};

struct RetentionWriteRequest : LogRequest {
  uint64_t version = 0;    // the version that this state was made from
  std::string_view state;  // of the next version

  ZLOG_FIELDS(v) {
    LogRequest::each(v);
    v("version", version);
    v("state", state, at_most(limits::retention_bytes_max));
  }
};

struct DirectoryListRequest {
  std::string_view after;  // list the names above it; empty: from the first
  uint32_t count_max = 0;  // names in the reply

  ZLOG_FIELDS(v) {
    v("after", after, wire::name_or_none());
    v("count_max", count_max, between(1, limits::names_page_max));
  }
};

struct DirectoryListReply : MoreReply {
  std::vector<std::string> names;  // ascending

  ZLOG_FIELDS(v) {
    MoreReply::each(v);
    v("names", names, wire::names(limits::names_page_max));
  }
};

// A message with a sequencer's address, or an empty string if no address is announced. The
// directory object stores the address in the same form.
struct AddressMessage {
  std::string address;

  ZLOG_FIELDS(v) { v("address", address, wire::address()); }
};

}  // namespace zlog
