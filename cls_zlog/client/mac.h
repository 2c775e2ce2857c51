#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace zlog {

// An entry's MAC follows its data and is stored as part of it: HMAC-SHA256, cut to this many bytes.
constexpr size_t mac_bytes = 16;

// The key of a log's MACs (docs/formats/mac.md). A client without the key can count the entries but
// cannot read their data.
class MacKey {
 public:
  MacKey() = default;  // a key that is not known

  // Throws std::runtime_error if libcrypto is missing.
  explicit MacKey(std::string_view key);

  bool known() const { return context_ != nullptr; }

 private:
  friend class MacRun;
  struct Free {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, Free> context_;
};

// Encodes an entry's sorted tags for its MAC, in the form in which names are stored (tags.h).
std::string mac_tags(const std::vector<std::string_view>& sorted);

// Makes and checks MACs with one key, in one thread. Throws std::runtime_error if OpenSSL fails.
class MacRun {
 public:
  // The key must be known.
  explicit MacRun(const MacKey& key);

  // Writes the MAC of an entry to `out`, which has space for mac_bytes. `tags` is mac_tags().
  void make(uint64_t position, std::string_view data, std::string_view tags, char* out);

  // Returns whether the stored bytes of an entry at this position end with their valid MAC.
  bool fits(uint64_t position, std::string_view stored, std::string_view tags);

 private:
  std::unique_ptr<void, MacKey::Free> context_;
};

}  // namespace zlog
