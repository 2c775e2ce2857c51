#include "cls_zlog/head/stripe_index.h"

#include <algorithm>

#include "cls_zlog/head/head_state.h"
#include "cls_zlog/head/omap_table.h"

namespace zlog::stripe_index {
namespace {

using head::Head;
using head::OmapTable;

// Archived stripes by their last position, so that the first key at or above a position belongs to
// the stripe that holds it; loose ones by their id.
constexpr OmapTable<Stripe> kArchived("t.");
constexpr OmapTable<LooseStripe> kLoose("l.");

template <typename T>
std::vector<T> values_of(const std::vector<typename OmapTable<T>::Row>& rows) {
  std::vector<T> values;
  values.reserve(rows.size());
  for (const auto& row : rows) values.push_back(row.value);
  return values;
}

int put_loose(Object& object, uint64_t id, uint32_t width) {
  return kLoose.put(object, kLoose.key(id), {id, width});
}

}  // namespace

Result<StripesReadReply> read(Object& object, const StripesReadRequest& request) {
  Head head;
  ZLOG_TRY(Head::load(object, request.log_id, &head));
  std::vector<OmapTable<Stripe>::Row> rows;
  StripesReadReply reply;
  ZLOG_TRY(kArchived.list(object, kArchived.key_before(request.position), request.count_max, &rows,
                          &reply.more));
  reply.stripes = values_of<Stripe>(rows);
  return reply;
}

Result<StripesLooseReply> loose(Object& object, const StripesLooseRequest& request) {
  Head head;
  ZLOG_TRY(Head::load(object, request.log_id, &head));
  std::vector<OmapTable<LooseStripe>::Row> rows;
  StripesLooseReply reply;
  reply.newest = head.newest;
  ZLOG_TRY(
      kLoose.list(object, kLoose.key(request.after_id), request.count_max, &rows, &reply.more));
  reply.stripes = values_of<LooseStripe>(rows);
  return reply;
}

Result<Empty> forget(Object& object, const StripeForgetRequest& request) {
  Head head;
  ZLOG_TRY(Head::load(object, request.log_id, &head));
  const std::string key = kLoose.key(request.id);
  LooseStripe stripe;
  const Failure loaded = kLoose.get(object, key, &stripe);
  if (loaded.code == -ENOENT) return Empty();
  ZLOG_TRY(loaded);
  if (request.id >= head.newest) return Failure{kInvalidEpoch, head.newest};
  ZLOG_TRY(object.omap_remove(key));
  return Empty();
}

Failure announce(Object& object, uint64_t epoch, uint32_t width) {
  return {put_loose(object, epoch, width)};
}

Failure end_announcement(Object& object, uint64_t epoch, const Stripe* made) {
  const std::string key = kLoose.key(epoch);
  LooseStripe announced;
  const Failure loaded = kLoose.get(object, key, &announced);
  if (loaded.code == -ENOENT) return {made == nullptr ? 0 : -EINVAL};
  ZLOG_TRY(loaded);
  if (made != nullptr && made->width != announced.width) return {-EINVAL};
  return {object.omap_remove(key)};
}

Failure leave(Object& object, const Stripe& stripe, uint64_t trim_point) {
  if (stripe.end <= std::max(trim_point, stripe.start)) {
    return {put_loose(object, stripe.id, stripe.width)};
  }
  return {kArchived.put(object, kArchived.key(stripe.end - 1), stripe)};
}

Failure trim_to(Object& object, uint64_t trim_point, bool* more) {
  std::vector<OmapTable<Stripe>::Row> rows;
  ZLOG_TRY(kArchived.list(object, kArchived.key(""), limits::stripes_moved_max, &rows, more));
  for (const auto& [name, stripe] : rows) {
    if (stripe.end > trim_point) {
      *more = false;
      return {};
    }
    ZLOG_TRY(object.omap_remove(kArchived.key(name)));
    ZLOG_TRY(put_loose(object, stripe.id, stripe.width));
  }
  return {};
}

}  // namespace zlog::stripe_index
