#pragma once

#include <type_traits>

#include "cls_zlog/head/cursors.h"
#include "cls_zlog/head/directory.h"
#include "cls_zlog/head/head.h"
#include "cls_zlog/head/offloads.h"
#include "cls_zlog/head/producers.h"
#include "cls_zlog/head/retention.h"
#include "cls_zlog/head/stripe_index.h"
#include "cls_zlog/methods.h"
#include "cls_zlog/repair/repair.h"
#include "cls_zlog/stripe/stripe.h"
#include "cls_zlog/version.h"

namespace zlog {

// A type for a handler, which is a Result<Reply>(Object&, const Request&).
template <auto handler>
struct Handler {};

// Makes a handler from a function that also takes the object's state. enter() loads the state
// before the function runs, and can refuse the request.
template <auto handler>
struct Entered;
template <typename Reply, typename State, typename Request,
          Result<Reply> (*handler)(Object&, State&, const Request&)>
struct Entered<handler> {
  static Result<Reply> call(Object& object, const Request& request) {
    std::remove_const_t<State> state;
    ZLOG_TRY(enter(object, request, &state));
    return handler(object, state, request);
  }
};
template <auto handler>
constexpr auto entered = Entered<handler>::call;

// The message of a handler's reply: the reply itself, or its Message if the reply is a builder.
template <typename Reply, typename = void>
struct Built {
  using Message = Reply;
};
template <typename Builder>
struct Built<Builder, std::void_t<typename Builder::Message>> {
  using Message = typename Builder::Message;
};
template <typename Reply>
using MessageOf = typename Built<Reply>::Message;

// Calls v(Handler<>(), name, flags) for each method of the class.
template <typename V>
constexpr void each_method(V&& v) {
  constexpr int reads = kRead, changes = kRead | kWrite, adds = kRead | kWrite | kAddsData;
  // stripe objects
  v(Handler<stripe::seal>(), "seal", changes);
  v(Handler<stripe::write>(), "write", adds);
  v(Handler<entered<stripe::read>>(), "read", reads);
  v(Handler<entered<stripe::select>>(), "select", reads);
  v(Handler<entered<stripe::tags_check>>(), "tags_check", reads);
  v(Handler<entered<stripe::tags_rebuild>>(), "tags_rebuild", changes);
  v(Handler<entered<stripe::tags_list>>(), "tags_list", reads);
  v(Handler<entered<stripe::compact>>(), "compact", changes);
  v(Handler<entered<stripe::verify>>(), "verify", reads);
  v(Handler<entered<stripe::count>>(), "count", reads);
  v(Handler<entered<stripe::fill>>(), "fill", changes);
  v(Handler<entered<stripe::trim>>(), "trim", changes);
  v(Handler<entered<stripe::trim_to>>(), "trim_to", changes);
  v(Handler<entered<stripe::max_position>>(), "max_position", reads);
  v(Handler<entered<stripe::stat>>(), "stat", reads);
  v(Handler<entered<stripe::remove>>(), "remove", changes);
  v(Handler<entered<stripe::freeze>>(), "freeze", changes);
  v(Handler<stripe::append>(), "append", adds);
  // the head object
  v(Handler<head::create>(), "head_create", adds);
  v(Handler<entered<head::epoch_next>>(), "epoch_next", changes);
  v(Handler<entered<head::epoch_read>>(), "epoch_read", reads);
  v(Handler<entered<head::tail_raise>>(), "tail_raise", changes);
  v(Handler<entered<head::trim_point_raise>>(), "trim_point_raise", changes);
  v(Handler<head::view_propose>(), "view_propose", changes);
  v(Handler<entered<head::view_read>>(), "view_read", reads);
  v(Handler<entered<head::remove>>(), "head_remove", changes);
  v(Handler<entered<stripe_index::read>>(), "stripes_read", reads);
  v(Handler<entered<stripe_index::pending>>(), "stripes_loose", reads);
  v(Handler<entered<stripe_index::forget>>(), "stripe_forget", changes);
  // offloaded stripes, on the head object
  v(Handler<entered<offloads::put>>(), "offload_put", changes);
  v(Handler<entered<offloads::list>>(), "offload_list", reads);
  v(Handler<entered<offloads::forget>>(), "offload_forget", changes);
  // the directory object
  v(Handler<directory::add>(), "directory_add", adds);
  v(Handler<directory::remove>(), "directory_remove", changes);
  v(Handler<directory::list>(), "directory_list", reads);
  v(Handler<directory::announce>(), "sequencer_announce", changes);
  v(Handler<directory::withdraw>(), "sequencer_withdraw", changes);
  v(Handler<directory::find>(), "sequencer_find", reads);
  // the cursors of a log, on its head object
  v(Handler<entered<cursors::commit>>(), "cursor_commit", changes);
  v(Handler<entered<cursors::read>>(), "cursor_read", reads);
  v(Handler<entered<cursors::list>>(), "cursor_list", reads);
  v(Handler<entered<cursors::remove>>(), "cursor_remove", changes);
  // the state of a log's retention, on its head object
  v(Handler<entered<retention::read>>(), "retention_read", reads);
  v(Handler<entered<retention::write>>(), "retention_write", adds);
  // producers of exactly-once appends, on the head object
  v(Handler<entered<producers::begin>>(), "delivery_begin", changes);
  v(Handler<entered<producers::grant>>(), "delivery_grant", adds);
  v(Handler<entered<producers::read>>(), "delivery_read", reads);
  v(Handler<entered<producers::done>>(), "delivery_done", changes);
  v(Handler<entered<producers::list>>(), "delivery_list", reads);
  v(Handler<entered<producers::parts>>(), "producer_parts", reads);
  v(Handler<entered<producers::copy>>(), "producer_copy", adds);
  // the repair of every object
  v(Handler<repair::damaged>(), "damaged", reads);
  v(Handler<repair::salvage>(), "salvage", reads);
  v(Handler<repair::heal>(), "heal", changes);
  // the process that answers
  v(Handler<version>(), "version", reads);
}

// The number of methods, at compile time.
constexpr size_t method_count() {
  size_t count = 0;
  each_method([&count](auto, const char*, int) { count++; });
  return count;
}

}  // namespace zlog
