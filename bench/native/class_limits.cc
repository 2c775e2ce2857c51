#include <utility>

#include "cls_zlog/wire/frame.h"
#include "cls_zlog/wire/head_messages.h"
#include "limits.h"
#include "stripe.h"

namespace zlog::bench {
namespace {

using Host = std::shared_ptr<AsyncHost>;

// Returns the striping of the objects. The default stripe unit is 1.
Striping striping(const Options& options) {
  const uint64_t stripe_unit = options.has("stripe_unit") ? options.number("stripe_unit") : 1;
  return striping_of(static_cast<uint32_t>(options.number("objects")),
                     static_cast<uint32_t>(stripe_unit));
}

// A call is a write method that finds nothing to write.
Measure class_calls(const Host& host, const Options& options) {
  const auto stripe = std::make_shared<Stripe>(host, striping(options));
  const std::string absent = wire::encoded(AddressMessage{"tcp://absent.invalid:1"});
  const uint64_t stripe_unit = striping(options).unit();
  return [=, in_flight = options.number("in_flight")](double seconds) {
    uint64_t number = 0;
    return repeat(in_flight, seconds, [&](Finish finish) {
      host->submit({stripe->object(number++ * stripe_unit), "sequencer_withdraw",
                    RequestBytes::copy_of(absent),
                    [finish = std::move(finish)](int code, const Buffer&) { finish(code); }});
      return true;
    });
  };
}

// A call writes a batch with one write per object, and ends with the last of these.
Measure class_writes(const Host& host, const Options& options) {
  const auto batch = std::make_shared<Entries>(options.number("batch"), options.number("size"));
  const uint64_t in_flight = options.number("in_flight");
  return [=](double seconds) {
    Stripe stripe(host, striping(options));
    return repeat(in_flight, seconds, [&](const Finish& finish) {
      if (stripe.full()) return false;
      stripe.append(*batch, finish);
      return true;
    });
  };
}

}  // namespace

Measure class_limit(const std::string& kind, const Options& options, const Host& host) {
  if (kind == "class_calls") return class_calls(host, options);
  if (kind == "class_writes") return class_writes(host, options);
  return nullptr;
}

}  // namespace zlog::bench
