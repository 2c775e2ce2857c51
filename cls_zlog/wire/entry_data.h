#pragma once

#include <string_view>

#include "cls_zlog/base/limits.h"
#include "cls_zlog/wire/wire.h"

namespace zlog::wire {

// Whether `ends` cut `data` into entries within the limit.
inline bool cut(const Column<uint32_t>& ends, std::string_view data) {
  uint32_t begin = 0;
  for (uint32_t i = 0; i < ends.size(); i++) {
    if (ends[i] < begin || ends[i] - begin > limits::entry_bytes_max) return false;
    begin = ends[i];
  }
  return begin == data.size();
}

}  // namespace zlog::wire
