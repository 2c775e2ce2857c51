// Compares the declarations of librados' functions with Ceph's own header, where that is installed.
// It does so as it is compiled.
#include "cls_zlog/host/rados/librados.h"

#include <cstdio>

#if __has_include(<rados/librados.h>)
#include <rados/librados.h>

#include <type_traits>

namespace {

// A type as the header has it: it knows items of a listing by a name of its own.
template <typename T>
struct Theirs {
  using type = T;
};
template <>
struct Theirs<zlog::RadosListItem*> {
  using type = rados_object_list_item*;
};
template <typename Result, typename... Parameters>
struct Theirs<Result (*)(Parameters...)> {
  using type = Result (*)(typename Theirs<Parameters>::type...);
};

#define SAME_FUNCTION(name, ...)                                                             \
  static_assert(                                                                             \
      std::is_same_v<Theirs<decltype(zlog::Librados::name)>::type, decltype(&rados_##name)>, \
      "rados_" #name);
ZLOG_LIBRADOS(SAME_FUNCTION)

#define SAME_MEMBER(name)                                                                      \
  static_assert(offsetof(zlog::RadosListItem, name) == offsetof(rados_object_list_item, name), \
                #name);
SAME_MEMBER(oid_length)
SAME_MEMBER(oid)
SAME_MEMBER(nspace_length)
SAME_MEMBER(nspace)
SAME_MEMBER(locator_length)
SAME_MEMBER(locator)
static_assert(sizeof(zlog::RadosListItem) == sizeof(rados_object_list_item));

static_assert(int{zlog::kBalanceReads} == int{LIBRADOS_OPERATION_BALANCE_READS});
static_assert(zlog::kFailOk == int{LIBRADOS_OP_FLAG_FAILOK});
static_assert(int{zlog::kFullForce} == int{LIBRADOS_OPERATION_FULL_FORCE});
static_assert(int{zlog::kReturnVec} == int{LIBRADOS_OPERATION_RETURNVEC});

}  // namespace

int main() { std::puts("compared"); }
#else
int main() { std::puts("no rados/librados.h"); }
#endif
