#pragma once

#include <cstdint>
#include <string_view>

namespace zlog {

// CRC-32C (Castagnoli, as in iSCSI: RFC 3720, appendix B.4) of `data`, continuing from `seed`, the
// CRC of what came before it; 0 to begin. crc32c("123456789") is 0xe3069283. Uses the processor's
// instruction where there is one.
uint32_t crc32c(std::string_view data, uint32_t seed = 0);

// The same by tables alone: what a processor without the instruction runs, and the tests compare.
uint32_t crc32c_by_table(std::string_view data, uint32_t seed = 0);

// The CRC that travels with an entry: of its position (u64, little-endian), then its data. The
// position is part of it so that an entry that turns up at the wrong place is seen as damaged.
uint32_t entry_crc(uint64_t position, std::string_view data);

}  // namespace zlog
