#pragma once

#include <lmdb.h>

#include <csetjmp>

namespace zlog {

// LMDB ends the process where pages contradict each other. A call that is made through lmdb_call
// comes back instead. What was under way is left in the middle: a transaction that reads can be
// ended, one that writes can't, since LMDB keeps some of it on the stack of the call.
class LmdbAssertion {
 public:
  // For mdb_env_set_assert.
  static void fail(MDB_env*, const char*) {
    if (state_.call == nullptr) return;
    state_.failed = true;
    std::longjmp(*state_.call, 1);  // NOLINT(modernize-avoid-setjmp-longjmp): out of C
  }

  static bool failed() { return state_.failed; }

  // Whether one has failed on this thread since the last time.
  static bool take() {
    const bool failed = state_.failed;
    state_.failed = false;
    return failed;
  }

 private:
  template <typename Call>
  friend int lmdb_call(const Call& call);

  struct State {
    std::jmp_buf* call;
    bool failed;
  };
  static inline thread_local State state_{};
};

// What the call answers; MDB_CORRUPTED where an assertion failed in it. Nothing of C++ may need to
// be destroyed in it.
template <typename Call>
int lmdb_call(const Call& call) {
  std::jmp_buf here;
  if (setjmp(here) != 0) {  // NOLINT(modernize-avoid-setjmp-longjmp)
    LmdbAssertion::state_.call = nullptr;
    return MDB_CORRUPTED;
  }
  LmdbAssertion::state_.call = &here;
  const int result = call();
  LmdbAssertion::state_.call = nullptr;
  return result;
}

}  // namespace zlog
