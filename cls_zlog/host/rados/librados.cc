#include "cls_zlog/host/rados/librados.h"

#include <dlfcn.h>

#include <cerrno>
#include <mutex>
#include <string_view>

#include "cls_zlog/host/fork_mutex.h"

namespace zlog {
namespace {

Librados table;

// Returns the path of the library that has a function.
std::string file_of(const void* function) {
  Dl_info info;
  return ::dladdr(function, &info) != 0 ? info.dli_fname : "librados.so.2";
}

// Calls classes. It is deprecated since Ceph 21, and zlog works without it.
constexpr std::string_view kOptional = "rados_read_op_exec";

// Fills the table. Returns the names of the functions that are missing.
std::string look_up(void* library) {
  std::string missing;
  const auto find = [&](const char* name) {
    void* const function = ::dlsym(library, name);
    if (function == nullptr && name != kOptional) {
      missing.append(missing.empty() ? "" : ", ").append(name);
    }
    return function;
  };
#define ZLOG_FIND(name, ...) \
  table.name = reinterpret_cast<decltype(table.name)>(find("rados_" #name));
  ZLOG_LIBRADOS(ZLOG_FIND)
#undef ZLOG_FIND
  return missing;
}

}  // namespace

int load_librados(std::string* what) {
  static std::string file;
  const std::lock_guard<std::mutex> lock(fork_mutex<Librados>());
  if (file.empty()) {
    void* const library = ::dlopen("librados.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      *what = ::dlerror();
      return -ENOENT;
    }
    *what = look_up(library);
    if (!what->empty()) return -ENOSYS;
    file = file_of(reinterpret_cast<const void*>(table.create));
  }
  *what = file;
  return 0;
}

const Librados& librados() { return table; }

}  // namespace zlog
