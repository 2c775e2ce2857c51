// zlog-limits: what a place can do at most, without zlog's client or without zlog at all.
//
//   zlog-limits PLACE...      rados CONF CLIENT POOL NAMESPACE   (CONF, CLIENT: - for the defaults)
//                             directory PATH
//                             memory
//
// It says {} on stdout when the place is there. stdin: one measurement a line, see request.h. Each
// is answered by a line of JSON (calls, seconds, cpu_seconds, memory_peak_bytes, latencies) and
// that many float32, each the seconds of a call; where it failed, by a line with `error`. It ends,
// and tidies up, at the end of stdin.

#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "class_work.h"
#include "cls_zlog/host/embedded.h"
#include "cls_zlog/host/memory.h"
#ifdef ZLOG_WITH_RADOS
#include "rados_work.h"
#endif
#include "work.h"

namespace zlog::bench {
namespace {

constexpr size_t kMapBytes = size_t{1} << 40;

// A host, and the class's methods called on it.
class HostWork final : public Work {
 public:
  explicit HostWork(std::unique_ptr<AsyncHost> host)
      : host_(std::move(host)), work_(class_work(*host_)) {}
  ~HostWork() override {
    work_.reset();
    host_->close();
  }
  bool measure(const Request& request, Sample* sample) override {
    return work_->measure(request, sample);
  }

 private:
  const std::unique_ptr<AsyncHost> host_;
  std::unique_ptr<Work> work_;
};

std::vector<std::unique_ptr<Work>> works_of(const std::vector<std::string>& words) {
  const std::string kind = words.empty() ? "" : words[0];
  std::vector<std::unique_ptr<Work>> works;
  works.push_back(tcp_work());
  if (kind == "directory" && words.size() == 2) {
    std::unique_ptr<EmbeddedHost> host;
    std::string reason;
    const int opened = EmbeddedHost::open(words[1], kMapBytes, false, &host, &reason);
    check(opened, reason.empty() ? words[1] : reason);
    works.push_back(std::make_unique<HostWork>(std::move(host)));
    works.push_back(directory_work(words[1]));
  } else if (kind == "memory" && words.size() == 1) {
    auto host = std::make_unique<InlineHost>(std::make_unique<MemoryHost>());
    works.push_back(std::make_unique<HostWork>(std::move(host)));
#ifdef ZLOG_WITH_RADOS
  } else if (kind == "rados" && words.size() == 5) {
    const auto given = [](const std::string& word) { return word == "-" ? "" : word; };
    works.push_back(rados_work({given(words[1]), given(words[2]), words[3], words[4]}));
#endif
  } else {
    throw std::invalid_argument("no such store: " + kind);
  }
  return works;
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

rusage usage() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return used;
}

double cpu_seconds(const rusage& used) {
  return seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
}

void answer(const std::vector<std::unique_ptr<Work>>& works, const std::string& line) {
  const Request request(line);
  const rusage before = usage();
  Sample sample;
  bool known = false;
  for (const auto& work : works) {
    if (known = work->measure(request, &sample); known) break;
  }
  if (!known) throw std::invalid_argument("this place has no " + request.kind());
  const rusage after = usage();
  std::printf(
      "{\"calls\":%llu,\"seconds\":%.9f,\"cpu_seconds\":%.6f,\"memory_peak_bytes\":%lld,"
      "\"latencies\":%zu}\n",
      static_cast<unsigned long long>(sample.calls), sample.seconds,
      cpu_seconds(after) - cpu_seconds(before), static_cast<long long>(after.ru_maxrss) * 1024,
      sample.latencies.size());
  std::fwrite(sample.latencies.data(), sizeof(float), sample.latencies.size(), stdout);
}

// As a JSON string: what is no plain character becomes a space.
std::string quoted(const char* text) {
  std::string out = "\"";
  for (; *text != '\0'; text++) {
    const bool plain = *text >= ' ' && *text <= '~' && *text != '"' && *text != '\\';
    out.push_back(plain ? *text : ' ');
  }
  return out + "\"";
}

void answer_error(const std::exception& error) {
  std::printf("{\"error\":%s}\n", quoted(error.what()).c_str());
}

int run(const std::vector<std::string>& words) {
  std::vector<std::unique_ptr<Work>> works;
  try {
    works = works_of(words);
    std::printf("{}\n");
  } catch (const std::exception& error) {
    answer_error(error);
    return 1;
  }
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    try {
      answer(works, line);
    } catch (const std::exception& error) {
      answer_error(error);
    }
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace zlog::bench

int main(int count, char** words) {
  std::signal(SIGPIPE, SIG_IGN);
  return zlog::bench::run({words + 1, words + count});
}
