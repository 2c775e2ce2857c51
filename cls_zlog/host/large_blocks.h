#pragma once

#include <cstddef>
#include <cstdlib>
#include <mutex>

namespace zlog {

// Lets malloc keep the memory of requests and replies of megabytes. Otherwise it returns it to the
// kernel, which maps and clears it again, page by page, for the next ones: with entries of 16 KiB this
// took a fifth of a writer's CPU time on Ceph, and a third of a reader's in an embedded store. glibc
// goes by the largest block that was ever freed, up to 32 MiB: from then on such blocks come from its
// heap, and up to twice as many bytes stay there. This block is never touched, so it costs no memory.
inline void keep_large_blocks() {
  constexpr size_t kBlockBytes = size_t{31} << 20;
  static std::once_flag once;
  std::call_once(once, [] {
    void* volatile block = std::malloc(kBlockBytes);  // volatile: must not be optimized away
    std::free(block);
  });
}

}  // namespace zlog
