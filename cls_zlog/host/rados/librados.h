#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <type_traits>

namespace zlog {

// The part of librados' C interface that zlog uses. It is declared here and loaded at run time, so
// that one build works with and without Ceph. New releases of librados add functions but change
// none. tests/cls/librados_test.cc compares these declarations with Ceph's header.

using rados_t = void*;
using rados_ioctx_t = void*;
using rados_completion_t = void*;
using rados_watchcb2_t = void (*)(void* argument, uint64_t notify_id, uint64_t cookie,
                                  uint64_t notifier, void* data, size_t size);
using rados_watcherrcb_t = void (*)(void* argument, uint64_t cookie, int error);
using rados_callback_t = void (*)(rados_completion_t completion, void* argument);
using rados_read_op_t = void*;
using rados_write_op_t = void*;
using rados_object_list_cursor = void*;
using rados_xattrs_iter_t = void*;
using rados_omap_iter_t = void*;

struct RadosListItem {
  size_t oid_length;
  char* oid;
  size_t nspace_length;
  char* nspace;
  size_t locator_length;
  char* locator;
};

// LIBRADOS_OPERATION_…
enum RadosFlags : int {
  kBalanceReads = 1,
  kFullForce = 128,
  kReturnVec = 1024,
};

// LIBRADOS_OP_FLAG_…, of one step of an operation
constexpr int kFailOk = 2;

// The names of the functions, without rados_, and their types.
#define ZLOG_LIBRADOS(X)                                                                           \
  X(create, int(rados_t*, const char* client))                                                     \
  X(conf_read_file, int(rados_t, const char* path))                                                \
  X(conf_parse_env, int(rados_t, const char* variable))                                            \
  X(conf_get, int(rados_t, const char* option, char* value, size_t size))                          \
  X(conf_set, int(rados_t, const char* option, const char* value))                                 \
  X(connect, int(rados_t))                                                                         \
  X(shutdown, void(rados_t))                                                                       \
  X(cluster_fsid, int(rados_t, char* fsid, size_t size))                                           \
  X(get_instance_id, uint64_t(rados_t))                                                            \
  X(get_min_compatible_osd, int(rados_t, int8_t* release))                                         \
  X(service_register, int(rados_t, const char* service, const char* daemon, const char* metadata)) \
  X(service_update_status, int(rados_t, const char* status))                                       \
  X(mon_command,                                                                                   \
    int(rados_t, const char** command, size_t commands, const char* input, size_t input_size,      \
        char** reply, size_t* reply_size, char** words, size_t* words_size))                       \
  X(buffer_free, void(char*))                                                                      \
  X(ioctx_create, int(rados_t, const char* pool, rados_ioctx_t*))                                  \
  X(ioctx_create2, int(rados_t, int64_t pool, rados_ioctx_t*))                                     \
  X(ioctx_destroy, void(rados_ioctx_t))                                                            \
  X(ioctx_get_cluster, rados_t(rados_ioctx_t))                                                     \
  X(ioctx_get_id, int64_t(rados_ioctx_t))                                                          \
  X(ioctx_get_namespace, int(rados_ioctx_t, char* nspace, unsigned size))                          \
  X(ioctx_set_namespace, void(rados_ioctx_t, const char* nspace))                                  \
  X(ioctx_locator_set_key, void(rados_ioctx_t, const char* key))                                   \
  X(object_list_begin, rados_object_list_cursor(rados_ioctx_t))                                    \
  X(object_list_end, rados_object_list_cursor(rados_ioctx_t))                                      \
  X(object_list_is_end, int(rados_ioctx_t, rados_object_list_cursor))                              \
  X(object_list_cursor_cmp,                                                                        \
    int(rados_ioctx_t, rados_object_list_cursor, rados_object_list_cursor))                        \
  X(object_list_cursor_free, void(rados_ioctx_t, rados_object_list_cursor))                        \
  X(object_list_slice,                                                                             \
    void(rados_ioctx_t, rados_object_list_cursor begin, rados_object_list_cursor end,              \
         size_t slice, size_t slices, rados_object_list_cursor* slice_begin,                       \
         rados_object_list_cursor* slice_end))                                                     \
  X(object_list,                                                                                   \
    int(rados_ioctx_t, rados_object_list_cursor begin, rados_object_list_cursor end, size_t items, \
        const char* filter, size_t filter_size, RadosListItem*, rados_object_list_cursor* next))   \
  X(object_list_free, void(size_t items, RadosListItem*))                                          \
  X(aio_create_completion2, int(void* argument, rados_callback_t, rados_completion_t*))            \
  X(aio_get_return_value, int(rados_completion_t))                                                 \
  X(aio_get_version, uint64_t(rados_completion_t))                                                 \
  X(aio_release, void(rados_completion_t))                                                         \
  X(aio_cancel, int(rados_ioctx_t, rados_completion_t))                                            \
  X(create_read_op, rados_read_op_t())                                                             \
  X(release_read_op, void(rados_read_op_t))                                                        \
  X(read_op_exec,                                                                                  \
    void(rados_read_op_t, const char* class_name, const char* method, const char* input,           \
         size_t input_size, char** reply, size_t* reply_size, int* method_result))                 \
  X(read_op_set_flags, void(rados_read_op_t, int flags))                                           \
  X(read_op_getxattrs, void(rados_read_op_t, rados_xattrs_iter_t*, int* result))                   \
  X(getxattrs_next, int(rados_xattrs_iter_t, const char** name, const char** value, size_t* size)) \
  X(getxattrs_end, void(rados_xattrs_iter_t))                                                      \
  X(read_op_omap_get_vals2,                                                                        \
    void(rados_read_op_t, const char* after, const char* prefix, uint64_t count,                   \
         rados_omap_iter_t*, unsigned char* more, int* result))                                    \
  X(read_op_omap_get_vals_by_keys2, void(rados_read_op_t, const char* const* keys, size_t count,   \
                                         const size_t* sizes, rados_omap_iter_t*, int* result))    \
  X(omap_get_next2,                                                                                \
    int(rados_omap_iter_t, char** key, char** value, size_t* key_size, size_t* value_size))        \
  X(omap_get_end, void(rados_omap_iter_t))                                                         \
  X(read_op_read,                                                                                  \
    void(rados_read_op_t, uint64_t offset, size_t size, char* data, size_t* there, int* result))   \
  X(read_op_operate, int(rados_read_op_t, rados_ioctx_t, const char* object, int flags))           \
  X(aio_read_op_operate,                                                                           \
    int(rados_read_op_t, rados_ioctx_t, rados_completion_t, const char* object, int flags))        \
  X(create_write_op, rados_write_op_t())                                                           \
  X(release_write_op, void(rados_write_op_t))                                                      \
  X(write_op_exec, void(rados_write_op_t, const char* class_name, const char* method,              \
                        const char* input, size_t input_size, int* method_result))                 \
  X(write_op_assert_version, void(rados_write_op_t, uint64_t version))                             \
  X(write_op_create, void(rados_write_op_t, int exclusive, const char* category))                  \
  X(write_op_remove, void(rados_write_op_t))                                                       \
  X(write_op_setxattr, void(rados_write_op_t, const char* name, const char* value, size_t size))   \
  X(write_op_omap_set2, void(rados_write_op_t, const char* const* keys, const char* const* values, \
                             const size_t* key_sizes, const size_t* value_sizes, size_t count))    \
  X(write_op_omap_rm_keys2,                                                                        \
    void(rados_write_op_t, const char* const* keys, const size_t* sizes, size_t count))            \
  X(write_op_omap_rm_range2, void(rados_write_op_t, const char* begin, size_t begin_size,          \
                                  const char* end, size_t end_size))                               \
  X(write_op_write, void(rados_write_op_t, const char* data, size_t size, uint64_t offset))        \
  X(write_op_zero, void(rados_write_op_t, uint64_t offset, uint64_t size))                         \
  X(write_op_omap_set, void(rados_write_op_t, const char* const* keys, const char* const* values,  \
                            const size_t* sizes, size_t count))                                    \
  X(write_op_operate,                                                                              \
    int(rados_write_op_t, rados_ioctx_t, const char* object, time_t* mtime, int flags))            \
  X(aio_write_op_operate, int(rados_write_op_t, rados_ioctx_t, rados_completion_t,                 \
                              const char* object, time_t* mtime, int flags))                       \
  X(append, int(rados_ioctx_t, const char* object, const char* data, size_t size))                 \
  X(aio_append,                                                                                    \
    int(rados_ioctx_t, const char* object, rados_completion_t, const char* data, size_t size))     \
  X(aio_read, int(rados_ioctx_t, const char* object, rados_completion_t, char* data, size_t size,  \
                  uint64_t offset))                                                                \
  X(remove, int(rados_ioctx_t, const char* object))                                                \
  X(aio_watch2, int(rados_ioctx_t, const char* object, rados_completion_t, uint64_t* cookie,       \
                    rados_watchcb2_t, rados_watcherrcb_t, uint32_t timeout_s, void* argument))     \
  X(aio_unwatch, int(rados_ioctx_t, uint64_t cookie, rados_completion_t))                          \
  X(notify_ack, int(rados_ioctx_t, const char* object, uint64_t notify_id, uint64_t cookie,        \
                    const char* data, int size))                                                   \
  X(aio_notify, int(rados_ioctx_t, const char* object, rados_completion_t, const char* data,       \
                    int size, uint64_t timeout_ms, char** reply, size_t* reply_size))

struct Librados {
#define ZLOG_MEMBER(name, ...) std::add_pointer_t<__VA_ARGS__> name;
  ZLOG_LIBRADOS(ZLOG_MEMBER)
#undef ZLOG_MEMBER
};

// Loads librados.so.2 once per process, and sets `what` to its path. Returns -ENOENT with the
// loader's error in `what`, or -ENOSYS with the functions that the library lacks.
int load_librados(std::string* what);

// Returns the functions. Valid once load_librados() has returned 0.
const Librados& librados();

// A cluster, an I/O context or a cursor of librados. Its last user closes it.
using RadosHandle = std::shared_ptr<void>;

// An operation that has not been started. librados copies it at the start.
using RadosOperation = std::unique_ptr<void, void (*)(void*)>;
inline RadosOperation new_read_op() {
  return {librados().create_read_op(), librados().release_read_op};
}
inline RadosOperation new_write_op() {
  return {librados().create_write_op(), librados().release_write_op};
}

}  // namespace zlog
