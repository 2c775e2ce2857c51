#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace zlog {

// A view of bytes, and a pointer that keeps the bytes alive and unchanged. If `owner` is nullptr,
// the caller must keep them alive.
struct Buffer {
  std::string_view bytes;
  std::shared_ptr<const void> owner;

  static Buffer of(std::string content) {
    if (content.empty()) return {};
    auto owner = std::make_shared<const std::string>(std::move(content));
    const std::string_view bytes = *owner;
    return {bytes, std::move(owner)};
  }
};

}  // namespace zlog
