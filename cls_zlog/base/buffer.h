#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace zlog {

// Bytes that are not copied. They stay unchanged as long as `owner` or a copy of it exists. Without
// an owner, the caller must keep them.
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
