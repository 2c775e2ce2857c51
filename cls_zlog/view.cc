#include "view.h"

#include <cerrno>

#include "limits.h"
#include "names.h"
#include "wire.h"

namespace zlog {
namespace {

constexpr uint32_t kStripeBytes = 8 + 8 + 8 + 4;

bool decode_stripes(wire::Reader* reader, std::vector<Stripe>* out) {
  const uint32_t count = reader->u32();
  if (!reader->ok() || count > reader->rest().size() / kStripeBytes) return false;
  out->resize(count);
  for (Stripe& stripe : *out) {
    stripe.id = reader->u64();
    stripe.start = reader->u64();
    stripe.end = reader->u64();
    stripe.width = reader->u32();
  }
  return reader->ok();
}

// Keys ascend strictly on the wire, so that a view has one encoding only.
bool decode_options(wire::Reader* reader, std::map<std::string, std::string>* out) {
  const uint32_t count = reader->u32();
  for (uint32_t i = 0; i < count && reader->ok(); i++) {
    const std::string_view key = reader->string(limits::option_key_bytes_max);
    const std::string_view value = reader->string(limits::option_value_bytes_max);
    if (!reader->ok() || key.empty() || (!out->empty() && key <= out->rbegin()->first)) {
      return false;
    }
    out->emplace_hint(out->end(), key, value);
  }
  return reader->ok();
}

bool valid_stripes(const View& view) {
  if (view.stripes.empty()) return false;
  if (view.stripes.back().end != limits::end_open) return false;
  const Stripe* previous = nullptr;
  for (const Stripe& stripe : view.stripes) {
    if (stripe.width < 1 || stripe.width > limits::width_max) return false;
    if (stripe.start > limits::position_max || stripe.end < stripe.start) return false;
    if (stripe.id < 1 || stripe.id > view.epoch) return false;
    if (previous != nullptr && (stripe.start != previous->end || stripe.id <= previous->id)) {
      return false;
    }
    previous = &stripe;
  }
  return true;
}

}  // namespace

std::string View::encode() const {
  std::string out = wire::new_message();
  wire::Writer writer(&out);
  writer.u64(epoch).u64(log_id).u8(static_cast<uint8_t>(state)).string(sequencer);
  writer.u32(static_cast<uint32_t>(stripes.size()));
  for (const Stripe& stripe : stripes) {
    writer.u64(stripe.id).u64(stripe.start).u64(stripe.end).u32(stripe.width);
  }
  writer.u32(static_cast<uint32_t>(options.size()));
  for (const auto& [key, value] : options) writer.string(key).string(value);
  return out;
}

int View::decode(std::string_view bytes, View* out) {
  if (bytes.size() > limits::view_bytes_max) return -EINVAL;
  wire::Reader reader = wire::open_message(bytes);
  View view;
  view.epoch = reader.u64();
  view.log_id = reader.u64();
  const uint8_t state = reader.u8();
  view.state = static_cast<LogState>(state);
  view.sequencer = reader.string(limits::address_bytes_max);
  if (!decode_stripes(&reader, &view.stripes)) return -EINVAL;
  if (!decode_options(&reader, &view.options) || !reader.done()) return -EINVAL;
  const bool valid = view.epoch >= 1 && state <= static_cast<uint8_t>(LogState::kRemoved) &&
                     valid_address(view.sequencer) && valid_stripes(view);
  if (!valid) return -EINVAL;
  *out = std::move(view);
  return 0;
}

bool may_follow(const View& next, const View* base, uint64_t trim_point) {
  if (next.stripes.front().start > trim_point) return false;
  auto made = next.stripes.begin();  // the first stripe that is not one of base's
  if (base != nullptr) {
    if (next.log_id != base->log_id) return false;
    if (base->state == LogState::kRemoved && next.state != LogState::kRemoved) return false;
    for (const Stripe& stripe : base->stripes) {
      const bool kept = made != next.stripes.end() && made->same_place(stripe);
      if (!kept) {
        // Only a prefix may go, and only when all of it is trimmed.
        const bool leading = made == next.stripes.begin();
        if (!leading || stripe.end > trim_point) return false;
        continue;
      }
      if (made->end != stripe.end && stripe.end != limits::end_open) return false;
      made++;
    }
  }
  for (; made != next.stripes.end(); made++) {
    if (made->id != next.epoch) return false;
  }
  return true;
}

}  // namespace zlog
