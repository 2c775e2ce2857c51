#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace zlog::seqr {

// Constants of the frames in zlog/_sequencer/frames.py.
constexpr size_t kFrameBytes = 24;
constexpr uint8_t kNext = 3;
constexpr uint8_t kTail = 4;

constexpr uint64_t kGrantCountMax = 65536;

// The end of the last stripe: the only number that is not a position.
constexpr uint64_t kPositionMax = UINT64_MAX;

// The state of a log that NEXT and TAIL use. The sequencer stores the tail only here.
struct LogTail {
  uint64_t epoch = 0;               // of the grants; 0 if the log is not active
  uint64_t tail = 0;                // the next position to grant
  uint64_t wake_at = kPositionMax;  // no request waits for a position below this one
};

// Counters over all connections since the start.
struct Counters {
  uint64_t requests = 0;
  uint64_t grants = 0;
};

// Returns the number of NEXT and TAIL frames at the front of a stream.
size_t leading(std::string_view stream);

// Answers the first `count` frames of `stream`, which must all be NEXT or TAIL, with `count` frames
// at `answers`. If a request's epoch is higher than its log's, the answer contains only the log's
// epoch; the higher one is checked when the client opens the log again.
//
// `logs` are the logs of the connection's handles. `allowance` is the number of positions that the
// connection may take, not counting single grants. If a log's tail passes `wake_at`, the log's
// handle is added to `passed`, and `wake_at` becomes the maximum until the machine sets it again.
void answer(std::string_view stream, size_t count, const std::vector<LogTail*>& logs, char* answers,
            double* allowance, Counters* counters, std::vector<uint16_t>* passed);

}  // namespace zlog::seqr
