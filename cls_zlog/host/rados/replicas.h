#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cls_zlog/base/buffer.h"
#include "cls_zlog/host/async_host.h"
#include "cls_zlog/host/rados/librados.h"

namespace zlog {

// Puts a replica's reply in one buffer: first the number of the OSD process that stores the replica
// (8 bytes, little-endian; 0 if unknown), and then the method's reply.
Buffer replica_reply(uint64_t instance, const Buffer& reply);

// Makes the object readable from OSDs other than the primary. Such an OSD serves reads only if it
// knows that all replicas have the object's last change. It learns this from the next change in the
// placement group, so stir() creates and removes another object there, if the caps allow it.
void stir(rados_ioctx_t io, const std::string& object, bool client_side);

// Runs a read-only method on a randomly chosen replica and waits for it. Passes a replica_reply()
// to `done`, with the number of the OSD process that ran the method.
void run_at_replica(rados_ioctx_t io, const std::string& object, const char* method,
                    std::string_view payload, const Done& done);

// Opens another I/O context of the same pool and namespace.
int copy_of(rados_ioctx_t io, RadosHandle* copy);

}  // namespace zlog
