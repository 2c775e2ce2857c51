#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cls_zlog/base/buffer.h"
#include "cls_zlog/host/rados/librados.h"

namespace zlog {

// What a replica of an object answers, chosen at random among all of them.
struct ReplicaAnswer {
  // The number of the OSD's process that holds the replica, in 8 bytes, little-endian, and the reply.
  Buffer told() const;

  int code = 0;
  uint64_t instance = 0;  // 0: it is not known
  Buffer reply;
};

// Makes OSDs with replicas of the object other than the primary answer for it. They do that where
// nothing of it may be missing on another OSD, and hear of how far these are with each change in the
// placement group. So here are two, of an object that is there for a moment. A client that may not
// make it goes without.
void stir(rados_ioctx_t io, const std::string& object, bool client_side);

// Runs a method that only reads at a replica. Waits for the OSD. What the method answers is what the
// process answers whose number comes with it: both are of one operation.
ReplicaAnswer run_at_replica(rados_ioctx_t io, const std::string& object, const char* method,
                             std::string_view payload);

// Another I/O context of the same pool and namespace.
int copy_of(rados_ioctx_t io, RadosHandle* copy);

}  // namespace zlog
