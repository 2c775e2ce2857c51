#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string_view>
#include <utility>

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
  ~RequestBytes() {
    if (!owner_) std::free(data_);
  }
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

  // Hands the memory, which malloc gave, over to an owner that counts its users in a way of its own
  // and frees it in the end. `adopt()` takes it and answers a share, which is kept here. It is
  // called once; later callers get the same answer.
  template <typename Adopt>
  const std::shared_ptr<void>& hand_over(Adopt&& adopt) {
    std::call_once(handed_over_, [&] { owner_ = adopt(); });
    return owner_;
  }

 private:
  char* const data_;
  const size_t size_;
  std::once_flag handed_over_;
  std::shared_ptr<void> owner_;  // none: the memory is our own
};

using SharedRequest = std::shared_ptr<RequestBytes>;

}  // namespace zlog
