// Arbitrary frames at the sequencer's hot path, on logs in any state: nothing is read or written
// out of bounds, no position is granted twice, and every answer is to its request.
//
// With clang: -fsanitize=fuzzer. With any compiler: main() makes random inputs itself,
//   fuzz_grants [SEED [COUNT]]     or     fuzz_grants FILE...   to run stored inputs again.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "cls_zlog/wire/wire.h"
#include "seqr/machine/native/grants.h"

namespace {

using zlog::seqr::kFrameBytes;
using zlog::seqr::LogTail;

constexpr size_t kLogs = 3;
constexpr double kAllowance = 200'000;
constexpr size_t kLogBytes = 1 + 3 * sizeof(uint64_t);

void expect(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

// The fuzzer's first bytes: how many logs there are, and what each of them is like.
std::vector<LogTail> take_logs(const uint8_t** data, size_t* size) {
  std::vector<LogTail> logs;
  while (logs.size() < kLogs && *size >= kLogBytes) {
    const char* at = reinterpret_cast<const char*>(*data);
    const uint8_t shape = **data;
    LogTail log;
    log.epoch = shape % 4;  // small ones, so that requests of the same epoch turn up
    log.tail = zlog::wire::load<uint64_t>(at + 1) >> (shape / 4 % 64);
    log.wake_at = zlog::wire::load<uint64_t>(at + 9) >> (shape / 4 % 64);
    logs.push_back(log);
    *data += kLogBytes;
    *size -= kLogBytes;
  }
  return logs;
}

void check_answer(const char* frame, const char* answer, const LogTail& before,
                  const LogTail& after) {
  expect(frame[0] == answer[0] && std::memcmp(frame + 2, answer + 2, 6) == 0, "not its request");
  expect(after.epoch == before.epoch, "an epoch has changed");
  const auto count = zlog::wire::load<uint64_t>(frame + 8);
  const bool granted = frame[0] == zlog::seqr::kNext && answer[1] == 0;
  expect(after.tail == before.tail + (granted ? count : 0), "a tail is not what was granted");
  expect(after.tail >= before.tail, "a tail went back");
  if (answer[1] != 0) return;
  expect(zlog::wire::load<uint64_t>(answer + 8) == before.tail, "another position");
  expect(zlog::wire::load<uint64_t>(answer + 16) == before.epoch, "another epoch");
  if (granted) expect(count > 0 && count <= zlog::seqr::kGrantCountMax, "a grant above the limit");
}

void run(const uint8_t* data, size_t size) {
  std::vector<LogTail> logs = take_logs(&data, &size);
  std::vector<LogTail*> handles;
  handles.reserve(logs.size());
  for (LogTail& log : logs) handles.push_back(&log);
  // On the heap, and as large as it is: the sanitizer sees the first byte beyond it.
  const std::unique_ptr<char[]> bytes(new char[size]);
  if (size != 0) std::memcpy(bytes.get(), data, size);
  const std::string_view stream(bytes.get(), size);
  const size_t count = zlog::seqr::leading(stream);
  expect(count * kFrameBytes <= size, "more frames than there are");
  zlog::seqr::Counters counters;
  std::vector<uint16_t> passed;
  double allowance = kAllowance;
  size_t done = 0;
  while (done < count) {  // one frame at a time: so it is known what each of them did
    // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): the handles change the original
    const std::vector<LogTail> before = logs;
    const char* frame = stream.data() + done * kFrameBytes;
    const std::unique_ptr<char[]> answer(new char[kFrameBytes]);
    zlog::seqr::answer(stream.substr(done * kFrameBytes), 1, handles, answer.get(), &allowance,
                       &counters, &passed);
    expect(allowance >= 0, "more than was allowed");
    const auto handle = zlog::wire::load<uint16_t>(frame + 2);
    for (size_t i = 0; i < logs.size(); i++) {
      if (i != handle) expect(logs[i].tail == before[i].tail, "another log's tail");
    }
    if (handle < logs.size()) {
      check_answer(frame, answer.get(), before[handle], logs[handle]);
    } else {
      expect(answer[1] != 0, "an answer about no log");
    }
    done++;
  }
  expect(counters.requests == done && counters.grants <= done, "counted wrongly");
  std::sort(passed.begin(), passed.end());
  expect(std::adjacent_find(passed.begin(), passed.end()) == passed.end(), "woken twice");
  expect(passed.empty() || passed.back() < logs.size(), "no such log was woken");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  run(data, size);
  return 0;
}
