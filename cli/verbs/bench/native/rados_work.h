#pragma once

#include <memory>
#include <string>

#include "work.h"

namespace zlog::bench {

struct RadosPlace {
  std::string conf, client, pool, nspace;  // conf and client may be empty: librados' defaults
};

// A namespace of a pool, with nothing but librados: rados_keys, rados_appends, rados_reads, and
// clear, which removes all that is in it; and through the object class, see class_work(). Throws
// std::system_error when it can't connect.
std::unique_ptr<Work> rados_work(const RadosPlace& place);

}  // namespace zlog::bench
