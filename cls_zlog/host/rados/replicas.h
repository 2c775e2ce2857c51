#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cls_zlog/base/buffer.h"
#include "cls_zlog/host/async_host.h"
#include "cls_zlog/host/rados/librados.h"

namespace zlog {

// Returns a replica's reply in one buffer: the number of the OSD process that stores the replica (8
// bytes, little-endian; 0 if unknown), followed by the method's reply.
Buffer replica_reply(uint64_t instance, const Buffer& reply);

// Makes OSDs other than the primary serve reads of the object. An OSD does so only if it knows that
// no other OSD lacks a change of the object, and it learns this with each change in the placement
// group. So this function creates and removes an object there, if the client may do that.
void stir(rados_ioctx_t io, const std::string& object, bool client_side);

// Runs a read-only method at a replica chosen at random, and passes a replica_reply() to `done`.
// Waits for the OSD. The reply and the number come from the same operation and process.
void run_at_replica(rados_ioctx_t io, const std::string& object, const char* method,
                    std::string_view payload, const Done& done);

// Opens another I/O context of the same pool and namespace.
int copy_of(rados_ioctx_t io, RadosHandle* copy);

}  // namespace zlog
