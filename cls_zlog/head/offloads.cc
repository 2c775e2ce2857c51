#include "cls_zlog/head/offloads.h"

#include <algorithm>
#include <utility>

#include "cls_zlog/head/head.h"
#include "cls_zlog/head/omap_table.h"
#include "cls_zlog/head/stripe_index.h"

namespace zlog::offloads {
namespace {

using Stored = wire::Kept<Offload>;

constexpr head::OmapTable<Stored> kOffloads("o.");  // by last position

bool same_file(const Offload& a, const Offload& b) {
  return a.id == b.id && a.url == b.url && a.size == b.size && a.checksum == b.checksum;
}

// Returns -EINVAL if the record's stripe is neither archived nor an ended stripe of the view.
Failure check_stripe(Object& object, const View& view, const Offload& record) {
  const auto same = [&](const Stripe& stripe) {
    return stripe.id == record.id && stripe.start == record.start && stripe.end == record.end;
  };
  if (std::any_of(view.stripes.begin(), view.stripes.end(), same)) return {};
  Stripe archived;
  const Failure found = stripe_index::find(object, record.end, &archived);
  if (found.code != -ENOENT) ZLOG_TRY(found);
  return {found.code == 0 && same(archived) ? 0 : -EINVAL};
}

}  // namespace

Result<Empty> put(Object& object, Head& head, const OffloadPutRequest& request) {
  View view;
  ZLOG_TRY(head::load_newest(object, head, &view));
  if (view.state == LogState::kRemoved) return Failure{-ENOENT};
  if (!view.offloads) return Failure{-EINVAL};
  if (request.end <= head.trim_point) return Failure{kBelowTrimPoint, head.trim_point};
  ZLOG_TRY(check_stripe(object, view, request));
  const std::string key = kOffloads.key(request.end - 1);
  Stored stored;
  const Failure loaded = kOffloads.get(object, key, &stored);
  if (loaded.code == -ENOENT) {
    if (request.state != OffloadState::kWritten) return Failure{-EINVAL};
    static_cast<Offload&>(stored) = request;
  } else {
    ZLOG_TRY(loaded);
    if (!same_file(stored, request)) return Failure{kExists, stored.id};
    if (request.state <= stored.state) return Empty();
    stored.state = request.state;
  }
  return failure_of(kOffloads.put(object, key, stored));
}

Result<OffloadListReply> list(Object& object, Head&, const OffloadListRequest& request) {
  OffloadListReply reply;
  ZLOG_TRY(kOffloads.list(
      object, kOffloads.key_before(request.position), request.count_max, &reply.more,
      [&](const std::string&, Stored stored) { reply.records.push_back(std::move(stored)); }));
  return reply;
}

Result<Empty> forget(Object& object, Head& head, const OffloadForgetRequest& request) {
  const std::string key = kOffloads.key(request.end - 1);
  Stored stored;
  const Failure loaded = kOffloads.get(object, key, &stored);
  if (loaded.code == -ENOENT) return Empty();
  ZLOG_TRY(loaded);
  if (stored.url != request.url) return Failure{kExists, stored.id};
  const bool unused = stored.state == OffloadState::kWritten;
  if (!unused && request.end > head.trim_point) return Failure{-EINVAL};
  return failure_of(object.omap_remove(key));
}

}  // namespace zlog::offloads
