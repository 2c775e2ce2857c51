#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace zlog {

// A MAC stands behind an entry's data, and is part of what is stored as its data: HMAC-SHA256, cut to
// the first so many bytes.
constexpr size_t mac_bytes = 16;

// The key of one log's MACs, or that there is one and the client has none: then entries are counted
// and their data is withheld (docs/formats/mac.md).
class MacKey {
 public:
  MacKey() = default;  // of a client without it

  // Throws std::runtime_error when there is no libcrypto.
  explicit MacKey(std::string_view key);

  bool known() const { return context_ != nullptr; }

 private:
  friend class MacRun;
  struct Free {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, Free> context_;
};

// An entry's tags, sorted, as a MAC is about them: of each a u8 length, and as many bytes.
std::string mac_tags(const std::vector<std::string_view>& sorted);

// Makes or checks MACs with one key, in one thread.
class MacRun {
 public:
  // Throws std::runtime_error when OpenSSL fails, as all of it does; the key must be known.
  explicit MacRun(const MacKey& key);

  // Puts mac_bytes to `out`: of these bytes as an entry at this position, with tags as mac_tags()
  // gives them.
  void make(uint64_t position, std::string_view data, std::string_view tags, char* out);

  // Whether what is stored at a position is data and its MAC.
  bool fits(uint64_t position, std::string_view stored, std::string_view tags);

 private:
  std::unique_ptr<void, MacKey::Free> context_;
};

}  // namespace zlog
