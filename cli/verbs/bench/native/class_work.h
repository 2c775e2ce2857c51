#pragma once

#include <memory>

#include "cls_zlog/host/async_host.h"
#include "work.h"

namespace zlog::bench {

// The methods of the object class, called as a log calls them but without one: class_calls (they
// write nothing), class_writes, class_reads. `host` must outlive it.
std::unique_ptr<Work> class_work(AsyncHost& host);

}  // namespace zlog::bench
