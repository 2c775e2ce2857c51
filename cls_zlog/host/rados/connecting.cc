#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <string>

#include "cls_zlog/host/fork_mutex.h"
#include "cls_zlog/host/rados/rados_host.h"
#include "cls_zlog/host/signal_masked_thread.h"

namespace zlog {
namespace {

// Returns an I/O context that shares its cluster handle.
RadosHandle own(rados_ioctx_t io, const RadosHandle& cluster) {
  return {io, [cluster](void* old) { librados().ioctx_destroy(old); }};
}

// Reads an option of the configuration; empty if it is not set.
std::string setting(rados_t cluster, const char* option) {
  std::string value(256, '\0');
  int error;
  while ((error = librados().conf_get(cluster, option, value.data(), value.size())) ==
         -ENAMETOOLONG) {
    value.resize(2 * value.size());
  }
  return error == 0 ? value.c_str() : "";
}

// Creates a handle and then restores stderr. If stderr is a pipe, librados makes it non-blocking.
// With `2>&1` that also affects stdout, and a slow reader would cut off the program's output.
int create(rados_t* cluster, const char* client) {
  // Only one thread at a time, or one would restore what librados has set for another.
  const std::lock_guard<std::mutex> lock(fork_mutex<RadosConnecting>());
  const int flags = ::fcntl(STDERR_FILENO, F_GETFL);
  const int error = librados().create(cluster, client);
  if (flags >= 0) ::fcntl(STDERR_FILENO, F_SETFL, flags);
  return error;
}

}  // namespace

std::shared_ptr<RadosConnecting> RadosConnecting::start(const RadosTarget& target) {
  auto connecting = std::make_shared<RadosConnecting>();
  start_signal_masked_thread([connecting, target] {
    const Done finish = Pending::completer(connecting->finished_);
    std::string step;
    const int error = connecting->connect(target, &step);
    finish(error, Buffer::of(step));
  }).detach();
  return connecting;
}

int RadosConnecting::connect(const RadosTarget& target, std::string* step) {
  const char* client = target.client.empty() ? nullptr : target.client.c_str();
  rados_t created = nullptr;
  *step = "set up librados";
  if (const int error = create(&created, client)) return error;
  const RadosHandle cluster(created, librados().shutdown);
  *step = target.conf.empty() ? "find a ceph.conf" : "read the configuration file " + target.conf;
  const char* conf = target.conf.empty() ? nullptr : target.conf.c_str();
  if (const int error = librados().conf_read_file(created, conf)) return error;
  *step = "read CEPH_ARGS";
  if (const int error = librados().conf_parse_env(created, nullptr)) return error;
  keyring_ = setting(created, "keyring");
  monitors_ = setting(created, "mon_host");
  *step = "set the timeouts";
  const std::string seconds = std::to_string(target.timeout_s);
  for (const char* option : {"client_mount_timeout", "rados_mon_op_timeout"}) {
    if (const int error = librados().conf_set(created, option, seconds.c_str())) return error;
  }
  // By default, librados blocks a caller that has 1024 operations in flight until one of them ends.
  // 0 means no limit. (The limit of bytes in flight does not count the payloads of class calls.)
  *step = "set the number of operations in flight";
  if (const int error = librados().conf_set(created, "objecter_inflight_ops", "0")) return error;
  *step = "connect to the cluster";
  if (const int error = librados().connect(created)) return error;
  *step = "open the pool";
  rados_ioctx_t io = nullptr;
  if (const int error = librados().ioctx_create(created, target.pool.c_str(), &io)) return error;
  librados().ioctx_set_namespace(io, target.nspace.c_str());
  std::unique_ptr<RadosHost> host(new RadosHost(own(io, cluster), target.class_use));
  *step = "check the OSDs' release";
  const int error = host->check_release();
  if (error == 0) host_ = std::move(host);
  return error;
}

}  // namespace zlog
