#include "class_work.h"

#include <utility>
#include <vector>

#include "cls_zlog/wire/frame.h"
#include "cls_zlog/wire/head_messages.h"
#include "stripe.h"

namespace zlog::bench {
namespace {

constexpr uint32_t kWindowsBytes = 4u << 20;  // what a read of one object may bring back

class ClassWork final : public Work {
 public:
  explicit ClassWork(AsyncHost& host) : host_(host) {}

  bool measure(const Request& request, Sample* sample) override {
    if (request.kind() == "class_calls") {
      *sample = calls(request);
    } else if (request.kind() == "class_writes") {
      *sample = writes(request);
    } else if (request.kind() == "class_reads") {
      *sample = reads(request);
    } else {
      return false;
    }
    return true;
  }

 private:
  // One call: a writing method that finds nothing to write.
  Sample calls(const Request& request) {
    Stripe stripe(host_, static_cast<uint32_t>(request.number("objects")));
    const std::string absent = wire::encoded(AddressMessage{"tcp://nobody.invalid:1"});
    uint64_t number = 0;
    return repeat(request.number("in_flight"), request.seconds(), [&](Finish finish) {
      const std::string& object = stripe.object(number++);
      host_.submit(object, "sequencer_withdraw", RequestBytes::copy_of(absent),
                   [finish = std::move(finish)](int code, const Buffer&) { finish(code); });
      return true;
    });
  }

  // One call: a batch, as one write per object; it ends when the last one does.
  Sample writes(const Request& request) {
    Stripe stripe(host_, static_cast<uint32_t>(request.number("objects")));
    const uint64_t batch = request.number("batch"), size = request.number("size");
    if (!to_write_ || to_write_->count() != batch || to_write_->bytes() != batch * size) {
      to_write_ = std::make_unique<Entries>(batch, size);
    }
    return repeat(request.number("in_flight"), request.seconds(), [&](Finish finish) {
      if (stripe.full()) return false;
      stripe.append(*to_write_, std::move(finish));
      return true;
    });
  }

  // One call: a window of positions, as one read per object, checked as a reader checks it.
  Sample reads(const Request& request) {
    const uint64_t size = request.number("size"), batch = request.number("batch");
    const uint64_t entries = request.number("entries"), window = request.number("window");
    if (!read_ || read_size_ != size || read_batch_ != batch || read_->tail() < entries) {
      read_ = std::make_unique<Stripe>(host_, static_cast<uint32_t>(request.number("objects")));
      read_size_ = size;
      read_batch_ = batch;
      const Entries batched(batch, size);
      repeat(2, 3600, [&](Finish finish) {
        if (read_->tail() >= entries) return false;
        read_->append(batched, std::move(finish));
        return true;
      });
    }
    uint64_t next = 0;
    return repeat(request.number("in_flight"), request.seconds(), [&](Finish finish) {
      if (next + window > read_->tail()) next = 0;
      read_->read(next, next + window, kWindowsBytes, std::move(finish));
      next += window;
      return true;
    });
  }

  AsyncHost& host_;
  std::unique_ptr<Entries> to_write_;
  std::unique_ptr<Stripe> read_;
  uint64_t read_size_ = 0;
  uint64_t read_batch_ = 0;
};

}  // namespace

std::unique_ptr<Work> class_work(AsyncHost& host) { return std::make_unique<ClassWork>(host); }

}  // namespace zlog::bench
