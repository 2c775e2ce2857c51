#pragma once

#include <cstdint>

// The limits of the protocol, which bound the work and memory that one call costs an OSD. Raising a
// limit changes the protocol, because older OSDs refuse the larger requests of newer clients.
namespace zlog::limits {

// Positions and epochs have 64 bits on the wire but stay below 2^63. "One past the end" therefore
// never overflows, and signed 64-bit integers can hold them.
constexpr uint64_t position_max = (uint64_t{1} << 63) - 1;
constexpr uint64_t end_open = UINT64_MAX;  // the end of a stripe that is still open
constexpr uint64_t epoch_max = (uint64_t{1} << 63) - 1;
constexpr uint64_t epochs_ahead_max = 1u << 20;  // epochs that one call may skip

// The maximum number of positions of an object, counted from its stripe's start. The limit keeps a
// faulty or hostile client from using up a log's positions by writing a very high one.
constexpr uint64_t object_positions_max = 1u << 25;
constexpr uint64_t object_tail_max = 1u << 24;  // the same for tails that the head records

// One request.
constexpr uint32_t entries_max = 65536;                // positions per request
constexpr uint32_t request_bytes_max = 32u << 20;      // bytes
constexpr uint32_t entry_bytes_max = 16u << 20;        // bytes of one entry
constexpr uint32_t read_reply_bytes_max = 32u << 20;   // bytes of entry data in one read's reply
constexpr uint32_t read_blocks_bytes_max = 64u << 20;  // plain bytes of the blocks in that reply
constexpr uint32_t trim_records_max = 1024;            // records freed by one trim_to
constexpr uint32_t count_records_max = 16384;          // records that one count looks at
// Tags.
constexpr uint32_t entry_tags_max = 64;             // tags of one entry, or of one select
constexpr uint32_t tag_bytes_max = 128;             // bytes of one tag
constexpr uint32_t tag_names_bytes_max = 1u << 20;  // bytes of a write's tags, each counted once
constexpr uint32_t tag_ids_max = 1u << 18;          // tags of all entries of one write
constexpr uint32_t chunk_tags = 16384;              // tags after which the index gets a chunk
constexpr uint32_t chunk_records = 1024;            // records after which the index gets a chunk
constexpr uint32_t chunk_tags_max = 1u << 20;  // tags of one chunk; a larger chunk is not stored
constexpr uint32_t chunk_unknown_max = 64;     // runs of one chunk without known tags
constexpr uint32_t chunk_ends_max = 4096;      // records and holes whose ends a chunk has
constexpr uint32_t select_gaps_max = 4096;     // gaps in one select's reply
constexpr uint32_t filter_positions_min = 32;  // positions that get a filter, if they are in
constexpr uint32_t filter_records_min = 8;     // this number of records of average length
constexpr uint32_t filter_hashes = 32768;      // hashes from which on a filter is divided
// Compaction moves entries of up to sparse_entry_bytes_max bytes into records of up to
// sparse_bytes_max bytes.
constexpr uint32_t sparse_bytes_max = 32u << 10;
constexpr uint32_t sparse_entry_bytes_max = 4096;
constexpr uint32_t compact_bytes_enough = 8u << 20;  // stored bytes after which a compact ends
constexpr uint32_t writer_bytes = 16;                // bytes of a writer's id, exactly
constexpr uint32_t padding_bytes_max = 4095;         // bytes between a write's columns and its data
// Appends.
constexpr uint32_t append_parts_max = 4096;  // parts of one append
constexpr uint32_t unless_sets_max = 32;     // sets of tags in the condition of one part
constexpr uint32_t append_sets_max = 4096;   // the same, of all parts
constexpr uint32_t appenders_max = 128;      // writers whose last append an object remembers
constexpr uint32_t appender_bytes = 32;      // bytes that the header has of each
// Bytes that an OSD lets a method reply that changes something (osd_max_write_op_reply_len).
constexpr uint32_t write_reply_bytes_max = 64;

// Views, names and addresses.
constexpr uint32_t width_max = 1024;          // stripe objects per stripe
constexpr uint32_t unit_shift_max = 16;       // binary logarithm of the stripe unit
constexpr uint32_t view_stripes_max = 32;     // stripes in one view; older ones are archived
constexpr uint32_t views_kept_max = 128;      // epochs whose views a head keeps
constexpr uint32_t stripes_page_max = 1024;   // stripes in one reply of stripes_read, stripes_loose
constexpr uint32_t stripes_moved_max = 256;   // archived stripes that one call makes pending
constexpr uint32_t log_name_bytes_max = 128;  // bytes
constexpr uint32_t view_bytes_max = 1u << 20;    // bytes of one encoded view
constexpr uint32_t views_page_max = 1024;        // views in one view_read reply
constexpr uint32_t names_page_max = 4096;        // names in one directory_list reply
constexpr uint32_t address_bytes_max = 256;      // bytes of a sequencer's address
constexpr uint32_t writer_name_bytes_max = 128;  // bytes of an exclusive writer's name
constexpr uint32_t mac_key_id_bytes = 16;        // bytes that identify a key of MACs
constexpr uint32_t key_bytes_max = 256;      // bytes of a key of an object, or an attribute's name
constexpr uint32_t list_page_max = 1024;     // rows in one cursor_list or delivery_list reply
constexpr uint32_t cursors_max = 1024;       // cursors of one log; each trim looks at all of them
constexpr uint32_t producers_max = 1024;     // of one log, and of one listing
constexpr uint32_t parts_max = 65536;        // unfinished parts of one producer
constexpr uint32_t grants_max = 4096;        // grants of one part
constexpr uint32_t attempts_max = 1u << 20;  // attempts at one part
constexpr uint32_t parts_removed_max = 256;  // parts that one delivery_done removes
constexpr uint32_t parts_page_max = 256;     // parts in one producer_parts or producer_copy
constexpr uint32_t retention_bytes_max = 8192;     // bytes of a log's retention state
constexpr uint32_t option_key_bytes_max = 128;     // bytes
constexpr uint32_t option_value_bytes_max = 4096;  // bytes

// Records of offloaded stripes.
constexpr uint32_t offloads_page_max = 128;       // records in one offload_list reply
constexpr uint32_t offload_segments_max = 4096;   // segments of one record
constexpr uint32_t offload_url_bytes_max = 1024;  // bytes of a file's URL
constexpr uint32_t sha256_bytes = 32;             // bytes of a file's checksum

// Physical layout of a stripe object (layout.cc).
constexpr uint32_t inline_bytes_max = 32u << 10;  // bytes of a batch kept inside its record
// The size of an object's bytestream. Ceph's own limit (osd_max_object_size) is 128 MiB.
constexpr uint64_t stream_bytes_max = 120u << 20;  // bytes
constexpr uint32_t holes_max = 64;                 // runs of unwritten positions in a header
constexpr uint32_t page_records_max = 256;         // records fetched by one listing
constexpr uint32_t page_bytes_max = 4u << 20;      // bytes fetched by one listing, or one record

constexpr uint64_t walk_bytes_max = 64u << 20;     // bytes of records per call, else E2BIG
constexpr uint64_t walk_bytes_enough = 32u << 20;  // bytes after which a call stops if it may

}  // namespace zlog::limits
