#include "cls_zlog/client/libcrypto.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace zlog {
namespace {

template <typename F>
void find(void* library, const char* name, F* function) {
  *function = reinterpret_cast<F>(::dlsym(library, name));
  if (*function == nullptr) throw std::runtime_error(std::string("libcrypto has no ") + name);
}

Libcrypto load() {
  void* library = nullptr;
  for (const char* name : {"libcrypto.so.3", "libcrypto.so.1.1"}) {
    library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) throw std::runtime_error("there is no libcrypto.so.3 of OpenSSL");
  Libcrypto found;
  find(library, "HMAC_CTX_new", &found.hmac_new);
  find(library, "HMAC_CTX_free", &found.hmac_free);
  find(library, "HMAC_CTX_copy", &found.hmac_copy);
  find(library, "HMAC_Init_ex", &found.hmac_init);
  find(library, "HMAC_Update", &found.hmac_update);
  find(library, "HMAC_Final", &found.hmac_final);
  find(library, "EVP_sha256", &found.sha256);
  find(library, "CRYPTO_memcmp", &found.compare);
  return found;
}

}  // namespace

const Libcrypto& libcrypto() {
  static const Libcrypto loaded = load();
  return loaded;
}

}  // namespace zlog
