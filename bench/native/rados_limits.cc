#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <utility>

#include "cls_zlog/host/rados/librados.h"
#include "cls_zlog/host/rados/listing.h"
#include "limits.h"

namespace zlog::bench {
namespace {

constexpr uint64_t kObjectKeysMax = 10000;
constexpr uint64_t kObjectBytesMax = uint64_t{48} << 20;
constexpr uint64_t kPieceBytes = uint64_t{4} << 20;  // of an object that is written for reads

// A librados operation in flight.
struct Flight {
  explicit Flight(Finish finish) : finish(std::move(finish)) {
    librados().aio_create_completion2(this, &Flight::landed, &completion);
  }
  ~Flight() { librados().aio_release(completion); }
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  static void landed(rados_completion_t completion, void* argument) {
    const std::unique_ptr<Flight> flight(static_cast<Flight*>(argument));
    flight->finish(std::min(0, librados().aio_get_return_value(completion)));
  }

  const Finish finish;
  rados_completion_t completion = nullptr;
  std::unique_ptr<char[]> data;  // for the result of a read
};

void started(int error, Flight* flight) {
  if (error == 0) return;
  const std::unique_ptr<Flight> grounded(flight);
  flight->finish(error);
}

// A namespace of a pool. The objects created in it are removed at the end.
class Namespace {
 public:
  explicit Namespace(const Options& options) : name_(options.text("namespace")) {
    const std::string client = options.text_or_empty("client"), pool = options.text("pool");
    const std::string conf = options.text_or_empty("conf");
    rados_t cluster = nullptr;
    check(librados().create(&cluster, client.empty() ? nullptr : client.c_str()), "librados");
    cluster_.reset(cluster, librados().shutdown);
    check(librados().conf_read_file(cluster, conf.empty() ? nullptr : conf.c_str()), "ceph.conf");
    check(librados().conf_parse_env(cluster, nullptr), "CEPH_ARGS");
    check(librados().connect(cluster), "connecting to the cluster");
    rados_ioctx_t io = nullptr;
    check(librados().ioctx_create(cluster, pool.c_str(), &io), "pool " + pool);
    io_.reset(io, librados().ioctx_destroy);
    librados().ioctx_set_namespace(io, name_.c_str());
  }
  ~Namespace() { remove_made(); }
  Namespace(const Namespace&) = delete;
  Namespace& operator=(const Namespace&) = delete;

  rados_ioctx_t io() const { return io_.get(); }

  // Returns the names of further objects, which the caller writes.
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
    for (const std::string& object : std::exchange(made_, {})) {
      librados().remove(io(), object.c_str());
    }
  }

  // Removes everything in the namespace, which must belong to a benchmark.
  void clear() {
    if (name_.find("bench-") == std::string::npos) check(-EPERM, "clearing");
    std::string after;
    do {
      Listing page;
      check(list_page(io(), "", after, &page), "listing");
      made_.insert(made_.end(), page.names.begin(), page.names.end());
      after = page.next;
    } while (!after.empty());
    remove_made();
  }

 private:
  const std::string name_;
  RadosHandle cluster_, io_;  // io_ ends first
  uint64_t number_ = 0;
  std::vector<std::string> made_;
};

using SharedNamespace = std::shared_ptr<Namespace>;

// A call writes `size` bytes into one of the objects, as a key or at the end of the data, until the
// objects are full. As in a log, each object gets different bytes, because a processor's cache
// could speed up repeated ones.
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
      const char* const data = &(*bytes)[which * size];
      auto* const flight = new Flight(std::move(finish));
      if (keys) {
        const std::string key = "e." + std::to_string(number);
        const char* const key_text = key.c_str();
        const auto operation = new_write_op();
        librados().write_op_omap_set(operation.get(), &key_text, &data, &size, 1);
        started(librados().aio_write_op_operate(operation.get(), nspace->io(), flight->completion,
                                                names[which].c_str(), nullptr, 0),
                flight);
      } else {
        started(librados().aio_append(nspace->io(), names[which].c_str(), flight->completion, data,
                                      size),
                flight);
      }
      number++;
      return true;
    };
    Sample sample = repeat(in_flight, seconds, start);
    nspace->remove_made();
    return sample;
  };
}

// One call: `size` bytes from one of the objects, the next ones.
Measure reads(const SharedNamespace& nspace, const Options& options) {
  const uint64_t objects = options.number("objects"), size = options.number("size");
  const uint64_t in_flight = options.number("in_flight");
  const uint64_t pieces = std::max<uint64_t>(1, options.number("bytes") / objects / size);
  const std::vector<std::string> names = nspace->make(objects);
  const std::string piece = noise(std::min(pieces * size, kPieceBytes));
  for (const std::string& name : names) {
    for (uint64_t at = 0; at < pieces * size; at += piece.size()) {
      check(librados().append(nspace->io(), name.c_str(), piece.data(), piece.size()),
            "writing what is to be read");
    }
  }
  return [=](double seconds) {
    uint64_t number = 0;
    return repeat(in_flight, seconds, [&](Finish finish) {
      const uint64_t which = number++;
      auto* const flight = new Flight(std::move(finish));
      flight->data.reset(new char[size]);  // uninitialized
      started(librados().aio_read(nspace->io(), names[which % objects].c_str(), flight->completion,
                                  flight->data.get(), size, which / objects % pieces * size),
              flight);
      return true;
    });
  };
}

}  // namespace

void find_librados() {
  std::string what;
  if (load_librados(&what) != 0) throw std::runtime_error(what);
}

Measure rados_limit(const std::string& kind, const Options& options) {
  const bool keys = kind == "rados_keys";
  if (!keys && kind != "rados_appends" && kind != "rados_reads" && kind != "clear") return nullptr;
  find_librados();
  const auto nspace = std::make_shared<Namespace>(options);
  if (kind == "rados_reads") return reads(nspace, options);
  if (kind != "clear") return writes(nspace, options, keys);
  nspace->clear();
  return [](double) { return Sample(); };
}

}  // namespace zlog::bench
