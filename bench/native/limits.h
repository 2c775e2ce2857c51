#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cls_zlog/host/async_host.h"
#include "options.h"
#include "sample.h"

namespace zlog::bench {

// Measures one limit for a number of seconds, again and again. What it works on was prepared
// before, and is removed with it.
using Measure = std::function<Sample(double seconds)>;

// These prepare a limit. They answer none for a kind that they don't know, and throw
// std::invalid_argument for a wrong option, std::system_error where the store fails.

// The methods of the object class, called as a log calls them but without one: class_calls (they
// write nothing), class_writes.
Measure class_limit(const std::string& kind, const Options& options,
                    const std::shared_ptr<AsyncHost>& host);

// A directory, through LMDB: lmdb_puts, lmdb_scans.
Measure directory_limit(const std::string& kind, const Options& options);

// A server of 24-byte frames: frames.
Measure frames_limit(const std::string& kind, const Options& options);

// Throws std::runtime_error where librados is not installed.
void find_librados();

// A namespace of a pool, with nothing but librados: rados_keys, rados_appends, rados_reads; and
// clear, which removes all objects of the namespace at once and measures nothing.
Measure rados_limit(const std::string& kind, const Options& options);

}  // namespace zlog::bench
