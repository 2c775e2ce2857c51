#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "cls_zlog/host/request_bytes.h"
#include "cls_zlog/methods.h"

namespace zlog {

// Ceph's own class `lock` as methods that a ClientSideHost runs, for clients whose caps allow reading
// and writing, but no classes. What is stored is the class's, byte for byte: who uses the class and who
// does not exclude each other. When a lock expires is judged by the client's clock here, and by the
// OSD's there.

// The method of the class; null if it is none of those that sequencers need.
const Method* find_lock_method(std::string_view name);

// Its request with the number of this client, which an OSD knows and the class takes from there.
SharedRequest lock_request(uint64_t client, std::string_view request);

}  // namespace zlog
