#include "cls_zlog/host/rados/replicas.h"

#include <array>
#include <cerrno>

#include "cls_zlog/base/little_endian.h"
#include "cls_zlog/host/rados/io.h"
#include "cls_zlog/method_table.h"
#include "cls_zlog/wire/frame.h"
#include "cls_zlog/wire/stripe_messages.h"
#include "cls_zlog/wire/version_messages.h"

namespace zlog {
namespace {

constexpr size_t kNamespaceBytesMax = 4096;  // an OSD's default is 256

// Runs a method. Unless `who` is nullptr, the same operation first runs `version`.
int ask(rados_ioctx_t io, const std::string& object, const char* method, std::string_view payload,
        ClassReply* who, ClassReply* answer) {
  const std::string empty = wire::encoded(Empty{});
  const auto operation = new_read_op();
  const auto exec = [&](const char* name, std::string_view input, ClassReply* reply) {
    librados().read_op_exec(operation.get(), kClassName, name, input.data(), input.size(),
                            &reply->bytes, &reply->size, &reply->code);
  };
  if (who != nullptr) exec("version", empty, who);
  exec(method, payload, answer);
  librados().read_op_set_flags(operation.get(), kFailOk);  // so that a failure comes with `who`
  return librados().read_op_operate(operation.get(), io, object.c_str(), kBalanceReads);
}

}  // namespace

int copy_of(rados_ioctx_t io, RadosHandle* copy) {
  std::array<char, kNamespaceBytesMax + 1> nspace{};
  const int length = librados().ioctx_get_namespace(io, nspace.data(), nspace.size());
  if (length < 0) return length;
  rados_ioctx_t made = nullptr;
  if (const int error = librados().ioctx_create2(librados().ioctx_get_cluster(io),
                                                 librados().ioctx_get_id(io), &made)) {
    return error;
  }
  librados().ioctx_set_namespace(made, nspace.data());
  *copy = {made, librados().ioctx_destroy};
  return 0;
}

void stir(rados_ioctx_t io, const std::string& object, bool client_side) {
  static constexpr const char* kStir = "zlog.stir";
  RadosHandle beside;
  if (copy_of(io, &beside) != 0) return;
  librados().ioctx_locator_set_key(beside.get(), object.c_str());  // into the same placement group
  if (client_side) {
    librados().append(beside.get(), kStir, "-", 1);
    librados().remove(beside.get(), kStir);
    return;
  }
  const auto change = [&](const char* method, const auto& request) {
    const std::string input = wire::encoded(request);
    const auto operation = new_write_op();
    librados().write_op_exec(operation.get(), kClassName, method, input.data(), input.size(),
                             nullptr);
    librados().write_op_operate(operation.get(), beside.get(), kStir, nullptr, kFullForce);
  };
  change("seal", SealRequest{1, 1, 0, true});
  change("remove", EpochRequest{1});
}

void run_at_replica(rados_ioctx_t io, const std::string& object, const char* method,
                    std::string_view payload, const Done& done) {
  ClassReply who, reply;
  VersionReply version;
  int error = ask(io, object, method, payload, &who, &reply);
  if (error == -EPERM) {  // the caps may not allow `version`
    error = ask(io, object, method, payload, nullptr, &reply);
  } else if (error == 0 && wire::decode({who.bytes, who.size}, &version) != wire::Decoded::kOk) {
    version.instance = 0;
  }
  const int code = error < 0 ? error : reply.code;
  done(code, replica_reply(version.instance, code < 0 ? Buffer() : reply.take()));
}

Buffer replica_reply(uint64_t instance, const Buffer& reply) {
  std::string bytes;
  wire::append(&bytes, instance);
  return Buffer::of(bytes.append(reply.bytes));
}

}  // namespace zlog
