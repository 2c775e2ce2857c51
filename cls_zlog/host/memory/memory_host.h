#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "cls_zlog/host/host.h"

namespace zlog {

// An object held in memory: existing or not, a bytestream, attributes, sorted keys.
struct MemoryObject {
  std::map<std::string, std::string> attrs;
  std::map<std::string, std::string> omap;
  std::string stream;
};

// A host in memory, for tests and simulation: what an OSD answers, without a disk. Nothing
// survives it.
class MemoryHost final : public Host {
 public:
  int execute(std::string_view object, std::string_view method, std::string_view payload,
              std::string* reply) override;
  int list(std::string_view prefix, std::string_view after, Listing* page) override;

  // For tests: copies an object out (false: there is none) or puts one in, damaged as the test
  // likes.
  bool peek(const std::string& object, MemoryObject* out);
  void poke(const std::string& object, MemoryObject content);

 private:
  std::mutex mutex_;
  std::map<std::string, MemoryObject, std::less<>> objects_;
};

}  // namespace zlog
