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

// The entries of a batch, which have the same size and different bytes.
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

// Stripe objects without a log. They are created and sealed at the beginning, and removed at the
// end. One thread gets the positions.
class Stripe {
 public:
  // Throws std::system_error if the objects cannot be created.
  Stripe(std::shared_ptr<AsyncHost> host, const Striping& striping);
  ~Stripe();
  Stripe(const Stripe&) = delete;
  Stripe& operator=(const Stripe&) = delete;

  const std::string& object(uint64_t position) const {
    return objects_[striping_.residue(position)];
  }

  // Returns whether the objects are as full as a log's objects should become.
  bool full() const;

  // Writes entries at the next positions, with one operation per object.
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
