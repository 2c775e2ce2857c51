#include "cls_zlog/repair/repair.h"

#include <algorithm>
#include <iterator>

#include "cls_zlog/base/crc32c.h"
#include "cls_zlog/head/directory.h"
#include "cls_zlog/head/head.h"
#include "cls_zlog/head/head_state.h"
#include "cls_zlog/stripe/header.h"
#include "cls_zlog/stripe/layout.h"
#include "cls_zlog/stripe/scan.h"
#include "cls_zlog/stripe/span_key.h"
#include "cls_zlog/wire/envelope.h"

namespace zlog::repair {
namespace {

constexpr const char* kAttributes[] = {Header::kAttribute, head::Head::kAttribute,
                                       directory::kSequencer};

// With one more page, this many names still fit into a reply.
constexpr size_t kNamesEnough = limits::list_page_max - limits::page_records_max - 1;

bool is_attribute(std::string_view name) {
  return std::find(std::begin(kAttributes), std::end(kAttributes), name) != std::end(kAttributes);
}

bool is_record(std::string_view name) { return name.substr(0, kRecords.size()) == kRecords; }

int load(Object& object, const std::string& name, std::string* value) {
  if (!is_attribute(name)) return object.omap_get(name, value);
  const int r = object.attr_get(name, value);
  return r == -ENODATA ? -ENOENT : r;
}

// Only records have a payload, which this checksum does not cover.
bool intact(std::string_view name, std::string_view value) {
  Envelope stored;
  return unwrap(name, value, &stored) && stored.payload.empty();
}

// Returns the key that must exist in a head, which is the key of its newest view. Returns an empty
// string for other objects and for a damaged head.
std::string required_key(Object& object) {
  head::Head head;
  return head::Head::load(object, &head).code == 0 ? head::newest_key(head) : std::string();
}

// Returns whether `data` is the intact data of all written entries of the record, in order. If the
// record is compressed, `data` must be its block.
bool fits(const Record& record, const Span& span, const Striping& striping, std::string_view data) {
  if (record.compressed() && record.any_written()) return stripe::intact_block(record, data);
  if (record.sparse()) {
    bool sound = true;
    each_entry(record, [&](const SparseBuilder::Entry& entry) {
      const uint64_t position = striping.after(span.first, entry.index);
      sound = sound && entry_crc(position, entry.data) == entry.crc;
    });
    return sound;
  }
  uint64_t position = span.first;
  for (uint32_t i = 0; i < record.ends.size(); i++, position = striping.next(position)) {
    if (!record.written(i)) continue;
    const std::string_view entry = data.substr(0, record.bytes_of(i));
    if (entry_crc(position, entry) != record.crcs[i]) return false;
    data.remove_prefix(entry.size());
  }
  return data.empty();
}

// Calls `use(begin, end)` for each stretch of written entries of a record until it fails.
template <typename Use>
int each_written(const Record& record, const Use& use) {
  for (uint32_t i = 0; i < record.ends.size(); i++) {
    if (!record.written(i)) continue;
    const uint32_t begin = i;
    while (i + 1 < record.ends.size() && record.written(i + 1)) i++;
    ZLOG_TRY(use(begin, i + 1));
  }
  return 0;
}

// The data of a record, which is in the bytestream or in its value.
std::string_view data_of(const Record& record, std::string_view streamed) {
  return record.streamed() ? streamed : record.data;
}

// Reads all data of a record from the bytestream.
int read_streamed(Layout* layout, const Stored& stored, std::string* out) {
  const Record& record = stored.record;
  std::string buffer;
  std::string_view data;
  if (record.compressed()) {
    if (record.any_written()) ZLOG_TRY(layout->block_of(stored, &buffer, &data));
    *out = data;
    return 0;
  }
  return each_written(record, [&](uint32_t begin, uint32_t end) {
    const int r = layout->data_of(stored, begin, end, &buffer, &data);
    out->append(data);
    return r;
  });
}

// Writes all data of a record to the bytestream.
int write_streamed(Object& object, const Record& record, std::string_view data) {
  if (record.compressed()) return data.empty() ? 0 : object.write(record.offset, data);
  return each_written(record, [&](uint32_t begin, uint32_t end) {
    const uint32_t from = record.begin_of(begin);
    const std::string_view part = data.substr(0, record.ends[end - 1] - from);
    data.remove_prefix(part.size());
    return object.write(record.offset + from, part);
  });
}

// Returns the part of a record's value that its checksum covers, together with the checksum.
// Returns an empty string if this part is damaged.
std::string_view index_of(std::string_view key, std::string_view value) {
  Envelope envelope;
  if (!unwrap(key, value, &envelope)) return {};
  return value.substr(0, kEnvelopeBytes + envelope.fields.size());
}

// Returns 0 if the record of these positions was lost: its key does not exist, although the header
// says that something was stored at every untrimmed position. Otherwise returns -ENOENT.
int check_vanished(Object& object, const Header& header, const Span& span) {
  RecordIterator records(object, header, 1, true);
  const Stored* next = nullptr;
  ZLOG_TRY(records.seek(span.first, &next));
  if (next != nullptr && next->span.first <= span.last) return -ENOENT;
  for (uint64_t p = span.first; p <= span.last; p = header.striping().next(p)) {
    if (p >= header.trim_point && !header.lost(p)) return -ENOENT;
  }
  return 0;
}

Result<SalvageReply> salvage_record(Object& object, uint64_t position) {
  Header header;
  ZLOG_TRY(Header::load(object, &header));
  RecordIterator records(object, header, 1, true);
  const Stored* stored = nullptr;
  ZLOG_TRY(records.seek(position, &stored));
  if (stored == nullptr || !stored->span.covers(position)) return Failure{-ENOENT};
  const Record& record = stored->record;
  if (record.unreadable()) return Failure{kUnreadable, stored->span.first};
  if (record.kind == RecordKind::kLost) return Failure{kLost, stored->span.first};
  SalvageReply reply;
  reply.name = stored->key;
  reply.last = stored->span.last;
  reply.value = stored->value.bytes;
  Layout layout(object, header);
  if (record.streamed()) ZLOG_TRY(read_streamed(&layout, *stored, &reply.data));
  if (!fits(record, stored->span, header.striping(), data_of(record, reply.data))) {
    return Failure{-EIO};
  }
  return reply;
}

Result<Empty> repair_record(Object& object, const HealRequest& request) {
  Header header;
  ZLOG_TRY(Header::load(object, &header));
  const std::string key(request.name);
  Span span;
  if (!parse_span_key(kRecords, key, header.striping(), header.residue, &span)) {
    return Failure{-EINVAL};
  }
  const Record record = Record::decode(key, request.value, header.striping().length(span));
  const bool streams = record.streamed();
  if (record.kind == RecordKind::kLost || record.unreadable() ||
      (!streams && !request.data.empty()) ||
      !fits(record, span, header.striping(), data_of(record, request.data)) ||
      (streams && record.offset + record.stored_bytes() > header.stream_end)) {
    return Failure{-EINVAL};
  }
  if (span.last < header.trim_point) return Failure{kBelowTrimPoint, header.trim_point};
  std::string stored;
  const int r = object.omap_get(key, &stored);
  ZLOG_TRY(r == -ENOENT ? check_vanished(object, header, span) : r);
  const std::string_view index = index_of(key, stored);
  if (!index.empty() && index != index_of(key, request.value)) {
    return Failure{kReadOnly, span.first};
  }
  ZLOG_TRY(object.omap_set(key, request.value));
  if (streams) ZLOG_TRY(write_streamed(object, record, request.data));
  return Empty();
}

}  // namespace

Result<DamagedReply> damaged(Object& object, const DamagedRequest& request) {
  DamagedReply reply;
  std::string value;
  bool more = load(object, Header::kAttribute, &value) == -ENOENT;
  for (const char* each : kAttributes) {
    if (!request.after.empty()) break;
    const int r = load(object, each, &value);
    if (r == -ENOENT) continue;
    ZLOG_TRY(r);
    if (!intact(each, value)) reply.names.emplace_back(each);
  }
  const std::string required = request.after.empty() ? required_key(object) : std::string();
  if (!required.empty() && object.omap_get(required, &value) == -ENOENT) {
    reply.names.push_back(required);
  }
  std::string last(request.after);
  uint64_t bytes = 0;
  while (more && bytes < limits::walk_bytes_enough && reply.names.size() < kNamesEnough) {
    Page page;
    ZLOG_TRY(object.omap_list(last, "", limits::page_records_max, &page, &more));
    if (page.empty()) return more ? Result<DamagedReply>(Failure{-EIO}) : reply;
    for (const auto& [key, stored] : page) {
      bytes += key.size() + stored.bytes.size();
      if (!intact(key, stored.bytes)) reply.names.push_back(key);
    }
    last = page.rbegin()->first;
  }
  if (more) reply.next = last;
  return reply;
}

Result<SalvageReply> salvage(Object& object, const SalvageRequest& request) {
  if (request.position) return salvage_record(object, *request.position);
  if (is_record(request.name)) return Failure{-EINVAL};
  SalvageReply reply;
  reply.name = request.name;
  ZLOG_TRY(load(object, reply.name, &reply.value));
  if (!intact(reply.name, reply.value)) return Failure{-EIO};
  return reply;
}

Result<Empty> heal(Object& object, const HealRequest& request) {
  if (is_record(request.name)) return repair_record(object, request);
  if (!intact(request.name, request.value) || !request.data.empty()) return Failure{-EINVAL};
  const std::string name(request.name);
  std::string stored;
  const int r = load(object, name, &stored);
  if (r != -ENOENT || name != required_key(object)) ZLOG_TRY(r);
  if (r == 0 && intact(name, stored) && stored != request.value) return Failure{kReadOnly};
  ZLOG_TRY(is_attribute(name) ? object.attr_set(name, request.value)
                              : object.omap_set(name, request.value));
  return Empty();
}

}  // namespace zlog::repair
