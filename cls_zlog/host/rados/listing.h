#pragma once

#include <string_view>

#include "cls_zlog/host/listing.h"
#include "cls_zlog/host/rados/librados.h"

namespace zlog {

// Lists a page of the objects in the I/O context's pool and namespace, ordered by the hashes of
// their names. Pass the preceding page's `next` as `after`; the last names of that page may be
// repeated. Blocks until the OSDs reply.
int list_page(rados_ioctx_t io, std::string_view prefix, std::string_view after, Listing* page);

}  // namespace zlog
