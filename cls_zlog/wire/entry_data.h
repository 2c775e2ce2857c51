#pragma once

#include <cstdint>

#include "cls_zlog/base/limits.h"
#include "cls_zlog/wire/wire.h"

namespace zlog::wire {

// Whether `ends` cut that many bytes of data into entries within the limit.
inline bool cut(const Column<uint32_t>& ends, uint64_t data_bytes) {
  uint32_t begin = 0;
  for (uint32_t i = 0; i < ends.size(); i++) {
    if (ends[i] < begin || ends[i] - begin > limits::entry_bytes_max) return false;
    begin = ends[i];
  }
  return begin == data_bytes;
}

}  // namespace zlog::wire
