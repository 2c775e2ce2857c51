#pragma once

#include <cerrno>
#include <new>
#include <system_error>

namespace zlog {

// Returns the result of run(), or a negative errno if it throws.
template <typename Run>
int exception_barrier(Run&& run) {
  try {
    return run();
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  } catch (const std::system_error& error) {
    return -error.code().value();
  } catch (...) {
    return -EIO;
  }
}

}  // namespace zlog
