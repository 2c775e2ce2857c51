#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cls_zlog/client/blocks.h"
#include "cls_zlog/client/mac.h"
#include "cls_zlog/wire/read_reply.h"

namespace zlog {

// The state of an intact entry with a wrong MAC: no writer with the log's key wrote it at this
// position. This value exists only in clients and is never sent.
constexpr uint8_t forged_state = 128;

// The reply to a read, which checks each entry's MAC and removes it from the data. Call
// open_blocks() first. If the log's key is unknown, MACs are not checked and all data appears
// empty. If no data was requested, nothing is checked.
struct TakenReply : ReadReply {
  TakenReply() = default;
  TakenReply(const ReadReply& reply, const MacKey* key, bool data)
      : ReadReply(reply), mac(key), with_data(data) {}

  const MacKey* mac = nullptr;  // nullptr: the log has no MACs
  bool with_data = true;        // whether data was requested

  std::string_view data_of(uint32_t i) const {
    if (!with_data) return {};
    const std::string_view stored = ReadReply::data_of(i);
    if (mac == nullptr) return stored;
    return stored.substr(0,
                         mac->known() && stored.size() > mac_bytes ? stored.size() - mac_bytes : 0);
  }

  // Sets out[i] to the state of the entry at positions[i], for each of the `count` entries. An
  // entry with a wrong MAC gets forged_state. If no data was requested, the states are not checked.
  // Throws std::runtime_error if OpenSSL fails.
  void states_at(const uint64_t* positions, uint8_t* out) const {
    find_states([&](uint32_t i) { return positions[i]; }, out);
  }

  // Like states_at(), for an object's positions from `first` on.
  void states_of(uint64_t first, const Striping& striping, uint8_t* out) const {
    uint64_t next = first;
    find_states(
        [&](uint32_t) {
          const uint64_t position = next;
          next = striping.next(position);
          return position;
        },
        out);
  }

 private:
  template <typename PositionOf>
  void find_states(const PositionOf& position_of, uint8_t* out) const {
    std::optional<MacRun> macs;
    if (with_data && mac != nullptr && mac->known()) macs.emplace(*mac);
    std::optional<TagsReader> reader;
    if (macs && tags.any()) reader.emplace(tags);
    for (uint32_t i = 0; i < count; i++) {
      const uint64_t position = position_of(i);
      const EntryState state = with_data ? state_of(i, position) : stored_state_of(i);
      const bool forged =
          macs && state == EntryState::kWritten &&
          !macs->fits(position, ReadReply::data_of(i), reader ? mac_tags(reader->of(i)) : "");
      out[i] = forged ? forged_state : static_cast<uint8_t>(state);
    }
  }
};

// Opens the blocks if data was requested.
inline Buffer open_blocks(TakenReply* reply) {
  return reply->with_data ? open_blocks(static_cast<ReadReply*>(reply)) : Buffer();
}

}  // namespace zlog
