#include "cls_zlog/methods.h"

#include <iterator>

#include "cls_zlog/head/cursors.h"
#include "cls_zlog/head/deliveries.h"
#include "cls_zlog/head/directory.h"
#include "cls_zlog/head/head.h"
#include "cls_zlog/stripe/stripe.h"
#include "cls_zlog/head/stripe_index.h"

namespace zlog {

namespace {

constexpr Method kMethods[] = {
    // stripe objects
    {"seal", kRead | kWrite, stripe::seal},
    {"write", kRead | kWrite, stripe::write},
    {"read", kRead, stripe::read},
    {"verify", kRead, stripe::verify},
    {"fill", kRead | kWrite, stripe::fill},
    {"trim", kRead | kWrite, stripe::trim},
    {"trim_to", kRead | kWrite, stripe::trim_to},
    {"max_position", kRead, stripe::max_position},
    {"stat", kRead, stripe::stat},
    {"remove", kRead | kWrite, stripe::remove},
    // the head object
    {"head_create", kRead | kWrite, head::create},
    {"epoch_next", kRead | kWrite, head::epoch_next},
    {"epoch_read", kRead, head::epoch_read},
    {"tail_raise", kRead | kWrite, head::tail_raise},
    {"trim_point_raise", kRead | kWrite, head::trim_point_raise},
    {"view_propose", kRead | kWrite, head::view_propose},
    {"view_read", kRead, head::view_read},
    {"head_remove", kRead | kWrite, head::remove},
    {"stripes_read", kRead, stripe_index::read},
    {"stripes_loose", kRead, stripe_index::loose},
    {"stripe_forget", kRead | kWrite, stripe_index::forget},
    // the directory object
    {"directory_add", kRead | kWrite, directory::add},
    {"directory_remove", kRead | kWrite, directory::remove},
    {"directory_list", kRead, directory::list},
    {"sequencer_announce", kRead | kWrite, directory::announce},
    {"sequencer_withdraw", kRead | kWrite, directory::withdraw},
    {"sequencer_find", kRead, directory::find},
    // the cursors of a log, on its head object
    {"cursor_commit", kRead | kWrite, cursors::commit},
    {"cursor_read", kRead, cursors::read},
    {"cursor_list", kRead, cursors::list},
    {"cursor_remove", kRead | kWrite, cursors::remove},
    // deliveries to a log, on its head object
    {"delivery_begin", kRead | kWrite, deliveries::begin},
    {"delivery_grant", kRead | kWrite, deliveries::grant},
    {"delivery_read", kRead, deliveries::read},
    {"delivery_done", kRead | kWrite, deliveries::done},
    {"delivery_list", kRead, deliveries::list},
};
static_assert(std::size(kMethods) == kMethodCount);

}  // namespace

const std::vector<Method>& methods() {
  static const std::vector<Method> all(std::begin(kMethods), std::end(kMethods));
  return all;
}

const Method* find_method(std::string_view name) {
  for (const Method& method : methods()) {
    if (name == method.name) return &method;
  }
  return nullptr;
}

}  // namespace zlog
