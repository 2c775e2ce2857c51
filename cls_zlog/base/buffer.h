#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace zlog {

// A view of bytes that shares their ownership. The bytes do not change while `owner` or a copy of
// it exists. If there is no owner, the caller must keep the bytes alive.
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
