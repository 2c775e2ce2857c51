#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <string_view>

namespace zlog {

// The bytes of a request, in memory that they never leave: a user that needs them for longer
// shares them. They are not changed any more once one does.
class RequestBytes {
 public:
  // Throws std::bad_alloc.
  explicit RequestBytes(size_t size)
      : data_(static_cast<char*>(std::malloc(std::max<size_t>(size, 1)))), size_(size) {
    if (data_ == nullptr) throw std::bad_alloc();
  }
  ~RequestBytes() { std::free(data_); }
  RequestBytes(const RequestBytes&) = delete;
  RequestBytes& operator=(const RequestBytes&) = delete;

  static std::shared_ptr<RequestBytes> copy_of(std::string_view bytes) {
    auto request = std::make_shared<RequestBytes>(bytes.size());
    bytes.copy(request->data_, bytes.size());
    return request;
  }

  char* data() { return data_; }
  size_t size() const { return size_; }
  std::string_view bytes() const { return {data_, size_}; }

 private:
  char* const data_;
  const size_t size_;
};

using SharedRequest = std::shared_ptr<RequestBytes>;

}  // namespace zlog
