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

// The key of a log's MACs (docs/formats/mac.md). A client without it counts entries, but does not get
// their data.
class MacKey {
 public:
  MacKey() = default;  // not known

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

// An entry's sorted tags as a MAC authenticates them: as names are stored (tags.h).
std::string mac_tags(const std::vector<std::string_view>& sorted);

// Makes and checks MACs with one key, in one thread. Throws std::runtime_error if OpenSSL fails.
class MacRun {
 public:
  // The key must be known.
  explicit MacRun(const MacKey& key);

  // Writes the MAC of an entry to `out`, mac_bytes; `tags`: of mac_tags().
  void make(uint64_t position, std::string_view data, std::string_view tags, char* out);

  // Whether the stored bytes at a position end in their MAC.
  bool fits(uint64_t position, std::string_view stored, std::string_view tags);

 private:
  std::unique_ptr<void, MacKey::Free> context_;
};

}  // namespace zlog
