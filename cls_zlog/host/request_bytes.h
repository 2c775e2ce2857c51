#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

namespace zlog {

// The bytes of a request, at an address that never changes. They can be shared with code that needs
// them for longer, and must not change from then on.
class RequestBytes {
 public:
  // The bytes are not initialized. Throws std::bad_alloc.
  explicit RequestBytes(size_t size) : data_(new char[size]), size_(size) {}

  static std::shared_ptr<RequestBytes> copy_of(std::string_view bytes) {
    auto request = std::make_shared<RequestBytes>(bytes.size());
    bytes.copy(request->data(), bytes.size());
    return request;
  }

  char* data() { return data_.get(); }
  size_t size() const { return size_; }
  std::string_view bytes() const { return {data_.get(), size_}; }

 private:
  const std::unique_ptr<char[]> data_;
  const size_t size_;
};

using SharedRequest = std::shared_ptr<RequestBytes>;

}  // namespace zlog
