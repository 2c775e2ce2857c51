#include "cls_zlog/repair/repair.h"

#include "cls_zlog/head/directory.h"
#include "cls_zlog/head/head.h"
#include "cls_zlog/head/head_state.h"
#include "cls_zlog/repair/record.h"
#include "cls_zlog/stripe/header.h"

namespace zlog::repair {
namespace {

constexpr const char* kAttributes[] = {Header::kAttribute, head::Head::kAttribute,
                                       directory::kSequencer};

// A page more of them still fits a reply.
constexpr size_t kNamesEnough = limits::list_page_max - limits::page_records_max - 1;

bool is_attribute(std::string_view name) {
  for (const char* each : kAttributes) {
    if (name == each) return true;
  }
  return false;
}

int load(Object& object, const std::string& name, std::string* value) {
  if (!is_attribute(name)) return object.omap_get(name, value);
  const int r = object.attr_get(name, value);
  return r == -ENODATA ? -ENOENT : r;
}

// Records apart, no value has a payload, which the checksum would not cover.
bool intact(std::string_view name, std::string_view value) {
  Envelope stored;
  return unwrap(name, value, &stored) && stored.payload.empty();
}

// A key without which the object is damaged, where that can be told: the newest view's of a head.
std::string required_key(Object& object) {
  head::Head head;
  return head::Head::load(object, &head).code == 0 ? head::newest_key(head) : std::string();
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
  if (is_record(request.name)) return heal_record(object, request);
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
