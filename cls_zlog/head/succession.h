#pragma once

#include <vector>

#include "cls_zlog/wire/view.h"

namespace zlog {

// What a view makes of the one before it.
struct Succession {
  std::vector<Stripe> left;      // stripes that are in the view no more, each with its end
  const Stripe* made = nullptr;  // the view's last stripe, if it is new
};

// Whether `next` may take over from `base` (nullptr: it is the log's first view), and what it makes
// of it. It has base's stripes without some of the first ones; or these with an end for the last
// one, and a new stripe behind it that carries the new epoch. A stripe that ends where it starts
// holds nothing, and is left out. The first view is one new stripe from position 0 on. A removed
// log stays removed.
bool may_follow(const View& next, const View* base, Succession* out);

}  // namespace zlog
