// What a host does around a method (transaction.h, design: "what a host must imitate"), with
// methods made to misbehave; and the parts that everything else stands on.

#include <atomic>
#include <cerrno>
#include <chrono>
#include <new>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "check.h"
#include "cls_zlog/base/codes.h"
#include "cls_zlog/base/crc32c.h"
#include "cls_zlog/base/limits.h"
#include "cls_zlog/client/latch.h"
#include "cls_zlog/host/memory/memory_host.h"
#include "cls_zlog/host/transaction.h"
#include "cls_zlog/methods.h"

namespace {

using namespace zlog;

// A method that changes something and then ends as its request says.
int end_as_told(Object& object, std::string_view in, std::string* out) {
  if (object.attr_set("touched", in) < 0) return -EPERM;
  std::string seen;
  CHECK(object.attr_get("touched", &seen) == -ENODATA || seen == "before");
  out->assign("reply");
  if (in == "error") return -ESTALE;
  if (in == "refusal") return 3;
  if (in == "long") out->resize(limits::write_reply_bytes_max + 1);
  if (in == "memory") throw std::bad_alloc();
  if (in == "throw") throw std::runtime_error("a bug");
  if (in == "int") throw 42;  // NOLINT(bugprone-std-exception-baseclass): that too is caught
  return kOk;
}

constexpr Method kWriter = {"writer", kRead | kWrite, end_as_told};
constexpr Method kReader = {"reader", kRead, end_as_told};
constexpr Method kBlind = {"blind", kWrite, [](Object& object, std::string_view, std::string*) {
                             std::string value;
                             return object.attr_get("touched", &value);
                           }};

// A backing with one attribute, which can be made to fail.
class OneAttribute final : public Backing {
 public:
  int exists(bool* exists) override {
    *exists = exists_;
    return 0;
  }
  int attr_get(const std::string&, std::string* value) override {
    if (value_.empty()) return -ENODATA;
    *value = value_;
    return 0;
  }
  int omap_get(const std::string&, Buffer*) override { return -ENOENT; }
  int omap_list(const std::string&, const std::string&, uint64_t, Page*, bool*) override {
    return 0;
  }
  int read(uint64_t, uint64_t, Pieces*) override { return 0; }
  int apply(Change&& change) override {
    if (full_ && change.kind == Change::Kind::kAttrSet) return -ENOSPC;
    exists_ = true;
    if (change.kind == Change::Kind::kAttrSet) value_ = change.value;
    return 0;
  }

  bool exists_ = false;
  bool full_ = false;
  std::string value_;
};

void only_a_positive_answer_applies() {
  const struct {
    const char* request;
    int code;
  } cases[] = {{"error", -ESTALE},  {"refusal", -EIO}, {"long", -EOVERFLOW},
               {"memory", -ENOMEM}, {"throw", -EIO},   {"int", -EIO}};
  for (const auto& [request, code] : cases) {
    OneAttribute object;
    std::string reply = "old";
    const Outcome outcome = run_method(kWriter, object, request, &reply);
    CHECK(outcome.code == code && !outcome.broken && reply.empty());
    CHECK(!object.exists_ && object.value_.empty());
  }
  OneAttribute object;
  std::string reply;
  CHECK(run_method(kWriter, object, "before", &reply).code == kOk && reply == "reply");
  CHECK(object.exists_ && object.value_ == "before");
  CHECK(run_method(kWriter, object, "after", &reply).code == kOk && object.value_ == "after");
}

void flags_are_kept() {
  OneAttribute object;
  std::string reply;
  CHECK(run_method(kReader, object, "", &reply).code == -ENOENT);
  object.exists_ = true;
  CHECK(run_method(kReader, object, "", &reply).code == -EPERM && object.value_.empty());
  object.value_ = "before";
  CHECK(run_method(kBlind, object, "", &reply).code == -EIO);
}

void a_failed_commit_is_reported_as_broken() {
  OneAttribute object;
  object.full_ = true;
  std::string reply;
  const Outcome outcome = run_method(kWriter, object, "before", &reply);
  CHECK(outcome.code == -ENOSPC && outcome.broken && reply.empty());
}

void unknown_methods() {
  MemoryHost host;
  std::string reply = "old";
  CHECK(host.execute("object", "no_such", "", &reply) == -EOPNOTSUPP && reply.empty());
  CHECK(find_method("") == nullptr && find_method("seal") == methods().data());
}

void crc32c_of_known_data() {
  CHECK(crc32c("") == 0);
  CHECK(crc32c("123456789") == 0xe3069283);            // the check value of the CRC catalogue
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aa);  // RFC 3720, appendix B.4
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43);
  std::mt19937_64 random(1);
  const auto below = [&](uint64_t count) { return random() % count; };
  for (size_t count = 0; count < 700; count++) {
    // Short ones, then around what is cut into three stretches of 128 and of 1024 bytes.
    const size_t length = count < 300   ? count
                          : count < 500 ? 380 + below(800)
                                        : 3000 + below(13000);
    std::string bytes(length, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    const size_t cut = below(length + 1);
    const std::string_view whole = bytes;
    CHECK(crc32c(whole) == crc32c_by_table(whole));
    CHECK(crc32c(whole) == crc32c(whole.substr(cut), crc32c(whole.substr(0, cut))));
  }
}

void a_latch_lets_all_go_but_those_who_left() {
  constexpr int kThreads = 16;
  constexpr double kLong = 60;
  Latch latch;
  std::atomic<int> let_go{0};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; i++) {
    threads.emplace_back([&] { let_go += latch.wait(kLong) ? 1 : 0; });
    if (i == kThreads / 2) CHECK(!latch.wait(0.01));  // among those who wait, and gone
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // most of them wait now
  const auto opened = std::chrono::steady_clock::now();
  latch.open();
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - opened;
  CHECK(let_go == kThreads && took.count() < kLong / 2);
  CHECK(latch.wait(0));
}

}  // namespace

int main() {
  only_a_positive_answer_applies();
  flags_are_kept();
  a_failed_commit_is_reported_as_broken();
  unknown_methods();
  crc32c_of_known_data();
  a_latch_lets_all_go_but_those_who_left();
  return 0;
}
