#include "cls_zlog/stripe/sparse.h"

#include "cls_zlog/base/limits.h"
#include "cls_zlog/wire/envelope.h"

namespace zlog {

Tags tags_of(const SparseEntries& left, uint32_t i, const std::vector<uint32_t>& name_begins) {
  static const std::string ids = [] {
    std::string made;
    for (uint32_t id = 0; id < limits::entry_tags_max; id++) wire::append(&made, id);
    return made;
  }();
  if (left.tag_counts[i] == 0) return {};
  return {left.tag_names.substr(name_begins[i], name_begins[i + 1] - name_begins[i]),
          {left.tag_counts.bytes(i, 1).data(), 1},
          {ids.data(), left.tag_counts[i]}};
}

void each_entry(const Record& record, const std::function<void(const SparseBuilder::Entry&)>& use) {
  const SparseEntries& left = record.left;
  const std::vector<uint32_t> names = left.name_begins();
  for (uint32_t i = 0; i < left.count; i++) {
    use({left.places[i], left.timestamps[i], left.writer_of(i), left.numbers[i], left.crcs[i],
         left.tag_names.substr(names[i], names[i + 1] - names[i]), left.tag_counts[i],
         record.data.substr(left.begin_of(i), left.bytes_of(i))});
  }
}

void SparseBuilder::add(const Entry& entry) {
  count_++;
  wire::append(&places_, entry.place);
  wire::append(&timestamps_, entry.timestamp);
  writers_.append(entry.writer);
  wire::append(&numbers_, entry.number);
  data_.append(entry.data);
  wire::append(&ends_, static_cast<uint32_t>(data_.size()));
  wire::append(&crcs_, entry.crc);
  tag_names_.append(entry.tag_names);
  wire::append(&tag_counts_, entry.tag_count);
}

std::string SparseBuilder::encode(std::string_view key) const {
  Record record;
  record.kind = RecordKind::kSparse;
  const uint32_t count = count_;
  record.left = {count,
                 {places_.data(), count},
                 {timestamps_.data(), count},
                 writers_,
                 {numbers_.data(), count},
                 {ends_.data(), count},
                 {crcs_.data(), count},
                 tag_names_,
                 {tag_counts_.data(), count}};
  std::string fields;
  wire::Encoder encoder(&fields);
  record.each(encoder);
  return wrap(key, wire::versions_of(record), fields, data_);
}

}  // namespace zlog
