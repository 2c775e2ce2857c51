#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/base/crc32c.h"
#include "cls_zlog/stripe/scan.h"

namespace zlog::stripe {
namespace {

constexpr uint64_t kKeyBytes = 100;        // overhead of a key in a store, about
constexpr uint64_t kReadOnce = 256 << 10;  // bytes of a batch's data to read at once

// What compaction does with a record.
enum class Verdict {
  kReplace,  // moves its entries into a sparse record
  kTrim,     // keeps it, and trims entries
  kLeave,
};

// The verdict on a record, the entries that stay, and the memory that these point into.
struct Kept {
  Verdict verdict = Verdict::kLeave;
  Verdict otherwise = Verdict::kLeave;  // if it can't be replaced
  std::vector<SparseBuilder::Entry> entries;
  std::vector<std::string> names;
  std::vector<std::string> data;
  uint64_t bytes = 0;       // in a sparse record
  uint32_t gone = 0;        // number of the other entries
  uint64_t gone_bytes = 0;  // their data

  void add(const SparseBuilder::Entry& entry) {
    entries.push_back(entry);
    bytes += entry.bytes();
  }
};

class Compaction {
 public:
  Compaction(Object& object, Header& header, const CompactRequest& request)
      : object_(object),
        header_(header),
        striping_(header.striping()),
        request_(request),
        layout_(object, header),
        positions_(request.runs.positions()) {}

  Result<CompactReply> run() {
    Sweep sweep(object_, header_, std::max(request_.start, header_.trim_point),
                std::min(request_.end, header_.records_end()), true);
    reply_.end = request_.end;
    while (!sweep.done()) {
      if (sweep.bytes_fetched() + bytes_read_ >= limits::walk_bytes_enough ||
          bytes_stored_ >= limits::compact_bytes_enough) {
        reply_.end = sweep.position();
        break;
      }
      Sweep::Part part;
      ZLOG_TRY(sweep.next(&part));
      ZLOG_TRY(part.stored == nullptr ? flush() : take(*part.stored));
    }
    ZLOG_TRY(flush());
    if (changed_) ZLOG_TRY(header_.save(object_));
    return reply_;
  }

 private:
  int take(const Stored& stored) {
    const auto first = std::lower_bound(positions_.begin(), positions_.end(), stored.span.first);
    const auto end = std::upper_bound(first, positions_.end(), stored.span.last);
    const std::vector<uint64_t> named(
        std::lower_bound(first, end, std::max(header_.trim_point, request_.start)),
        std::lower_bound(first, end, request_.end));
    Kept kept;
    ZLOG_TRY(decide(stored, named, &kept));
    if (kept.verdict == Verdict::kReplace) return replace(stored, kept);
    ZLOG_TRY(flush());
    if (kept.verdict == Verdict::kLeave || kept.gone == 0 || named.empty()) return 0;
    reply_.trimmed += kept.gone;
    changed_ = true;
    return layout_.trim(stored, named);
  }

  // Returns whether a position is trimmed or shall be.
  bool goes(uint64_t position, const std::vector<uint64_t>& named) const {
    return position < header_.trim_point ||
           std::binary_search(named.begin(), named.end(), position);
  }

  int decide(const Stored& stored, const std::vector<uint64_t>& named, Kept* kept) {
    const Record& record = stored.record;
    if (!record.holds_entries() && !record.sparse() && record.kind != RecordKind::kTrim) return 0;
    const bool within = stored.span.first >= request_.start && stored.span.last < request_.end;
    if (!named.empty()) kept->otherwise = Verdict::kTrim;
    kept->verdict = within && record.further.fields.empty() ? Verdict::kReplace : kept->otherwise;
    if (record.sparse()) sort_sparse(stored, named, kept);
    if (!record.holds_entries()) return 0;
    std::vector<uint32_t> stay;
    uint32_t largest = 0;
    const TagsReader tags(record.tags);
    uint64_t position = stored.span.first;
    for (uint32_t i = 0; i < record.count; i++, position = striping_.next(position)) {
      if (!record.written(i)) continue;
      if (goes(position, named)) {
        kept->gone++;
        kept->gone_bytes += record.bytes_of(i);
        continue;
      }
      largest = std::max(largest, record.bytes_of(i));
      kept->bytes += SparseBuilder::kBytes + record.bytes_of(i);
      for (const std::string_view tag : tags.of(i)) kept->bytes += 1 + tag.size();
      stay.push_back(i);
    }
    if (!stay.empty() && (record.compressed() || largest > limits::sparse_entry_bytes_max ||
                          !worthwhile(stored, kept->bytes))) {
      kept->verdict = kept->otherwise;
    }
    if (record.compressed() || stay.empty()) return 0;
    if (record.streamed() && kept->verdict != Verdict::kReplace) return 0;
    return fetch(stored, stay, tags, kept);
  }

  // Returns whether a sparse record of the remaining entries takes much less space than the record.
  // Space in the bytestream is cheaper, and counts less.
  static bool worthwhile(const Stored& stored, uint64_t bytes) {
    const uint64_t now = stored.value.bytes.size() + kKeyBytes;
    if (stored.record.streamed()) return bytes * 2 <= now + stored.record.stored_bytes();
    return bytes * 4 <= now * 3;
  }

  // Reads the entries that stay. Damaged data is not stored again, because another replica may have
  // the correct data.
  int fetch(const Stored& stored, const std::vector<uint32_t>& stay, const TagsReader& tags,
            Kept* kept) {
    const Record& record = stored.record;
    std::vector<std::string_view> data;
    ZLOG_TRY(read(stored, stay, &kept->data, &data));
    kept->bytes = 0;
    kept->names.reserve(stay.size());
    for (size_t at = 0; at < stay.size(); at++) {
      const uint32_t i = stay[at];
      const uint64_t position = striping_.after(stored.span.first, i);
      if (data[at].size() != record.bytes_of(i) ||
          entry_crc(position, data[at]) != record.crcs[i]) {
        kept->verdict = record.streamed() ? kept->otherwise : Verdict::kLeave;
        return 0;
      }
      std::string& names = kept->names.emplace_back();
      const std::vector<std::string_view> own = tags.of(i);
      for (const std::string_view tag : own) append_name(tag, &names);
      kept->add({i, record.origin.timestamp, record.origin.writer,
                 record.origin.number + record.numbers[i], record.crcs[i], names,
                 static_cast<uint8_t>(own.size()), data[at]});
    }
    return 0;
  }

  // Reads the data of some entries of a record, with only one read of the bytestream if the data is
  // small. `out` may point into `buffers`.
  int read(const Stored& stored, const std::vector<uint32_t>& wanted,
           std::vector<std::string>* buffers, std::vector<std::string_view>* out) {
    const Record& record = stored.record;
    const uint32_t from = record.begin_of(wanted.front());
    const uint32_t last = wanted.back();
    const bool at_once = !record.streamed() || record.ends[last] - from <= kReadOnce;
    std::string_view all;
    buffers->reserve(wanted.size());
    if (at_once) {
      ZLOG_TRY(layout_.data_of(stored, wanted.front(), last + 1, &buffers->emplace_back(), &all));
    }
    for (const uint32_t i : wanted) {
      std::string_view data = all.substr(std::min<size_t>(record.begin_of(i) - from, all.size()));
      if (!at_once) ZLOG_TRY(layout_.data_of(stored, i, i + 1, &buffers->emplace_back(), &data));
      out->push_back(data.substr(0, record.bytes_of(i)));
    }
    for (const std::string& buffer : *buffers) bytes_read_ += buffer.size();
    return 0;
  }

  void sort_sparse(const Stored& stored, const std::vector<uint64_t>& named, Kept* kept) const {
    each_entry(stored.record, [&](const SparseBuilder::Entry& entry) {
      const uint64_t position = striping_.after(stored.span.first, entry.index);
      if (goes(position, named)) {
        kept->gone++;
        kept->gone_bytes += entry.data.size();
      } else if (entry_crc(position, entry.data) != entry.crc) {
        kept->verdict = Verdict::kLeave;
      } else {
        kept->add(entry);
      }
    });
  }

  // Moves a record's entries into the sparse record that is being built.
  int replace(const Stored& stored, const Kept& kept) {
    const bool any = !left_.empty() || !kept.entries.empty();
    const bool full = !left_.empty() && left_.bytes() + kept.bytes > limits::sparse_bytes_max;
    const bool long_ =
        open_ && striping_.length({first_, stored.span.last}) > uint64_t{limits::entries_max};
    if (full || (any && long_)) ZLOG_TRY(flush());
    const bool comparable = stored.record.sparse() || stored.record.kind == RecordKind::kTrim;
    differs_ = differs_ || open_ || !comparable || kept.gone > 0;
    if (!open_) first_ = stored.span.first;
    open_ = true;
    if (records_ == 0) first_key_ = stored.key;
    last_key_ = stored.key;
    records_++;
    for (SparseBuilder::Entry entry : kept.entries) {
      const uint64_t position = striping_.after(stored.span.first, entry.index);
      if (!left_.empty() && left_.bytes() + entry.bytes() > limits::sparse_bytes_max) {
        ZLOG_TRY(put(striping_.before(position, 1)));
        first_ = position;
        differs_ = true;
      }
      entry.index = striping_.index({first_, position}, position);
      left_.add(entry);
    }
    last_ = stored.span.last;
    reply_.trimmed += kept.gone;
    if (comparable && kept.gone == 0) return 0;
    return layout_.give_back(stored, kept.gone, kept.gone_bytes);
  }

  // Stores the sparse record, unless it equals the stored one.
  int flush() {
    if (open_ && differs_) ZLOG_TRY(put(last_));
    left_ = SparseBuilder();
    records_ = 0;
    open_ = differs_ = false;
    return 0;
  }

  // Stores the sparse record for the positions up to `last`, in place of the records whose entries
  // it contains.
  int put(uint64_t last) {
    changed_ = true;
    if (records_ > 0) ZLOG_TRY(layout_.remove(first_key_, last_key_, records_));
    records_ = 0;
    bytes_stored_ += left_.bytes();
    const Span span = {first_, last};
    ZLOG_TRY(left_.empty() ? layout_.put_trimmed(span) : layout_.put_sparse(span, left_));
    left_ = SparseBuilder();
    return 0;
  }

  Object& object_;
  Header& header_;
  const Striping striping_;
  const CompactRequest& request_;
  Layout layout_;
  const std::vector<uint64_t> positions_;
  CompactReply reply_;
  bool changed_ = false;
  uint64_t bytes_read_ = 0;
  uint64_t bytes_stored_ = 0;

  // The sparse record that is being built, of consecutive positions.
  bool open_ = false;
  bool differs_ = false;  // from the stored record
  uint64_t first_ = 0;
  uint64_t last_ = 0;
  SparseBuilder left_;
  std::string first_key_;  // of the records that it is made of
  std::string last_key_;
  uint64_t records_ = 0;  // their number
};

}  // namespace

Result<TagsListReplyBuilder> tags_list(Object& object, const Header& header,
                                       const RangeRequest& request) {
  TagsListReplyBuilder reply;
  reply.end = request.end;
  if (!header.tagged) return reply;
  Sweep sweep(object, header, std::max(request.start, header.trim_point),
              std::min(request.end, header.records_end()));
  while (!sweep.done()) {
    reply.end = sweep.position();
    if (sweep.enough() || reply.count >= limits::entries_max || reply.tags.full()) return reply;
    Sweep::Part part;
    ZLOG_TRY(sweep.next(&part));
    if (part.stored == nullptr || !part.stored->record.holds_entries()) continue;
    const Record& record = part.stored->record;
    const TagsReader tags(record.tags);
    std::vector<uint32_t> tagged;
    for (uint32_t i = part.begin; record.tags.any() && i < part.end; i++) {
      if (record.written(i) && tags.count_of(i) > 0) tagged.push_back(i);
    }
    // One compact trims no more.
    if (reply.count + tagged.size() > limits::entries_max) return reply;
    for (const uint32_t i : tagged) {
      wire::append(&reply.positions, header.striping().after(part.first, i - part.begin));
    }
    reply.count += static_cast<uint32_t>(tagged.size());
    reply.tags.add(tags, tagged);
  }
  reply.end = request.end;
  return reply;
}

Result<CompactReply> compact(Object& object, Header& header, const CompactRequest& request) {
  ZLOG_TRY(header.check_thawed());
  if (!header.tagged) return CompactReply{{request.end}, 0};
  return Compaction(object, header, request).run();
}

}  // namespace zlog::stripe
