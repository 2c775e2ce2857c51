#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace zlog {

// What a random test draws from; the same seed draws the same.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  // 0 to count - 1.
  uint64_t below(uint64_t count) { return engine_() % count; }
  bool one_in(uint64_t count) { return below(count) == 0; }

  std::string bytes(size_t length) {
    std::string bytes(length, '\0');
    for (char& byte : bytes) byte = static_cast<char>(engine_());
    return bytes;
  }

  // A few numbers below `count`, ascending; often in a row.
  std::vector<uint64_t> some_below(uint64_t count) {
    const uint64_t first = below(count);
    const bool row = one_in(2);
    std::set<uint64_t> some;
    for (uint64_t i = 1 + below(one_in(3) ? 20 : 4); i > 0; i--) {
      some.insert(row ? (first + i) % count : below(count));
    }
    return {some.begin(), some.end()};
  }

  // Changes a byte, or cuts or lengthens the value. It is not empty.
  void damage(std::string* value) {
    switch (below(4)) {
      case 0:
        value->resize(below(value->size()));
        break;
      case 1:
        value->push_back('x');
        break;
      default:
        (*value)[below(value->size())] ^= static_cast<char>(1 << below(8));
    }
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace zlog
