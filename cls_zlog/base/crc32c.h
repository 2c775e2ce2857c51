#pragma once

#include <cstdint>
#include <string_view>

namespace zlog {

// Returns the CRC-32C (Castagnoli) of `data`, for example 0xe3069283 for "123456789". To continue a
// checksum, pass the CRC of the preceding bytes as `seed`.
uint32_t crc32c(std::string_view data, uint32_t seed = 0);

// For tests: the implementation for processors without the instruction.
uint32_t crc32c_by_table(std::string_view data, uint32_t seed = 0);

// Returns the CRC of two texts, one after the other, from the CRC of each and the second's size.
uint32_t crc32c_combine(uint32_t first, uint32_t second, uint32_t second_bytes);

// Returns the CRC that is stored with an entry. It covers the position (u64, little-endian) and
// then the data, so an entry that is found at the wrong position counts as damaged.
uint32_t entry_crc(uint64_t position, std::string_view data);

}  // namespace zlog
