#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cls_zlog/base/object.h"
#include "cls_zlog/base/result.h"
#include "cls_zlog/base/striping.h"
#include "cls_zlog/stripe/header.h"

// The keys of records, chunks and filters, which cover consecutive positions of an object. A key is
// a prefix, the last position in 16 hex digits, a dot, and the number of positions in hex. The
// record that covers position p is therefore found at the first key >= p.
namespace zlog {

std::string span_key(std::string_view prefix, const Span& span, const Striping& striping);

// Returns a string that sorts after the keys of all spans that end below `position`, and before the
// keys of all other spans.
std::string span_key_bound(std::string_view prefix, uint64_t position);

// Sets `out` to the positions of a key. Returns false if the key is malformed or cannot belong to
// this object.
bool parse_span_key(std::string_view prefix, std::string_view key, const Striping& striping,
                    uint32_t residue, Span* out);

constexpr uint64_t kPageSpans = 256;

// Calls use(key, value, span, &more) for each key with a prefix from the one at position `begin`
// on, until `use` clears `more`. `span` is nullptr if the key is malformed.
template <typename Use>
int each_span(Object& object, const Header& header, const std::string& prefix, uint64_t begin,
              const Use& use) {
  std::string after = span_key_bound(prefix, begin);
  for (bool more = true; more;) {
    Page page;
    ZLOG_TRY(object.omap_list(after, prefix, kPageSpans, &page, &more));
    if (page.empty() && more) return -EIO;
    for (const auto& [key, value] : page) {
      after = key;
      Span span;
      const bool parsed = parse_span_key(prefix, key, header.striping(), header.residue, &span);
      bool next = true;
      ZLOG_TRY(use(key, value.bytes, parsed ? &span : nullptr, &next));
      if (!next) return 0;
    }
  }
  return 0;
}

}  // namespace zlog
