#pragma once

#include <cstdint>
#include <string_view>

#include "cls_zlog/host/request_bytes.h"
#include "cls_zlog/methods.h"

namespace zlog {

// The methods of Ceph's own class `lock` for a ClientSideHost, for clients whose caps allow reading
// and writing but no classes. They store the same bytes as the class, so they exclude clients that
// use it. A lock expires by this client's clock instead of the OSD's.

// Returns nullptr for a method that sequencers do not need.
const Method* find_lock_method(std::string_view name);

// Adds the number of this client to a request. The class gets this number from its OSD.
SharedRequest lock_request(uint64_t client, std::string_view request);

}  // namespace zlog
