#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/base/striping.h"
#include "cls_zlog/host/async_host.h"
#include "sample.h"

namespace zlog::bench {

// The entries of a batch, all of one size, each with bytes of its own.
class Entries {
 public:
  Entries(uint64_t count, uint64_t size)
      : count_(count), size_(size), bytes_(noise(count * size)) {}

  uint64_t count() const { return count_; }
  uint64_t bytes() const { return bytes_.size(); }
  std::string_view operator[](uint64_t i) const { return {&bytes_[i * size_], size_}; }

 private:
  const uint64_t count_, size_;
  const std::string bytes_;
};

// Stripe objects without a log: made and sealed at the beginning, removed at the end. Positions are
// handed out here, to one thread.
class Stripe {
 public:
  // Throws std::system_error when the objects can't be made.
  Stripe(std::shared_ptr<AsyncHost> host, const Striping& striping);
  ~Stripe();
  Stripe(const Stripe&) = delete;
  Stripe& operator=(const Stripe&) = delete;

  const std::string& object(uint64_t position) const {
    return objects_[striping_.residue(position)];
  }

  // Whether the objects hold as much as objects of a log should.
  bool full() const;

  // Writes entries at the next positions: one operation per object.
  void append(const Entries& entries, const Finish& finish);

 private:
  int run(const std::string& object, const char* method, const std::string& request);

  const std::shared_ptr<AsyncHost> host_;
  const Striping striping_;
  std::vector<std::string> objects_;
  uint64_t tail_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace zlog::bench
