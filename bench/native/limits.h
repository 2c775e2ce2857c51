#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cls_zlog/host/async_host.h"
#include "options.h"
#include "sample.h"

namespace zlog::bench {

// Measures one limit for a number of seconds, and can do so repeatedly. What it needs was created
// before, and is removed when the function is destroyed.
using Measure = std::function<Sample(double seconds)>;

// These functions prepare a limit. They return an empty function for an unknown kind. They throw
// std::invalid_argument if an option is wrong, and std::system_error if the store fails.

// The methods of the object class, called as a log calls them but without one: class_calls (they
// write nothing), class_writes.
Measure class_limit(const std::string& kind, const Options& options,
                    const std::shared_ptr<AsyncHost>& host);

// A directory, through LMDB: lmdb_puts, lmdb_scans.
Measure directory_limit(const std::string& kind, const Options& options);

// A server for 24-byte frames: frames.
Measure frames_limit(const std::string& kind, const Options& options);

// Throws std::runtime_error if librados is not installed.
void find_librados();

// A namespace of a pool, through librados alone: rados_keys, rados_appends, rados_reads, and clear,
// which removes all objects of the namespace and measures nothing.
Measure rados_limit(const std::string& kind, const Options& options);

}  // namespace zlog::bench
