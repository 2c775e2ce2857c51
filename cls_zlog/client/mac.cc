#include "cls_zlog/client/mac.h"

#include <dlfcn.h>

#include <cstring>
#include <stdexcept>

#include "cls_zlog/wire/tags.h"

namespace zlog {
namespace {

constexpr size_t kDigestBytes = 32;

// The authenticated bytes are the version, the position, and fields with their lengths.
constexpr uint8_t kVersion = 1;
constexpr uint8_t kData = 1;
constexpr uint8_t kTags = 2;  // only of an entry with tags
constexpr size_t kHeadBytes = sizeof(uint8_t) + sizeof(uint64_t);
constexpr size_t kFieldBytes = sizeof(uint8_t) + sizeof(uint32_t);

// The functions of OpenSSL that make an HMAC, with their types. OpenSSL is loaded when it is first
// needed (docs/decisions/0019-macs.md). CRYPTO_memcmp compares in constant time.
#define ZLOG_LIBCRYPTO(X)                                                             \
  X(HMAC_CTX_new, void*())                                                            \
  X(HMAC_CTX_free, void(void* context))                                               \
  X(HMAC_CTX_copy, int(void* to, void* from))                                         \
  X(HMAC_Init_ex,                                                                     \
    int(void* context, const void* key, int bytes, const void* digest, void* engine)) \
  X(HMAC_Update, int(void* context, const unsigned char* data, size_t bytes))         \
  X(HMAC_Final, int(void* context, unsigned char* out, unsigned* bytes))              \
  X(EVP_sha256, const void*())                                                        \
  X(CRYPTO_memcmp, int(const void* a, const void* b, size_t bytes))

struct Libcrypto {
#define ZLOG_MEMBER(name, ...) std::add_pointer_t<__VA_ARGS__> name = nullptr;
  ZLOG_LIBCRYPTO(ZLOG_MEMBER)
#undef ZLOG_MEMBER
};

Libcrypto load() {
  void* library = nullptr;
  for (const char* name : {"libcrypto.so.3", "libcrypto.so.1.1"}) {
    library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) throw std::runtime_error("OpenSSL's libcrypto.so.3 is missing");
  Libcrypto found;
#define ZLOG_FIND(name, ...)                                                    \
  found.name = reinterpret_cast<decltype(found.name)>(::dlsym(library, #name)); \
  if (found.name == nullptr) throw std::runtime_error("libcrypto has no " #name);
  ZLOG_LIBCRYPTO(ZLOG_FIND)
#undef ZLOG_FIND
  return found;
}

// Throws std::runtime_error if libcrypto is missing.
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
  void* const context = libcrypto().HMAC_CTX_new();
  must(context != nullptr);
  return context;
}

}  // namespace

void MacKey::Free::operator()(void* context) const { libcrypto().HMAC_CTX_free(context); }

MacKey::MacKey(std::string_view key) : context_(new_context()) {
  const Libcrypto& crypto = libcrypto();
  must(crypto.HMAC_Init_ex(context_.get(), key.data(), static_cast<int>(key.size()),
                           crypto.EVP_sha256(), nullptr) == 1);
}

MacRun::MacRun(const MacKey& key) : context_(new_context()) {
  must(libcrypto().HMAC_CTX_copy(context_.get(), key.context_.get()) == 1);
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
  must(crypto.HMAC_Init_ex(context, nullptr, 0, nullptr, nullptr) == 1 &&
       crypto.HMAC_Update(context, bytes_of(head), sizeof(head)) == 1 &&
       crypto.HMAC_Update(context, bytes_of(data.data()), data.size()) == 1);
  if (!tags.empty()) {
    char field[kFieldBytes];
    wire::store(field, kTags);
    wire::store(field + 1, static_cast<uint32_t>(tags.size()));
    must(crypto.HMAC_Update(context, bytes_of(field), sizeof(field)) == 1 &&
         crypto.HMAC_Update(context, bytes_of(tags.data()), tags.size()) == 1);
  }
  must(crypto.HMAC_Final(context, digest, nullptr) == 1);
  std::memcpy(out, digest, mac_bytes);
}

bool MacRun::fits(uint64_t position, std::string_view stored, std::string_view tags) {
  if (stored.size() < mac_bytes) return false;
  const std::string_view data = stored.substr(0, stored.size() - mac_bytes);
  char own[mac_bytes];
  make(position, data, tags, own);
  return libcrypto().CRYPTO_memcmp(own, stored.data() + data.size(), mac_bytes) == 0;
}

}  // namespace zlog
