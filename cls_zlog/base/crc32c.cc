#include "cls_zlog/base/crc32c.h"

#include <array>

#include "cls_zlog/base/little_endian.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace zlog {
namespace {

// Updates the register, which is the complement of the CRC.
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

// Multiplies polynomials modulo the CRC's. The highest bit is the coefficient of x^0.
constexpr uint32_t product(uint32_t a, uint32_t b) {
  uint32_t sum = 0;
  for (uint32_t bit = uint32_t{1} << 31; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) sum ^= b;
    b = (b >> 1) ^ ((b & 1) != 0 ? kPolynomial : 0);
  }
  return sum;
}

// powers[k] is x^(8 * 2^k), which multiplies a register by 2^k zero bytes.
constexpr std::array<uint32_t, 32> make_powers() {
  std::array<uint32_t, 32> powers{};
  powers[0] = uint32_t{1} << 23;
  for (size_t k = 1; k < powers.size(); k++) powers[k] = product(powers[k - 1], powers[k - 1]);
  return powers;
}

constexpr std::array<uint32_t, 32> kPowers = make_powers();

// These execute one instruction of the processor, which updates the register with a word or a byte.
#if defined(__x86_64__)

#define ZLOG_CRC_TARGET [[gnu::target("sse4.2")]]

ZLOG_CRC_TARGET inline uint32_t step(uint32_t state, uint64_t word) {
  return static_cast<uint32_t>(_mm_crc32_u64(state, word));
}

ZLOG_CRC_TARGET inline uint32_t step(uint32_t state, uint8_t byte) {
  return _mm_crc32_u8(state, byte);
}

bool has_instruction() { return __builtin_cpu_supports("sse4.2") != 0; }

#elif defined(__aarch64__) && defined(__linux__)

#define ZLOG_CRC_TARGET

// This is assembly, because compilers offer these instructions in different ways to a program that
// must also run on processors without them.
inline uint32_t step(uint32_t state, uint64_t word) {
  __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(state) : "r"(word));
  return state;
}

inline uint32_t step(uint32_t state, uint8_t byte) {
  __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(state) : "r"(uint32_t{byte}));
  return state;
}

bool has_instruction() { return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }

#endif

#ifdef ZLOG_CRC_TARGET

// How a fixed number of zero bytes changes a register. This map is linear, so one table for each
// byte of the register is enough.
using Zeros = std::array<std::array<uint32_t, 256>, 4>;

// A linear map of registers: the image of each bit.
using Matrix = std::array<uint32_t, 32>;

constexpr uint32_t times(const Matrix& matrix, uint32_t state) {
  uint32_t product = 0;
  for (size_t bit = 0; state != 0; bit++, state >>= 1) product ^= (state & 1) * matrix[bit];
  return product;
}

constexpr Zeros make_zeros(size_t bytes) {
  Matrix matrix{};  // one zero bit
  matrix[0] = kPolynomial;
  for (size_t bit = 1; bit < matrix.size(); bit++) matrix[bit] = uint32_t{1} << (bit - 1);
  for (size_t bits = 1; bits < 8 * bytes; bits *= 2) {  // twice as many: the map applied twice
    Matrix twice{};
    for (size_t bit = 0; bit < matrix.size(); bit++) twice[bit] = times(matrix, matrix[bit]);
    matrix = twice;
  }
  Zeros zeros{};
  for (size_t k = 0; k < zeros.size(); k++) {
    for (uint32_t byte = 0; byte < 256; byte++) zeros[k][byte] = times(matrix, byte << (8 * k));
  }
  return zeros;
}

uint32_t through(const Zeros& zeros, uint32_t state) {
  return zeros[0][state & 0xff] ^ zeros[1][state >> 8 & 0xff] ^ zeros[2][state >> 16 & 0xff] ^
         zeros[3][state >> 24];
}

// How far ahead bytes are prefetched. The hardware does not predict that three parallel stretches
// are read, so without prefetching, bytes outside the cache would take more than twice as long.
// Prefetching beyond the end is harmless.
constexpr size_t kAheadBytes = 6u << 10;
constexpr size_t kCacheLineBytes = 64;

// Processes three stretches of `kLength` bytes (a power of two) in parallel, because the processor
// can begin a step before the preceding one has ended if it does not need its result. The results
// are then combined: to append the second stretch to the first, the first register is advanced over
// as many zeros as the second stretch has bytes.
template <size_t kLength>
ZLOG_CRC_TARGET void update_three(uint32_t* state, const char** at, size_t* length) {
  static constexpr Zeros kZeros = make_zeros(kLength);
  for (; *length >= 3 * kLength; *at += 3 * kLength, *length -= 3 * kLength) {
    const char* const begin = *at;
    uint32_t first = *state, second = 0, third = 0;
    for (size_t i = 0; i < kLength; i += 8) {
      if (i % kCacheLineBytes == 0) {
        for (size_t k = 0; k < 3; k++) __builtin_prefetch(begin + kAheadBytes + k * kLength + i);
      }
      first = step(first, wire::load<uint64_t>(begin + i));
      second = step(second, wire::load<uint64_t>(begin + kLength + i));
      third = step(third, wire::load<uint64_t>(begin + 2 * kLength + i));
    }
    *state = through(kZeros, through(kZeros, first) ^ second) ^ third;
  }
}

ZLOG_CRC_TARGET uint32_t update_by_instruction(uint32_t state, const char* at, size_t length) {
  update_three<1024>(&state, &at, &length);
  update_three<128>(&state, &at, &length);
  for (; length >= 8; at += 8, length -= 8) state = step(state, wire::load<uint64_t>(at));
  for (; length > 0; at++, length--) state = step(state, wire::load<uint8_t>(at));
  return state;
}

#else

bool has_instruction() { return false; }

constexpr Update update_by_instruction = update_by_table;

#endif

}  // namespace

uint32_t crc32c(std::string_view data, uint32_t seed) {
  static const Update update = has_instruction() ? update_by_instruction : update_by_table;
  return ~update(~seed, data.data(), data.size());
}

uint32_t crc32c_by_table(std::string_view data, uint32_t seed) {
  return ~update_by_table(~seed, data.data(), data.size());
}

uint32_t crc32c_combine(uint32_t first, uint32_t second, uint32_t second_bytes) {
  for (size_t k = 0; second_bytes != 0; k++, second_bytes >>= 1) {
    if ((second_bytes & 1) != 0) first = product(kPowers[k], first);
  }
  return first ^ second;
}

uint32_t entry_crc(uint64_t position, std::string_view data) {
  char bytes[sizeof(position)];
  wire::store(bytes, position);
  return crc32c(data, crc32c({bytes, sizeof(bytes)}));
}

}  // namespace zlog
