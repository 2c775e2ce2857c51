#pragma once

#include <string_view>

#include "cls_zlog/base/limits.h"

namespace zlog {

// The name of a log, of a cursor or of a source of deliveries: 1 to 128 bytes of [A-Za-z0-9_.-],
// the first a letter, a digit or '_'. Object names and omap keys are made of it.
inline bool valid_name(std::string_view name) {
  const auto alnum = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (name.empty() || name.size() > limits::log_name_bytes_max) return false;
  if (!alnum(name.front())) return false;
  for (const char c : name) {
    if (!alnum(c) && c != '.' && c != '-') return false;
  }
  return true;
}

// A sequencer's address: up to 256 printable ASCII characters without spaces; may be empty (none).
inline bool valid_address(std::string_view address) {
  if (address.size() > limits::address_bytes_max) return false;
  for (const char c : address) {
    if (c <= 0x20 || c >= 0x7f) return false;
  }
  return true;
}

}  // namespace zlog
