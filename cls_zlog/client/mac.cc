#include "cls_zlog/client/mac.h"

#include <cstring>
#include <stdexcept>
#include <string>

#include "cls_zlog/client/libcrypto.h"
#include "cls_zlog/wire/wire.h"

namespace zlog {
namespace {

constexpr size_t kDigestBytes = 32;

// Of what the MAC is about, in front of the fields; and the fields, each with its length.
constexpr uint8_t kVersion = 1;
constexpr uint8_t kData = 1;
constexpr uint8_t kTags = 2;  // only of an entry that has some
constexpr size_t kHeadBytes = sizeof(uint8_t) + sizeof(uint64_t);
constexpr size_t kFieldBytes = sizeof(uint8_t) + sizeof(uint32_t);

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
  for (const std::string_view tag : sorted) {
    tags += static_cast<char>(tag.size());
    tags.append(tag);
  }
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
