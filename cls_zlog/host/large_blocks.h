#pragma once

#include <cstddef>
#include <cstdlib>
#include <mutex>

namespace zlog {

// Lets malloc keep what requests and replies of megabytes leave behind. Else it gives their memory
// back to the kernel, which maps and clears it anew, page by page, for the next ones: with entries of
// 16 KiB a fifth of a writer's CPU time on Ceph, and a third of a reader's in an embedded store. glibc
// goes by the largest block that was ever freed: from then on such blocks come from its heap, and up
// to twice as many bytes stay there. It learns from none above 32 MiB. This block is never touched,
// so it costs no memory itself.
inline void keep_large_blocks() {
  constexpr size_t kBlockBytes = size_t{31} << 20;
  static std::once_flag once;
  std::call_once(once, [] {
    void* volatile block = std::malloc(kBlockBytes);  // volatile: not to be optimized away
    std::free(block);
  });
}

}  // namespace zlog
