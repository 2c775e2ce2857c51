#pragma once

#include <cstdint>
#include <string_view>

namespace zlog {

// CRC-32C (Castagnoli, as in iSCSI: RFC 3720, appendix B.4) of `data`, continuing from `seed`, the
// CRC of the bytes before it; 0 to begin. crc32c("123456789") is 0xe3069283. Uses the processor's
// instruction if it has one.
uint32_t crc32c(std::string_view data, uint32_t seed = 0);

// The same without the instruction, as processors that lack it run it. For tests.
uint32_t crc32c_by_table(std::string_view data, uint32_t seed = 0);

// The CRC that is stored with an entry: of its position (u64, little-endian), then its data. The
// position is part of it so that an entry at the wrong position counts as damaged.
uint32_t entry_crc(uint64_t position, std::string_view data);

}  // namespace zlog
