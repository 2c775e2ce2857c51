#include <rados/librados.hpp>

#include <algorithm>
#include <cerrno>
#include <random>
#include <utility>

#include "limits.h"

namespace zlog::bench {
namespace {

constexpr uint64_t kObjectKeysMax = 10000;
constexpr uint64_t kObjectBytesMax = uint64_t{48} << 20;
constexpr uint64_t kPieceBytes = uint64_t{4} << 20;  // of an object that is written to be read

// An operation of librados on its way.
struct Flight {
  explicit Flight(Finish finish)
      : finish(std::move(finish)),
        completion(librados::Rados::aio_create_completion(this, &Flight::landed)) {}
  ~Flight() { completion->release(); }
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  static void landed(rados_completion_t, void* argument) {
    const std::unique_ptr<Flight> flight(static_cast<Flight*>(argument));
    flight->finish(std::min(0, flight->completion->get_return_value()));
  }

  const Finish finish;
  librados::AioCompletion* const completion;
  librados::bufferlist data;  // what a read brings
};

void started(int error, Flight* flight) {
  if (error == 0) return;
  const std::unique_ptr<Flight> grounded(flight);
  flight->finish(error);
}

// A namespace of a pool. The objects that were made in it are removed with it.
class Namespace {
 public:
  explicit Namespace(const Options& options) {
    const std::string client = options.text_or_empty("client"), pool = options.text("pool");
    const std::string conf = options.text_or_empty("conf");
    check(cluster_.init(client.empty() ? nullptr : client.c_str()), "librados");
    check(cluster_.conf_read_file(conf.empty() ? nullptr : conf.c_str()), "ceph.conf");
    check(cluster_.conf_parse_env(nullptr), "CEPH_ARGS");
    check(cluster_.connect(), "connecting to the cluster");
    check(cluster_.ioctx_create(pool.c_str(), io_), "pool " + pool);
    io_.set_namespace(options.text("namespace"));
  }
  ~Namespace() { remove_made(); }
  Namespace(const Namespace&) = delete;
  Namespace& operator=(const Namespace&) = delete;

  librados::IoCtx& io() { return io_; }

  // The names of further objects, which the caller writes.
  std::vector<std::string> make(uint64_t objects) {
    std::vector<std::string> names;
    names.reserve(objects);
    for (uint64_t i = 0; i < objects; i++) {
      names.push_back("limits.raw." + std::to_string(number_++));
    }
    made_.insert(made_.end(), names.begin(), names.end());
    return names;
  }

  void remove_made() {
    for (const std::string& object : std::exchange(made_, {})) io_.remove(object);
  }

  // Removes all that is in the namespace, which must be a benchmark's own.
  void clear() {
    if (io_.get_namespace().find("bench-") == std::string::npos) check(-EPERM, "clearing");
    for (auto at = io_.nobjects_begin(); at != io_.nobjects_end(); ++at) {
      made_.push_back(at->get_oid());
    }
    remove_made();
  }

 private:
  librados::Rados cluster_;
  librados::IoCtx io_;
  uint64_t number_ = 0;
  std::vector<std::string> made_;
};

using SharedNamespace = std::shared_ptr<Namespace>;

// One call: `size` bytes into one of the objects, as a key or at the end of the data, until they are
// full. Each object gets bytes of its own, from a buffer of its own, as a log's does: librados
// remembers the checksum of a buffer that it has sent before, and the processor has few bytes at
// hand longer than many.
Measure writes(const SharedNamespace& nspace, const Options& options, bool keys) {
  const uint64_t objects = options.number("objects"), size = options.number("size");
  const uint64_t in_flight = options.number("in_flight");
  const uint64_t fitting = std::max<uint64_t>(1, kObjectBytesMax / size);
  const uint64_t writes_max = keys ? std::min(fitting, kObjectKeysMax) : fitting;
  const auto bytes = std::make_shared<std::string>(noise(objects * size));
  return [=](double seconds) {
    const std::vector<std::string> names = nspace->make(objects);
    uint64_t number = 0;
    const auto start = [&](Finish finish) {
      if (number == objects * writes_max) return false;
      const uint64_t which = number % objects;
      librados::bufferlist data;
      data.append(
          ceph::buffer::create_static(static_cast<unsigned>(size), &(*bytes)[which * size]));
      auto* const flight = new Flight(std::move(finish));
      if (keys) {
        librados::ObjectWriteOperation operation;
        operation.omap_set({{"e." + std::to_string(number), data}});
        started(nspace->io().aio_operate(names[which], flight->completion, &operation), flight);
      } else {
        started(nspace->io().aio_append(names[which], flight->completion, data, size), flight);
      }
      number++;
      return true;
    };
    Sample sample = repeat(in_flight, seconds, start);
    nspace->remove_made();
    return sample;
  };
}

// One call: `size` bytes from one of the objects, the next ones or any.
Measure reads(const SharedNamespace& nspace, const Options& options) {
  const uint64_t objects = options.number("objects"), size = options.number("size");
  const uint64_t in_flight = options.number("in_flight");
  const uint64_t pieces = std::max<uint64_t>(1, options.number("bytes") / objects / size);
  const bool random = options.text("order") == "random";
  const std::vector<std::string> names = nspace->make(objects);
  librados::bufferlist piece;
  piece.append(noise(std::min(pieces * size, kPieceBytes)));
  for (const std::string& name : names) {
    for (uint64_t at = 0; at < pieces * size; at += piece.length()) {
      check(nspace->io().append(name, piece, piece.length()), "writing what is to be read");
    }
  }
  return [=](double seconds) {
    std::mt19937_64 generator(1);
    uint64_t number = 0;
    return repeat(in_flight, seconds, [&](Finish finish) {
      const uint64_t which = random ? generator() % (objects * pieces) : number++;
      auto* const flight = new Flight(std::move(finish));
      started(nspace->io().aio_read(names[which % objects], flight->completion, &flight->data, size,
                                    which / objects % pieces * size),
              flight);
      return true;
    });
  };
}

}  // namespace

Measure rados_limit(const std::string& kind, const Options& options) {
  const bool keys = kind == "rados_keys";
  if (!keys && kind != "rados_appends" && kind != "rados_reads" && kind != "clear") return nullptr;
  const auto nspace = std::make_shared<Namespace>(options);
  if (kind == "rados_reads") return reads(nspace, options);
  if (kind != "clear") return writes(nspace, options, keys);
  nspace->clear();
  return [](double) { return Sample(); };
}

}  // namespace zlog::bench
