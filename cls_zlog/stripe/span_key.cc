#include "cls_zlog/stripe/span_key.h"

#include <charconv>
#include <system_error>

#include "cls_zlog/base/hex.h"

namespace zlog {
namespace {

constexpr size_t kPositionDigits = 16;

bool parse_hex(std::string_view digits, uint64_t* out) {
  const char* const end = digits.data() + digits.size();
  const auto [read, error] = std::from_chars(digits.data(), end, *out, 16);
  return error == std::errc() && read == end;
}

}  // namespace

std::string span_key(std::string_view prefix, const Span& span, const Striping& striping) {
  return span_key_bound(prefix, span.last) + '.' + hex(striping.length(span), 1);
}

std::string span_key_bound(std::string_view prefix, uint64_t position) {
  return std::string(prefix) + hex(position, kPositionDigits);
}

bool parse_span_key(std::string_view prefix, std::string_view key, const Striping& striping,
                    uint32_t residue, Span* out) {
  const size_t dot = prefix.size() + kPositionDigits;
  if (key.size() <= dot + 1 || key[dot] != '.') return false;
  uint64_t last = 0;
  uint64_t length = 0;
  if (!parse_hex(key.substr(prefix.size(), kPositionDigits), &last)) return false;
  if (!parse_hex(key.substr(dot + 1), &length) || length == 0) return false;
  if (last > limits::position_max || striping.residue(last) != residue) return false;
  if (length - 1 > striping.rank(last)) return false;
  *out = {striping.before(last, length - 1), last};
  return key == span_key(prefix, *out, striping);
}

}  // namespace zlog
