#pragma once

#include <string_view>

#include "cls_zlog/host/listing.h"
#include "cls_zlog/host/rados/librados.h"

namespace zlog {

// Lists a page of the objects in the I/O context's pool and namespace, in the order of the hashes
// of their names. `after` is the `next` of the preceding page. The page may repeat the last names
// of that page. Blocks until the OSDs reply.
int list_page(rados_ioctx_t io, std::string_view prefix, std::string_view after, Listing* page);

}  // namespace zlog
