#include "cls_zlog/version.h"

#include <type_traits>
#include <vector>

#include "cls_zlog/head/head_state.h"
#include "cls_zlog/method_table.h"
#include "cls_zlog/stripe/header.h"
#include "cls_zlog/stripe/record.h"
#include "cls_zlog/wire/view.h"

namespace zlog {
namespace {

// Counts methods, and the fields of their messages.
class Count {
 public:
  template <auto handler>
  void operator()(Handler<handler>, const char*, int) {
    number_++;
    messages_of(handler);
  }
  template <typename T>
  void operator()(const char*, const T&, const wire::Bounds& = wire::any()) {
    number_++;
  }
  template <typename T>
  void operator()(const char*, const std::vector<T>&, const wire::Bounds& = wire::any()) {
    number_++;
    if constexpr (!std::is_same_v<T, std::string>) fields_of<T>();
  }
  uint32_t number() const { return number_; }

 private:
  template <typename Reply, typename Request>
  void messages_of(Result<Reply> (*)(Object&, const Request&)) {
    fields_of<Request>();
    fields_of<MessageOf<Reply>>();
  }
  template <typename T>
  void fields_of() {
    T message;
    message.each(*this);
  }

  uint32_t number_ = 0;
};

template <typename T>
Format format_of(const char* name) {
  return {name, wire::own_versions(T()).version};
}

VersionReply own() {
  Count protocol;
  each_method(protocol);
  return {0,
          kRelease,
          protocol.number(),
          {format_of<head::Head>("head"),
           format_of<View>("view"),
           format_of<Stripe>("stripe"),
           format_of<Header>("header"),
           {"record", Record::kVersion}}};
}

}  // namespace

Result<VersionReply> version(Object& object, const Empty&) {
  static const VersionReply known = own();
  VersionReply reply = known;
  reply.instance = object.instance();
  return reply;
}

}  // namespace zlog
