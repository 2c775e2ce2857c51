#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "limits.h"

namespace zlog::bench {
namespace {

constexpr int kWaitMs = 5000;
constexpr uint8_t kNext = 3;  // the kind of a frame that requests positions

// A sequencer's frame (zlog/_sequencer/frames.py), as it is sent by a little-endian machine.
struct Frame {
  uint8_t kind, code;
  uint16_t log;
  uint32_t request;
  uint64_t a, b;
};
static_assert(sizeof(Frame) == 24);

std::string bytes_of_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

// A connection with `depth` requests in flight. Each answer makes space for the next request.
class Client {
 public:
  // Connects to the server at `host` and `port`, sends `preamble` and waits for `replies` frames.
  // The last of these contains the log and epoch for the requests. Throws std::system_error.
  Client(const Options& options, uint64_t depth) : started_(depth) {
    connect(options.text("host"), options.text("port"));
    send(bytes_of_hex(options.text("preamble")));
    Frame frame{};
    for (uint64_t i = 0; i < options.number("replies"); i++) {
      errno = 0;
      if (::recv(socket_, &frame, sizeof frame, MSG_WAITALL) != sizeof frame) {
        check(errno == EAGAIN ? -ETIMEDOUT : -ECONNRESET, "the server's greeting");
      }
      if (frame.code != 0) check(-EPROTO, "the server's greeting");
    }
    request_ = Frame{kNext, 0, frame.log, 0, 1, frame.a};
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  int socket() const { return socket_; }

  // Sends requests.
  void ask(uint64_t count, Clock::time_point now) {
    outgoing_.clear();
    for (uint64_t i = 0; i < count; i++) {
      started_[request_.request % started_.size()] = now;
      outgoing_.append(reinterpret_cast<const char*>(&request_), sizeof request_);
      request_.request++;
    }
    if (count != 0) send(outgoing_);
  }

  // Takes the answers that have arrived, and returns their number.
  uint64_t take(Sample* sample) {
    const size_t space = buffer_.size() - held_;
    const ssize_t got = ::recv(socket_, buffer_.data() + held_, space, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (got <= 0) check(got == 0 ? -ECONNRESET : -errno, "the server");
    held_ += static_cast<size_t>(got);
    const Clock::time_point now = Clock::now();
    const uint64_t count = held_ / sizeof(Frame);
    for (uint64_t i = 0; i < count; i++) {
      Frame frame{};
      std::memcpy(&frame, buffer_.data() + i * sizeof frame, sizeof frame);
      if (frame.code != 0) check(-EPROTO, "the server refused code " + std::to_string(frame.code));
      const Clock::time_point began = started_[frame.request % started_.size()];
      sample->latencies.push_back(std::chrono::duration<float>(now - began).count());
    }
    held_ -= count * sizeof(Frame);
    std::memmove(buffer_.data(), buffer_.data() + count * sizeof(Frame), held_);
    return count;
  }

 private:
  void connect(const std::string& host, const std::string& port) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) check(-EHOSTUNREACH, host);
    socket_ = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int result = ::connect(socket_, found->ai_addr, found->ai_addrlen);
    const int error = result == 0 ? 0 : -errno;
    ::freeaddrinfo(found);
    check(error, "connecting to " + host + ":" + port);
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const timeval patience{kWaitMs / 1000, 0};  // for the greeting; later reads do not wait
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }

  void send(const std::string& bytes) {
    for (size_t sent = 0; sent < bytes.size();) {
      const ssize_t now = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (now < 0) check(-errno, "sending");
      sent += static_cast<size_t>(now);
    }
  }

  int socket_ = -1;
  Frame request_{};
  std::vector<Clock::time_point> started_;
  std::string outgoing_;
  std::array<char, 1 << 16> buffer_;
  size_t held_ = 0;
};

}  // namespace

// A call is a frame and its answer.
Measure frames_limit(const std::string& kind, const Options& options) {
  if (kind != "frames") return nullptr;
  const uint64_t depth = options.number("depth"), connections = options.number("connections");
  return [=](double seconds) {
    std::vector<std::unique_ptr<Client>> clients;
    std::vector<pollfd> sockets;
    for (uint64_t i = 0; i < connections; i++) {
      clients.push_back(std::make_unique<Client>(options, depth));
      sockets.push_back({clients.back()->socket(), POLLIN, 0});
    }
    Sample sample;
    const Clock::time_point began = Clock::now();
    for (const auto& client : clients) client->ask(depth, began);
    for (uint64_t outstanding = depth * connections; outstanding != 0;) {
      const int ready = ::poll(sockets.data(), sockets.size(), kWaitMs);
      if (ready == 0) check(-ETIMEDOUT, "the server's answer");
      for (uint64_t i = 0; i < connections; i++) {
        if (ready < 0 || sockets[i].revents == 0) continue;
        const uint64_t count = clients[i]->take(&sample);
        const bool more = seconds_since(began) < seconds;
        if (more) clients[i]->ask(count, Clock::now());
        outstanding -= more ? 0 : count;
      }
    }
    sample.seconds = seconds_since(began);
    return sample;
  };
}

}  // namespace zlog::bench
