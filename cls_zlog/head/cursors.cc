#include "cls_zlog/head/cursors.h"

#include <algorithm>
#include <cerrno>
#include <map>

#include "cls_zlog/base/codes.h"
#include "cls_zlog/wire/cursor_messages.h"
#include "cls_zlog/base/envelope.h"
#include "cls_zlog/head/head_state.h"
#include "cls_zlog/base/limits.h"
#include "cls_zlog/wire/messages.h"
#include "cls_zlog/base/names.h"
#include "cls_zlog/wire/wire.h"

namespace zlog::cursors {
namespace {

constexpr std::string_view kPrefix = "c.";

std::string key_of(std::string_view name) { return std::string(kPrefix).append(name); }

// The head of the log that the request is about: not that of another one which got its name.
int load_head(Object& object, uint64_t log_id, head::Head* out) {
  if (const int r = head::Head::load(object, out); r < 0) return r;
  return out->log_id == log_id ? 0 : -ENOENT;
}

int save(Object& object, const std::string& key, const CursorReadReply& cursor) {
  std::string body;
  wire::Writer(&body).u64(cursor.position).u64(cursor.created).u64(cursor.updated);
  return object.omap_set(key, wrap(key, body));
}

int decode(const std::string& key, std::string_view value, CursorReadReply* out) {
  Unwrapped stored;
  if (!unwrap(key, value, &stored) || !stored.payload.empty()) return -EIO;
  wire::Reader reader(stored.body);
  out->position = reader.u64();
  out->created = reader.u64();
  out->updated = reader.u64();
  return reader.done() && out->position <= limits::position_max + 1 ? 0 : -EIO;
}

// -ENOENT: no such cursor.
int load(Object& object, const std::string& key, CursorReadReply* out) {
  std::string value;
  const int r = object.omap_get(key, &value);
  return r < 0 ? r : decode(key, value, out);
}

// Up to `count_max` cursors whose keys are above `after`, by key.
int load_page(Object& object, const std::string& after, uint64_t count_max,
              std::map<std::string, CursorReadReply>* out, bool* more) {
  Page page;
  if (const int r = object.omap_list(after, std::string(kPrefix), count_max, &page, more); r < 0) {
    return r;
  }
  if (page.empty() && *more) return -EIO;
  for (const auto& [key, value] : page) {
    if (const int r = decode(key, value.bytes, &(*out)[key]); r < 0) return r;
  }
  return 0;
}

// Whether the log has room for one more.
int check_count(Object& object) {
  std::string after(kPrefix);
  bool more = true;
  uint64_t count = 0;
  while (more) {
    Page page;
    const int r = object.omap_list(after, std::string(kPrefix), limits::page_records_max, &page,
                                   &more);
    if (r < 0) return r;
    if (page.empty()) return more ? -EIO : 0;
    count += page.size();
    if (count >= limits::cursors_max) return -EMFILE;
    after = page.rbegin()->first;
  }
  return 0;
}

int refuse(int code, uint64_t position, std::string* out) {
  *out = encode_position_reply(position);
  return code;
}

int advance(Object& object, const std::string& key, const CursorCommitRequest& request,
            std::string* out) {
  CursorReadReply cursor;
  const int r = load(object, key, &cursor);
  if (r < 0) return r == -ENOENT ? kNotWritten : r;
  if (request.position < cursor.position) return refuse(kReadOnly, cursor.position, out);
  cursor.position = request.position;
  cursor.updated = request.timestamp;
  return save(object, key, cursor);
}

// A damaged cursor can be set, which repairs it, and removed.
int create_or_set(Object& object, const std::string& key, const CursorCommitRequest& request,
                  uint64_t trim_point, std::string* out) {
  CursorReadReply cursor;
  const int r = load(object, key, &cursor);
  if (request.mode == CommitMode::kCreate && r != -ENOENT) {
    return r < 0 ? r : refuse(kReadOnly, cursor.position, out);
  }
  if (r < 0 && r != -ENOENT && r != -EIO) return r;
  if (request.position < trim_point) return refuse(kInvalidated, trim_point, out);
  if (r == -ENOENT) {
    if (const int full = check_count(object); full < 0) return full;
  }
  if (r < 0) cursor.created = request.timestamp;
  cursor.position = request.position;
  cursor.updated = request.timestamp;
  return save(object, key, cursor);
}

}  // namespace

int commit(Object& object, std::string_view in, std::string* out) {
  CursorCommitRequest request;
  if (const int r = CursorCommitRequest::decode(in, &request); r < 0) return r;
  head::Head head;
  if (const int r = load_head(object, request.log_id, &head); r < 0) return r;
  const std::string key = key_of(request.name);
  if (request.mode == CommitMode::kAdvance) return advance(object, key, request, out);
  return create_or_set(object, key, request, head.trim_point, out);
}

int read(Object& object, std::string_view in, std::string* out) {
  CursorRequest request;
  if (const int r = CursorRequest::decode(in, &request); r < 0) return r;
  head::Head head;
  if (const int r = load_head(object, request.log_id, &head); r < 0) return r;
  CursorReadReply cursor;
  const int r = load(object, key_of(request.name), &cursor);
  if (r < 0) return r == -ENOENT ? kNotWritten : r;
  *out = cursor.encode();
  return kOk;
}

int list(Object& object, std::string_view in, std::string* out) {
  CursorListRequest request;
  if (const int r = CursorListRequest::decode(in, &request); r < 0) return r;
  head::Head head;
  if (const int r = load_head(object, request.log_id, &head); r < 0) return r;
  std::map<std::string, CursorReadReply> found;
  std::string after = key_of(request.after);
  CursorListReply reply;
  reply.more = true;
  while (reply.more && found.size() < request.count_max) {
    const uint64_t left = request.count_max - found.size();
    if (const int r = load_page(object, after, left, &found, &reply.more); r < 0) return r;
    if (!found.empty()) after = found.rbegin()->first;
  }
  reply.cursors.reserve(found.size());
  for (const auto& [key, cursor] : found) {
    reply.cursors.push_back({std::string_view(key).substr(kPrefix.size()), cursor});
  }
  *out = reply.encode();
  return kOk;
}

int remove(Object& object, std::string_view in, std::string*) {
  CursorRequest request;
  if (const int r = CursorRequest::decode(in, &request); r < 0) return r;
  head::Head head;
  if (const int r = load_head(object, request.log_id, &head); r < 0) return r;
  const std::string key = key_of(request.name);
  std::string value;
  const int r = object.omap_get(key, &value);
  if (r < 0) return r == -ENOENT ? kNotWritten : r;
  return object.omap_remove(key);
}

int lowest(Object& object, std::optional<uint64_t>* out) {
  out->reset();
  std::string after(kPrefix);
  bool more = true;
  while (more) {
    std::map<std::string, CursorReadReply> page;
    const int r = load_page(object, after, limits::page_records_max, &page, &more);
    if (r < 0) return r;
    if (page.empty()) break;
    for (const auto& [key, cursor] : page) {
      *out = std::min(out->value_or(cursor.position), cursor.position);
    }
    after = page.rbegin()->first;
  }
  return 0;
}

}  // namespace zlog::cursors
