#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cls_zlog/base/buffer.h"
#include "cls_zlog/host/async_host.h"
#include "cls_zlog/host/rados/librados.h"

namespace zlog {

// The reply of one of an object's replicas, chosen at random: the number of the OSD's process that
// stores it (0: unknown), 8 bytes, little-endian, and the method's reply.
Buffer replica_reply(uint64_t instance, const Buffer& reply);

// Makes OSDs with replicas of the object other than the primary answer for it. They answer only if
// nothing of it may be missing on another OSD, and learn how far the others are with each change in the
// placement group. So this makes two changes: it creates and removes an object. A client that may not
// do that goes without.
void stir(rados_ioctx_t io, const std::string& object, bool client_side);

// Runs a method that only reads at a replica, and passes `done` a replica_reply(). Waits for the OSD. The
// reply and the number of the process are of one operation, so the reply is that process's.
void run_at_replica(rados_ioctx_t io, const std::string& object, const char* method,
                    std::string_view payload, const Done& done);

// Opens another I/O context of the same pool and namespace.
int copy_of(rados_ioctx_t io, RadosHandle* copy);

}  // namespace zlog
