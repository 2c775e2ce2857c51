#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/host/async_host.h"
#include "cls_zlog/host/lmdb/env.h"
#include "cls_zlog/host/lmdb/shared_notifications.h"
#include "cls_zlog/host/lmdb/worker.h"

namespace zlog {

// Stores objects in a local directory, which any number of processes can use at once. Every
// acknowledged change is on disk, and survives a crash of the process or the machine.
//
// Writing methods run on one worker thread, which carries out all waiting operations in one
// transaction and syncs once (group commit). If nothing else is being written and the disk is fast,
// a small write runs in the caller's thread instead, because handing it over would take longer than
// the write. Reading methods use a snapshot and never wait.
class EmbeddedHost final : public AsyncHost {
 public:
  // Like LmdbEnv::open. If the host is read-only, every writing method returns EROFS.
  static int open(const std::string& directory, size_t map_bytes, bool read_only,
                  std::unique_ptr<EmbeddedHost>* host, std::string* reason);

  Ticket submit(Submission submission) override;
  bool gathers() const override { return true; }
  void submit_all(std::vector<Submission> submissions) override;
  Ticket run(Submission submission) override;
  void list(std::string_view prefix, std::string_view after, Done done) override;
  // Notifications pass through memory that the processes share. A read-only store gets none,
  // because it must not write to this memory.
  void notify(std::string_view object) override;
  Ticket watch(std::string_view object, uint64_t seen, Done done) override;
  void give_up(Ticket ticket) override;
  void close() override;

  // Like LmdbEnv::compact.
  int compact(std::string* reason);

  // Like LmdbEnv::space_inside.
  int space_inside(uint64_t* bytes);

 private:
  class Writes;
  EmbeddedHost(const std::shared_ptr<LmdbEnv>& env, std::string directory, bool read_only);
  std::shared_ptr<SharedNotifications> notifications(bool make);
  int find(std::string_view name, const Method** method) const;

  const std::shared_ptr<LmdbEnv> env_;
  const std::string directory_;
  const bool read_only_;
  std::mutex notifications_mutex_;
  bool notifications_tried_ = false;
  std::shared_ptr<SharedNotifications> notifications_;
  const std::shared_ptr<Writes> writes_;  // used by one thread at a time, see Worker
  Worker writer_;
  Worker reader_;
};

}  // namespace zlog
