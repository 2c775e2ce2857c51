#include "cls_zlog/host/rados/listing.h"

#include <cerrno>
#include <charconv>
#include <vector>

namespace zlog {
namespace {

// librados lists a pool's objects in the order of their bit-reversed 32-bit hashes, which are
// called places here. The C interface cannot tell a cursor's place, but it can make a cursor for a
// place, as the end of one of many equal slices of the pool, and compare cursors.
constexpr uint64_t kPlaces = uint64_t{1} << 32;

class Cursors {
 public:
  explicit Cursors(rados_ioctx_t io)
      : io_(io), begin_(own(librados().object_list_begin(io))), end_(end()) {}

  RadosHandle end() const { return own(librados().object_list_end(io_)); }

  RadosHandle at(uint64_t place) const {
    const RadosHandle from = end(), to = end();  // librados writes to existing cursors
    void *from_cursor = from.get(), *to_cursor = to.get();
    librados().object_list_slice(io_, begin_.get(), end_.get(), place, kPlaces, &from_cursor,
                                 &to_cursor);
    return from;
  }

  // The highest place that is not after the cursor; kPlaces at the end.
  uint64_t place_of(const RadosHandle& cursor) const {
    if (librados().object_list_is_end(io_, cursor.get()) != 0) return kPlaces;
    uint64_t place = 0;
    for (uint64_t step = kPlaces / 2; step > 0; step /= 2) {
      const RadosHandle there = at(place + step);
      if (librados().object_list_cursor_cmp(io_, there.get(), cursor.get()) <= 0) place += step;
    }
    return place;
  }

  // Appends up to Listing::kObjectsMax objects' names and moves the cursor after them.
  int list(std::string_view prefix, RadosHandle* cursor, std::vector<std::string>* names) const {
    std::vector<RadosListItem> items(Listing::kObjectsMax);
    const RadosHandle next = end();
    void* next_cursor = next.get();
    const int count = librados().object_list(io_, cursor->get(), end_.get(), items.size(), nullptr,
                                             0, items.data(), &next_cursor);
    if (count < 0) return count;
    for (int i = 0; i < count; i++) {
      const std::string_view name(items[i].oid, items[i].oid_length);
      if (starts_with(name, prefix)) names->emplace_back(name);
    }
    librados().object_list_free(items.size(), items.data());
    *cursor = next;
    return 0;
  }

 private:
  RadosHandle own(rados_object_list_cursor cursor) const {
    return {cursor, [io = io_](void* old) { librados().object_list_cursor_free(io, old); }};
  }

  rados_ioctx_t io_;
  const RadosHandle begin_, end_;
};

}  // namespace

int list_page(rados_ioctx_t io, std::string_view prefix, std::string_view after, Listing* page) {
  uint64_t first = 0;
  if (!after.empty()) {
    const char* const end = after.data() + after.size();
    const auto [stop, error] = std::from_chars(after.data(), end, first);
    if (stop != end || error != std::errc() || first >= kPlaces) return -EINVAL;
  }
  const Cursors cursors(io);
  RadosHandle cursor = cursors.at(first);
  uint64_t place = first;
  while (place == first) {  // again if one place has more objects than a page
    if (const int error = cursors.list(prefix, &cursor, &page->names)) return error;
    place = cursors.place_of(cursor);
  }
  if (place < kPlaces) page->next = std::to_string(place);
  return 0;
}

}  // namespace zlog
