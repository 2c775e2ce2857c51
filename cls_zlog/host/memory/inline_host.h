#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "cls_zlog/host/async_host.h"
#include "cls_zlog/host/notification_table.h"

namespace zlog {

// An AsyncHost over a host that never waits: everything happens in the caller's thread. Only this
// process uses it.
class InlineHost final : public AsyncHost {
 public:
  explicit InlineHost(std::unique_ptr<Host> host) : host_(std::move(host)) {}

  Ticket submit(std::string_view object, std::string_view method, SharedRequest payload,
                Done done) override {
    std::string reply;
    const int code = host_->execute(object, method, payload->bytes(), &reply);
    done(code, Buffer::of(std::move(reply)));
    return kNoTicket;
  }
  void list(std::string_view prefix, std::string_view after, Done done) override {
    answer_with_page(*host_, prefix, after, done);
  }
  void notify(std::string_view object) override { notices_.notify(object); }
  Ticket watch(std::string_view object, uint64_t seen, Done done) override {
    return notices_.wait(object, seen, std::move(done));
  }
  void give_up(Ticket ticket) override { notices_.give_up(ticket); }
  void close() override { notices_.close(); }

 private:
  const std::unique_ptr<Host> host_;
  Notices notices_;
};

}  // namespace zlog
