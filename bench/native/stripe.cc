#include "stripe.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include "cls_zlog/base/codes.h"
#include "cls_zlog/client/write_encoder.h"
#include "cls_zlog/wire/frame.h"
#include "cls_zlog/wire/stripe_messages.h"

namespace zlog::bench {
namespace {

constexpr uint64_t kEpoch = 1;
constexpr uint64_t kObjectBytesMax = uint64_t{48} << 20;
constexpr std::string_view kWriter = "limits of a log.";
static_assert(kWriter.size() == limits::writer_bytes);

uint64_t now_us() {
  using namespace std::chrono;
  const auto since = system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(duration_cast<microseconds>(since).count());
}

// Ends a call when the last of its operations has ended, with the first error.
class Join {
 public:
  Join(uint64_t operations, Finish finish) : left_(operations), finish_(std::move(finish)) {}

  void end(int error) {
    int none = 0;
    if (error != 0) error_.compare_exchange_strong(none, error);
    if (left_.fetch_sub(1) == 1) finish_(error_);
  }

 private:
  std::atomic<uint64_t> left_;
  std::atomic<int> error_{0};
  const Finish finish_;
};

// Returns a method's code as an errno. Here every code except OK is an error.
int error_of(int code) { return code > 0 ? -EPROTO : code; }

}  // namespace

Stripe::Stripe(std::shared_ptr<AsyncHost> host, const Striping& striping)
    : host_(std::move(host)), striping_(striping) {
  static uint64_t made = 0;
  // Programs that measure other limits may run at the same time.
  const std::string name = "limits." + std::to_string(::getpid()) + "." + std::to_string(made++);
  for (uint32_t residue = 0; residue < striping.stride; residue++) {
    objects_.push_back(name + "." + std::to_string(residue));
    SealRequest seal;
    seal.epoch = kEpoch;
    seal.stride = striping.stride;
    seal.stripe_unit = static_cast<uint32_t>(striping.unit());
    seal.residue = residue;
    seal.create = true;
    check(run(objects_.back(), "seal", wire::encoded(seal)), "seal " + objects_.back());
  }
}

Stripe::~Stripe() {
  EpochRequest remove;
  remove.epoch = kEpoch;
  for (const std::string& object : objects_) run(object, "remove", wire::encoded(remove));
}

bool Stripe::full() const { return bytes_ >= kObjectBytesMax * objects_.size(); }

int Stripe::run(const std::string& object, const char* method, const std::string& request) {
  const auto pending = std::make_shared<Pending>();
  host_->run({object, method, RequestBytes::copy_of(request), Pending::completer(pending)});
  while (!pending->wait(1000)) {
  }
  return error_of(pending->code());
}

void Stripe::append(const Entries& entries, const Finish& finish) {
  const uint64_t first = tail_, count = entries.count();
  const std::vector<uint64_t> firsts = striping_.firsts(first, first + count);
  tail_ += count;
  bytes_ += entries.bytes();
  std::vector<NewEntry> placed;
  placed.reserve(count);
  for (uint64_t i = 0; i < count; i++) placed.push_back({first + i, first + i, entries[i]});
  const WriteHead head = {kEpoch, now_us(), kWriter, striping_};
  const auto join = std::make_shared<Join>(firsts.size(), finish);
  std::vector<Submission> submissions;
  for (const uint64_t at : firsts) {
    WriteEncoder encoder;
    if (encoder.begin(head, &placed[at - first], striping_.count(at, tail_), true) < 0) {
      join->end(-EINVAL);
      continue;
    }
    auto request = std::make_shared<RequestBytes>(encoder.size());
    encoder.encode(request->data());
    submissions.push_back({object(at), "write", std::move(request),
                           [join](int code, const Buffer&) { join->end(error_of(code)); }});
  }
  host_->submit_all(std::move(submissions));
}

}  // namespace zlog::bench
