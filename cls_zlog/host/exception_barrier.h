#pragma once

#include <cerrno>
#include <new>
#include <system_error>

namespace zlog {

// What `run` answers; an exception becomes the errno that says so.
template <typename Run>
int guarded(Run&& run) {
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
