#include "cls_zlog/client/mac.h"

#include <dlfcn.h>

#include <cstring>
#include <stdexcept>
#include <string>

#include "cls_zlog/wire/tags.h"

namespace zlog {
namespace {

constexpr size_t kDigestBytes = 32;

// The authenticated bytes: version, position, and fields with their lengths.
constexpr uint8_t kVersion = 1;
constexpr uint8_t kData = 1;
constexpr uint8_t kTags = 2;  // only of an entry with tags
constexpr size_t kHeadBytes = sizeof(uint8_t) + sizeof(uint64_t);
constexpr size_t kFieldBytes = sizeof(uint8_t) + sizeof(uint32_t);

// OpenSSL's HMAC. The library is loaded when it is first needed: clients without keys need none,
// and the system's own libcrypto, 1.1 or 3, gets the security updates
// (docs/decisions/0019-macs.md).
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

// Throws std::runtime_error if there is no libcrypto.
const Libcrypto& libcrypto() {
  static const Libcrypto loaded = load();
  return loaded;
}

void must(bool done) {
  if (!done) throw std::runtime_error("OpenSSL could not make an HMAC-SHA256");
}

const unsigned char* bytes_of(const char* data) {
  return reinterpret_cast<const unsigned char*>(data);
}

void* new_context() {
  void* const context = libcrypto().hmac_new();
  must(context != nullptr);
  return context;
}

}  // namespace

void MacKey::Free::operator()(void* context) const { libcrypto().hmac_free(context); }

MacKey::MacKey(std::string_view key) : context_(new_context()) {
  const Libcrypto& crypto = libcrypto();
  must(crypto.hmac_init(context_.get(), key.data(), static_cast<int>(key.size()), crypto.sha256(),
                        nullptr) == 1);
}

MacRun::MacRun(const MacKey& key) : context_(new_context()) {
  must(libcrypto().hmac_copy(context_.get(), key.context_.get()) == 1);
}

std::string mac_tags(const std::vector<std::string_view>& sorted) {
  std::string tags;
  for (const std::string_view tag : sorted) append_name(tag, &tags);
  return tags;
}

void MacRun::make(uint64_t position, std::string_view data, std::string_view tags, char* out) {
  const Libcrypto& crypto = libcrypto();
  char head[kHeadBytes + kFieldBytes];
  wire::store(head, kVersion);
  wire::store(head + 1, position);
  wire::store(head + kHeadBytes, kData);
  wire::store(head + kHeadBytes + 1, static_cast<uint32_t>(data.size()));
  unsigned char digest[kDigestBytes];
  void* const context = context_.get();
  must(crypto.hmac_init(context, nullptr, 0, nullptr, nullptr) == 1 &&
       crypto.hmac_update(context, bytes_of(head), sizeof(head)) == 1 &&
       crypto.hmac_update(context, bytes_of(data.data()), data.size()) == 1);
  if (!tags.empty()) {
    char field[kFieldBytes];
    wire::store(field, kTags);
    wire::store(field + 1, static_cast<uint32_t>(tags.size()));
    must(crypto.hmac_update(context, bytes_of(field), sizeof(field)) == 1 &&
         crypto.hmac_update(context, bytes_of(tags.data()), tags.size()) == 1);
  }
  must(crypto.hmac_final(context, digest, nullptr) == 1);
  std::memcpy(out, digest, mac_bytes);
}

bool MacRun::fits(uint64_t position, std::string_view stored, std::string_view tags) {
  if (stored.size() < mac_bytes) return false;
  const std::string_view data = stored.substr(0, stored.size() - mac_bytes);
  char own[mac_bytes];
  make(position, data, tags, own);
  return libcrypto().compare(own, stored.data() + data.size(), mac_bytes) == 0;
}

}  // namespace zlog
