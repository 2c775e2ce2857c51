#pragma once

#include <cstddef>

// OpenSSL's HMAC, of whichever libcrypto the machine has: it is looked for when it is first needed,
// so that clients without keys need none, and the one that is used is the one that the system keeps
// up to date (docs/decisions/0019-macs.md).
namespace zlog {

// The functions of it that are used. Their types are opaque; they are the same in 1.1 and in 3.
struct Libcrypto {
  void* (*hmac_new)() = nullptr;
  void (*hmac_free)(void* context) = nullptr;
  int (*hmac_copy)(void* to, void* from) = nullptr;
  int (*hmac_init)(void* context, const void* key, int bytes, const void* digest,
                   void* engine) = nullptr;
  int (*hmac_update)(void* context, const unsigned char* data, size_t bytes) = nullptr;
  int (*hmac_final)(void* context, unsigned char* out, unsigned* bytes) = nullptr;
  const void* (*sha256)() = nullptr;
  int (*compare)(const void* a, const void* b, size_t bytes) = nullptr;  // in constant time
};

// Throws std::runtime_error when there is none.
const Libcrypto& libcrypto();

}  // namespace zlog
