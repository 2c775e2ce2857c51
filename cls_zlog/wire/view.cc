#include "cls_zlog/wire/view.h"

namespace zlog {

bool View::valid() const {
  if (stripes.empty() || stripes.back().end != limits::end_open) return false;
  const Stripe* previous = nullptr;
  for (const Stripe& stripe : stripes) {
    if (stripe.id > epoch) return false;
    if (previous != nullptr && (stripe.start != previous->end || stripe.id <= previous->id)) {
      return false;
    }
    previous = &stripe;
  }
  for (const auto& [key, value] : options) {
    if (key.empty() || key.size() > limits::option_key_bytes_max) return false;
    if (value.size() > limits::option_value_bytes_max) return false;
  }
  return true;
}

}  // namespace zlog
