#include "cls_zlog/methods.h"

#include <cerrno>
#include <type_traits>

#include "cls_zlog/base/limits.h"
#include "cls_zlog/method_table.h"
#include "cls_zlog/wire/frame.h"

namespace zlog {
namespace {

// The reply of a refusal is its number. A negative errno has no reply.
int refuse(const Failure& failure, std::string* out) {
  if (failure.code > 0) wire::encode(RefusalReply{failure.number}, out);
  return failure.code;
}

template <auto handler, typename Reply, typename Request>
int run(Result<Reply> (*)(Object&, const Request&), Object& object, std::string_view in,
        std::string* out) {
  if (in.size() > limits::request_bytes_max) return -EINVAL;
  Request request;
  const Failure malformed =
      wire::failure_of(wire::decode(in, &request), -EINVAL, {kRequestTooNew, wire::compat_of(in)});
  if (malformed.code != 0) return refuse(malformed, out);
  const Result<Reply> result = handler(object, request);
  if (result.failure.code != 0) return refuse(result.failure, out);
  if constexpr (std::is_same_v<MessageOf<Reply>, Reply>) {
    wire::encode(result.reply, out);
  } else {
    result.reply.encode(out);
  }
  return kOk;
}

template <auto handler>
int call(Object& object, std::string_view in, std::string* out) {
  return run<handler>(handler, object, in, out);
}

template <auto handler>
Method method_of(Handler<handler>, const char* name, int flags) {
  return {name, flags, call<handler>};
}

}  // namespace

const std::vector<Method>& methods() {
  static const std::vector<Method> all = [] {
    std::vector<Method> table;
    each_method([&](auto handler, const char* name, int flags) {
      table.push_back(method_of(handler, name, flags));
    });
    return table;
  }();
  return all;
}

const Method* find_method(std::string_view name) {
  for (const Method& method : methods()) {
    if (name == method.name) return &method;
  }
  return nullptr;
}

}  // namespace zlog
