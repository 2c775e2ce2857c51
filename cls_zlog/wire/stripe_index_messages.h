#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/head/view.h"

// Requests and replies of the methods on a log's stripe index, for both sides. The conventions are
// those of messages.h. The requests name the log by its id: a client of a removed log must not act
// on a new one of the same name.
namespace zlog {

struct StripesReadRequest {
  uint64_t log_id = 0;
  uint64_t position = 0;   // from the stripe that holds it, or the next one above
  uint32_t count_max = 0;  // stripes in the reply, 1 to stripes_page_max

  std::string encode() const;
  static int decode(std::string_view bytes, StripesReadRequest* out);
};

struct StripesReadReply {
  bool more = false;            // archived stripes above the last of these are left
  std::vector<Stripe> stripes;  // ascending

  std::string encode() const;
  static int decode(std::string_view bytes, StripesReadReply* out);
};

struct StripesLooseRequest {
  uint64_t log_id = 0;
  uint64_t after_id = 0;   // stripes of higher ids
  uint32_t count_max = 0;  // stripes in the reply, 1 to stripes_page_max

  std::string encode() const;
  static int decode(std::string_view bytes, StripesLooseRequest* out);
};

// A stripe whose objects may exist though no position is looked for in them.
struct LooseStripe {
  uint64_t id = 0;
  uint32_t width = 0;
};

struct StripesLooseReply {
  uint64_t newest = 0;  // epoch of the newest view
  bool more = false;    // loose stripes above the last of these are left
  std::vector<LooseStripe> stripes;  // ascending

  std::string encode() const;
  static int decode(std::string_view bytes, StripesLooseReply* out);
};

struct StripeForgetRequest {
  uint64_t log_id = 0;
  uint64_t id = 0;

  std::string encode() const;
  static int decode(std::string_view bytes, StripeForgetRequest* out);
};

}  // namespace zlog
