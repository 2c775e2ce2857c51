#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace zlog::seqr {

// The frames of zlog/_sequencer/frames.py, as far as they are dealt with here.
constexpr size_t kFrameBytes = 24;
constexpr uint8_t kNext = 3;
constexpr uint8_t kTail = 4;

constexpr uint64_t kGrantCountMax = 65536;

// The end of the last stripe, so the one number that is no position.
constexpr uint64_t kPositionMax = UINT64_MAX;

// What NEXT and TAIL read and write of a log. A sequencer keeps the tail nowhere else.
struct LogTail {
  uint64_t epoch = 0;               // in which the grants count; 0 unless the log is active
  uint64_t tail = 0;                // the next position to hand out
  uint64_t wake_at = kPositionMax;  // no request waits for a position below it
};

// Over all connections, since the start.
struct Counters {
  uint64_t requests = 0;
  uint64_t grants = 0;
};

// Returns how many of the whole frames at the front of a stream are a NEXT or a TAIL.
size_t leading(std::string_view stream);

// Answers the first `count` frames of `stream`, each of them a NEXT or a TAIL, into as many frames
// at `answers`. One that names a higher epoch than its log's is told which that is, and no more:
// whether it is over shows when the client opens the log again.
//
// `logs` are what the connection's handles mean; `allowance` is how many positions it may take, but
// for those that it takes one by one: each of them costs it a frame. A log whose tail has passed its `wake_at` is added
// to `passed`, by its handle and once: its `wake_at` is out of reach from then on, until the
// machine has looked who waits there.
void answer(std::string_view stream, size_t count, const std::vector<LogTail*>& logs, char* answers,
            double* allowance, Counters* counters, std::vector<uint16_t>* passed);

}  // namespace zlog::seqr
