#pragma once

#include <memory>
#include <string>

#include "request.h"
#include "sample.h"

namespace zlog::bench {

// A place that can be measured in some ways.
class Work {
 public:
  virtual ~Work() = default;

  // Measures what the request asks for. False: that is none of this place's ways.
  virtual bool measure(const Request& request, Sample* sample) = 0;
};

// A directory, through LMDB and through plain files: lmdb_puts, lmdb_gets, lmdb_scans, file_syncs.
std::unique_ptr<Work> directory_work(const std::string& directory);

// A server of 24-byte frames: frames.
std::unique_ptr<Work> tcp_work();

}  // namespace zlog::bench
