#include "crc32c.h"

#include <array>

#include "wire.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace zlog {
namespace {

// All of these work on the register itself: the complement of the CRC.
using Update = uint32_t (*)(uint32_t state, const char* at, size_t length);

constexpr uint32_t kPolynomial = 0x82f63b78;  // reversed

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// tables[k][b] is the effect of byte b followed by k zero bytes ("slicing by 8").
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; byte++) {
    uint32_t state = byte;
    for (int bit = 0; bit < 8; bit++) state = (state >> 1) ^ ((state & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = state;
  }
  for (size_t k = 1; k < tables.size(); k++) {
    for (uint32_t byte = 0; byte < 256; byte++) {
      const uint32_t shorter = tables[k - 1][byte];
      tables[k][byte] = (shorter >> 8) ^ tables[0][shorter & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

uint32_t update_by_table(uint32_t state, const char* at, size_t length) {
  for (; length >= 8; at += 8, length -= 8) {
    const uint64_t word = wire::load<uint64_t>(at) ^ state;
    state = 0;
    for (size_t i = 0; i < 8; i++) state ^= kTables[7 - i][(word >> (8 * i)) & 0xff];
  }
  for (; length > 0; at++, length--) {
    state = (state >> 8) ^ kTables[0][(state ^ static_cast<unsigned char>(*at)) & 0xff];
  }
  return state;
}

#if defined(__x86_64__)

[[gnu::target("sse4.2")]] uint32_t update_by_instruction(uint32_t state, const char* at,
                                                         size_t length) {
  uint64_t wide = state;
  for (; length >= 8; at += 8, length -= 8) wide = _mm_crc32_u64(wide, wire::load<uint64_t>(at));
  state = static_cast<uint32_t>(wide);
  for (; length > 0; at++, length--) state = _mm_crc32_u8(state, static_cast<unsigned char>(*at));
  return state;
}

bool has_instruction() { return __builtin_cpu_supports("sse4.2") != 0; }

#elif defined(__aarch64__) && defined(__linux__)

// Written out, since compilers differ in where they offer these without requiring them of the whole
// program.
uint32_t update_by_instruction(uint32_t state, const char* at, size_t length) {
  for (; length >= 8; at += 8, length -= 8) {
    const uint64_t word = wire::load<uint64_t>(at);
    __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(state) : "r"(word));
  }
  for (; length > 0; at++, length--) {
    const uint32_t byte = static_cast<unsigned char>(*at);
    __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(state) : "r"(byte));
  }
  return state;
}

bool has_instruction() { return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }

#else

uint32_t update_by_instruction(uint32_t state, const char* at, size_t length) {
  return update_by_table(state, at, length);
}

bool has_instruction() { return false; }

#endif

}  // namespace

uint32_t crc32c(std::string_view data, uint32_t seed) {
  static const Update update = has_instruction() ? update_by_instruction : update_by_table;
  return ~update(~seed, data.data(), data.size());
}

uint32_t crc32c_by_table(std::string_view data, uint32_t seed) {
  return ~update_by_table(~seed, data.data(), data.size());
}

uint32_t entry_crc(uint64_t position, std::string_view data) {
  char bytes[sizeof(position)];
  wire::store(bytes, position);
  return crc32c(data, crc32c({bytes, sizeof(bytes)}));
}

}  // namespace zlog
