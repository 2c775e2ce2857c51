#include "cls_zlog/head/view.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "cls_zlog/base/limits.h"
#include "cls_zlog/base/names.h"
#include "cls_zlog/wire/wire.h"

namespace zlog {
namespace {

constexpr uint32_t kStripeBytes = 8 + 8 + 8 + 4;

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
    if (!stripe.valid() || stripe.id > view.epoch) return false;
    if (previous != nullptr && (stripe.start != previous->end || stripe.id <= previous->id)) {
      return false;
    }
    previous = &stripe;
  }
  return true;
}

}  // namespace

bool Stripe::valid() const {
  return id >= 1 && width >= 1 && width <= limits::width_max && start <= limits::position_max &&
         end > start;
}

void encode_stripe(const Stripe& stripe, wire::Writer* writer) {
  writer->u64(stripe.id).u64(stripe.start).u64(stripe.end).u32(stripe.width);
}

Stripe decode_stripe(wire::Reader* reader) {
  Stripe stripe;
  stripe.id = reader->u64();
  stripe.start = reader->u64();
  stripe.end = reader->u64();
  stripe.width = reader->u32();
  return stripe;
}

void encode_stripes(const std::vector<Stripe>& stripes, wire::Writer* writer) {
  writer->u32(static_cast<uint32_t>(stripes.size()));
  for (const Stripe& stripe : stripes) encode_stripe(stripe, writer);
}

bool decode_stripes(wire::Reader* reader, uint32_t count_max, std::vector<Stripe>* out) {
  const uint32_t count = reader->u32();
  if (!reader->ok() || count > count_max || count > reader->rest().size() / kStripeBytes) {
    return false;
  }
  out->resize(count);
  for (Stripe& stripe : *out) stripe = decode_stripe(reader);
  return reader->ok();
}

std::string View::encode() const {
  std::string out = wire::new_message();
  wire::Writer writer(&out);
  writer.u64(epoch).u64(log_id).u8(static_cast<uint8_t>(state)).string(sequencer);
  encode_stripes(stripes, &writer);
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
  if (!decode_stripes(&reader, limits::view_stripes_max, &view.stripes)) return -EINVAL;
  if (!decode_options(&reader, &view.options) || !reader.done()) return -EINVAL;
  const bool valid = view.epoch >= 1 && state <= static_cast<uint8_t>(LogState::kRemoved) &&
                     valid_address(view.sequencer) && valid_stripes(view);
  if (!valid) return -EINVAL;
  *out = std::move(view);
  return 0;
}

bool may_follow(const View& next, const View* base, Succession* out) {
  const Stripe& last = next.stripes.back();
  const bool makes = last.id == next.epoch;
  if (makes) out->made = &last;
  if (base == nullptr) return makes && next.stripes.size() == 1 && last.start == 0;
  if (next.log_id != base->log_id) return false;
  if (base->state == LogState::kRemoved && next.state != LogState::kRemoved) return false;

  std::vector<Stripe> all = base->stripes;
  if (makes) {
    Stripe ended = all.back();
    all.pop_back();
    if (last.start < ended.start) return false;
    ended.end = last.start;
    if (ended.valid()) {
      all.push_back(ended);
    } else {
      out->left.push_back(ended);
    }
    all.push_back(last);
  }
  if (next.stripes.size() > all.size()) return false;
  const auto kept = all.end() - static_cast<std::ptrdiff_t>(next.stripes.size());
  out->left.insert(out->left.end(), all.begin(), kept);
  return std::equal(kept, all.end(), next.stripes.begin());
}

}  // namespace zlog
