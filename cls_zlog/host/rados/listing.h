#pragma once

#include <string_view>

#include "cls_zlog/host/listing.h"
#include "cls_zlog/host/rados/librados.h"

namespace zlog {

// A page of the objects in the I/O context's pool and namespace, in the order of their names'
// hashes, from the place `after` of an earlier page on. Waits for OSDs. The next page may have the
// last names of this one again.
int list_page(rados_ioctx_t io, std::string_view prefix, std::string_view after, Listing* page);

}  // namespace zlog
