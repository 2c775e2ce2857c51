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

// The key of a log's MACs (docs/formats/mac.md). Without the key, a client can count entries but
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

// Returns an entry's sorted tags in the form that its MAC covers, which is how names are stored
// (tags.h).
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
