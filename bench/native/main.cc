// zlog-limits measures a store's raw limits, without zlog's client or without zlog.
//
//   zlog-limits KIND NAME=VALUE...
//
// KIND is a limit; see limits.h. These options name the store: `pool`, `namespace`, `conf` and
// `client` on Ceph (conf and client are optional), `directory` for an embedded store, and none for
// a store in memory. The other options belong to the limit.
//
// The program prints "ready" on stdout when it can measure the limit. Each line of stdin is a
// number of seconds to measure. The answer is a line with the number of calls, the seconds, the CPU
// seconds, the maximum memory in bytes and the number of latencies, followed by the latencies as
// float32 seconds. At the end of stdin, the program removes what it created and ends. If anything
// fails, it ends with a message on stderr.

#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cls_zlog/host/lmdb/embedded_host.h"
#include "cls_zlog/host/memory/memory_host.h"
#include "cls_zlog/host/rados/rados_host.h"
#include "limits.h"

namespace zlog::bench {
namespace {

constexpr size_t kMapBytes = size_t{1} << 40;
constexpr size_t kLatenciesMax = 100000;  // maximum per measurement, selected evenly

std::shared_ptr<AsyncHost> host_of(const Options& options) {
  if (options.has("pool")) {
    find_librados();
    const auto connecting =
        RadosConnecting::start({options.text_or_empty("conf"), options.text_or_empty("client"),
                                options.text("pool"), options.text("namespace"), 0});
    while (!connecting->wait(1000)) {
    }
    check(connecting->error(), connecting->failed_step());
    return connecting->take();
  }
  if (!options.has("directory")) return std::make_shared<MemoryHost>();
  std::unique_ptr<EmbeddedHost> host;
  std::string reason;
  const int error = EmbeddedHost::open(options.text("directory"), kMapBytes, false, &host, &reason);
  check(error, options.text("directory") + ": " + reason);
  return host;
}

Measure limit_of(const std::string& kind, const Options& options) {
  if (Measure frames = frames_limit(kind, options)) return frames;
  if (Measure directory = directory_limit(kind, options)) return directory;
  if (Measure rados = rados_limit(kind, options)) return rados;
  if (Measure methods = class_limit(kind, options, host_of(options))) return methods;
  throw std::invalid_argument("no such limit: " + kind);
}

double cpu_seconds(const rusage& used) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

rusage usage() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return used;
}

void answer(const Measure& measure, double seconds) {
  const rusage before = usage();
  const Sample sample = measure(seconds);
  const rusage after = usage();
  const size_t calls = sample.latencies.size(), step = calls / kLatenciesMax + 1;
  std::vector<float> picked;
  for (size_t i = 0; i < calls; i += step) picked.push_back(sample.latencies[i]);
  std::printf("%zu %.9f %.6f %lld %zu\n", calls, sample.seconds,
              cpu_seconds(after) - cpu_seconds(before),
              static_cast<long long>(after.ru_maxrss) * 1024, picked.size());
  std::fwrite(picked.data(), sizeof(float), picked.size(), stdout);
  std::fflush(stdout);
}

void run(const std::vector<std::string>& words) {
  if (words.empty()) throw std::invalid_argument("which limit?");
  const Measure measure = limit_of(words[0], Options({words.begin() + 1, words.end()}));
  std::puts("ready");
  std::fflush(stdout);
  for (double seconds = 0; std::cin >> seconds;) answer(measure, seconds);
}

}  // namespace
}  // namespace zlog::bench

int main(int count, char** words) {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    zlog::bench::run({words + 1, words + count});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
