#include "seqr/machine/native/grants.h"

#include "cls_zlog/wire/wire.h"

namespace zlog::seqr {
namespace {

// The codes of zlog/_sequencer/frames.py that are used here.
enum Code : uint8_t { kOk = 0, kStaleEpoch = 1, kNotOpen = 2, kBadRequest = 3, kLimit = 4 };

// Offsets of the fields of a frame: <BBHIQQ.
constexpr size_t kCodeAt = 1, kHandleAt = 2, kAAt = 8, kBAt = 16;
constexpr size_t kHeadBytes = kAAt;

uint8_t kind_of(const char* frame) { return static_cast<uint8_t>(*frame); }

// Writes the answer to the request at `frame`, which repeats its type, handle and number.
void put(char* answer, const char* frame, Code code, uint64_t a, uint64_t b) {
  std::memcpy(answer, frame, kHeadBytes);
  answer[kCodeAt] = static_cast<char>(code);
  wire::store(answer + kAAt, a);
  wire::store(answer + kBAt, b);
}

Code refusal(const LogTail& log, uint64_t count, double allowance) {
  if (count == 0) return kBadRequest;
  if (count > kGrantCountMax || count > kPositionMax - log.tail) return kLimit;
  return count > 1 && static_cast<double>(count) > allowance ? kLimit : kOk;
}

}  // namespace

size_t leading(std::string_view stream) {
  const size_t frames = stream.size() / kFrameBytes;
  size_t count = 0;
  while (count < frames) {
    const uint8_t kind = kind_of(stream.data() + count * kFrameBytes);
    if (kind != kNext && kind != kTail) break;
    count++;
  }
  return count;
}

void answer(std::string_view stream, size_t count, const std::vector<LogTail*>& logs, char* answers,
            double* allowance, Counters* counters, std::vector<uint16_t>* passed) {
  uint64_t grants = 0;
  for (size_t i = 0; i < count; i++) {
    const char* frame = stream.data() + i * kFrameBytes;
    char* out = answers + i * kFrameBytes;
    const auto handle = wire::load<uint16_t>(frame + kHandleAt);
    LogTail* log = handle < logs.size() ? logs[handle] : nullptr;
    if (log == nullptr || log->epoch == 0) {
      put(out, frame, kNotOpen, 0, 0);
      continue;
    }
    if (wire::load<uint64_t>(frame + kBAt) > log->epoch) {
      put(out, frame, kStaleEpoch, log->epoch, 0);
      continue;
    }
    if (kind_of(frame) == kTail) {
      put(out, frame, kOk, log->tail, log->epoch);
      continue;
    }
    const auto positions = wire::load<uint64_t>(frame + kAAt);
    const Code code = refusal(*log, positions, *allowance);
    if (code != kOk) {
      put(out, frame, code, 0, 0);
      continue;
    }
    put(out, frame, kOk, log->tail, log->epoch);
    log->tail += positions;
    if (positions > 1) *allowance -= static_cast<double>(positions);
    grants++;
    if (log->tail > log->wake_at) {
      log->wake_at = kPositionMax;
      passed->push_back(handle);
    }
  }
  counters->requests += count;
  counters->grants += grants;
}

}  // namespace zlog::seqr
