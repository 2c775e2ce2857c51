#include "cls_zlog/head/stripe_index.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cls_zlog/head/omap_table.h"

namespace zlog::stripe_index {
namespace {

using head::OmapTable;

constexpr OmapTable<Stripe> kArchived("t.");        // by last position
constexpr OmapTable<PendingStripe> kPending("l.");  // by id

}  // namespace

Result<StripesReadReply> read(Object& object, Head&, const StripesReadRequest& request) {
  StripesReadReply reply;
  ZLOG_TRY(kArchived.list(
      object, kArchived.key_before(request.position), request.count_max, &reply.more,
      [&](const std::string&, const Stripe& stripe) { reply.stripes.push_back(stripe); }));
  return reply;
}

Result<StripesLooseReply> pending(Object& object, Head& head, const StripesLooseRequest& request) {
  StripesLooseReply reply;
  reply.newest = head.newest;
  ZLOG_TRY(kPending.list(
      object, kPending.key(request.after_id), request.count_max, &reply.more,
      [&](const std::string&, const PendingStripe& stripe) { reply.stripes.push_back(stripe); }));
  return reply;
}

Result<Empty> forget(Object& object, Head& head, const StripeForgetRequest& request) {
  const std::string key = kPending.key(request.id);
  PendingStripe stripe;
  const Failure loaded = kPending.get(object, key, &stripe);
  if (loaded.code == -ENOENT) return Empty();
  ZLOG_TRY(loaded);
  if (request.id >= head.newest) return Failure{kInvalidEpoch, head.newest};
  return failure_of(object.omap_remove(key));
}

Failure announce(Object& object, uint64_t id, uint32_t width) {
  return {kPending.put(object, kPending.key(id), {id, width})};
}

Failure end_announcement(Object& object, uint64_t epoch, const Stripe* made) {
  const std::string key = kPending.key(epoch);
  PendingStripe announced;
  const Failure loaded = kPending.get(object, key, &announced);
  if (loaded.code == -ENOENT) return {made == nullptr ? 0 : -EINVAL};
  ZLOG_TRY(loaded);
  if (made != nullptr && made->width != announced.width) return {-EINVAL};
  return {object.omap_remove(key)};
}

Failure find(Object& object, uint64_t end, Stripe* out) {
  return kArchived.get(object, kArchived.key(end - 1), out);
}

Failure leave(Object& object, const Stripe& stripe, uint64_t trim_point) {
  const bool empty = stripe.end <= std::max(trim_point, stripe.start);
  if (empty) return announce(object, stripe.id, stripe.width);
  return {kArchived.put(object, kArchived.key(stripe.end - 1), stripe)};
}

Failure trim_to(Object& object, uint64_t trim_point, bool* more) {
  std::vector<std::pair<std::string, Stripe>> rows;
  ZLOG_TRY(kArchived.list(
      object, kArchived.key(""), limits::stripes_moved_max, more,
      [&](const std::string& name, const Stripe& stripe) { rows.emplace_back(name, stripe); }));
  for (const auto& [name, stripe] : rows) {
    if (stripe.end > trim_point) {
      *more = false;
      return {};
    }
    ZLOG_TRY(object.omap_remove(kArchived.key(name)));
    ZLOG_TRY(announce(object, stripe.id, stripe.width));
  }
  return {};
}

}  // namespace zlog::stripe_index
