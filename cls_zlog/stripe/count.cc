#include <algorithm>

#include "cls_zlog/stripe/scan.h"

namespace zlog::stripe {
namespace {

// Adds the entries of a part of a record.
void add(const Sweep::Part& part, const Striping& striping, CountReply* reply, BlockTally* blocks) {
  const Record& record = part.stored->record;
  reply->lost = reply->lost || record.kind == RecordKind::kLost;
  if (!record.holds_entries()) return;
  const uint64_t before = reply->bytes;
  const uint64_t at = record.origin.timestamp;
  for (uint32_t i = part.begin; i < part.end; i++) {
    if (!record.written(i)) continue;
    const uint64_t position = striping.after(part.first, i - part.begin);
    reply->entries++;
    reply->bytes += record.bytes_of(i);
    reply->last = position;
    if (!reply->oldest || at < *reply->oldest) {
      reply->oldest = at;
      reply->oldest_at = position;
    }
    if (!reply->newest || at > *reply->newest) {
      reply->newest = at;
      reply->newest_at = position;
    }
  }
  if (!record.compressed() || !record.any_written()) return;
  blocks->data += reply->bytes - before;
  blocks->bytes += record.block.stored_bytes;
}

}  // namespace

int tally(Object& object, const Header& header, uint64_t start, uint64_t end, CountReply* reply,
          BlockTally* blocks) {
  reply->end = end;
  Sweep sweep(object, header, start, end);
  for (uint32_t records = 0; !sweep.done();) {
    const bool enough = records == limits::count_records_max || sweep.enough();
    if (enough && sweep.position() < header.records_end()) {
      reply->end = sweep.position();
      return 0;
    }
    Sweep::Part part;
    ZLOG_TRY(sweep.next(&part));
    if (part.stored != nullptr) {
      records++;
      add(part, header.striping(), reply, blocks);
      continue;
    }
    const uint64_t hole = header.first_at(header.holes.next(part.first));
    if (hole <= part.last && !reply->hole) reply->hole = hole;
    reply->lost = reply->lost || header.lost(part.first, part.last + 1);
  }
  return 0;
}

Result<CountReply> count(Object& object, const Header& header, const RangeRequest& request) {
  CountReply reply;
  const uint64_t start = std::max(request.start, header.trim_point);
  BlockTally blocks;
  ZLOG_TRY(tally(object, header, start, request.end, &reply, &blocks));
  return reply;
}

}  // namespace zlog::stripe
