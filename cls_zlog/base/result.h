#pragma once

#include <cstdint>
#include <utility>

#include "cls_zlog/base/codes.h"

namespace zlog {

// Why a call failed: a negative errno, or a Code with its number. Code 0 means that it succeeded.
struct Failure {
  int code = 0;
  uint64_t number = 0;

  operator int() const { return code; }
};

inline Failure failure_of(int code) { return {code, 0}; }
inline Failure failure_of(const Failure& failure) { return failure; }

// Returns from a function that returns an int, a Failure or a Result, if `call` has failed.
#define ZLOG_TRY(call)                                             \
  do {                                                             \
    const ::zlog::Failure zlog_failure = ::zlog::failure_of(call); \
    if (zlog_failure.code != 0) return zlog_failure;               \
  } while (false)

// The result of a method: its reply, or why it failed.
template <typename Reply>
struct Result {
  Result(Reply value) : reply(std::move(value)) {}
  Result(const Failure& why) : failure(why) {}

  Failure failure;
  Reply reply;
};

}  // namespace zlog
