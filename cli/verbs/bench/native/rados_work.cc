#include "rados_work.h"

#include <algorithm>
#include <cerrno>
#include <random>
#include <utility>
#include <vector>

#include "class_work.h"
#include "cls_zlog/host/rados.h"

namespace zlog::bench {
namespace {

constexpr uint64_t kObjectKeysMax = 10000;
constexpr uint64_t kObjectBytesMax = uint64_t{48} << 20;
constexpr uint64_t kSetsMax = 8;                     // of objects that are there at the same time
constexpr uint64_t kPieceBytes = uint64_t{4} << 20;  // of an object that is written to be read

// A connection to a cluster and one namespace of a pool.
class Connection {
 public:
  explicit Connection(const RadosPlace& place) {
    const char* client = place.client.empty() ? nullptr : place.client.c_str();
    check(rados_create(&cluster_, client), "librados");
    const char* conf = place.conf.empty() ? nullptr : place.conf.c_str();
    check(rados_conf_read_file(cluster_, conf), "ceph.conf");
    check(rados_conf_parse_env(cluster_, nullptr), "CEPH_ARGS");
    check(rados_connect(cluster_), "connecting to the cluster");
    check(rados_ioctx_create(cluster_, place.pool.c_str(), &ioctx_), "pool " + place.pool);
    rados_ioctx_set_namespace(ioctx_, place.nspace.c_str());
  }
  ~Connection() {
    rados_ioctx_destroy(ioctx_);
    rados_shutdown(cluster_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  rados_ioctx_t ioctx() const { return ioctx_; }

 private:
  rados_t cluster_ = nullptr;
  rados_ioctx_t ioctx_ = nullptr;
};

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

class RadosWork final : public Work {
 public:
  explicit RadosWork(const RadosPlace& place)
      : connection_(place),
        host_(RadosHost::share(connection_.ioctx())),
        class_work_(class_work(*host_)) {
    librados::IoCtx::from_rados_ioctx_t(connection_.ioctx(), io_);
  }

  ~RadosWork() override {
    remove(std::exchange(to_read_, {}));
    class_work_.reset();
    host_->close();
    io_.close();
  }

  bool measure(const Request& request, Sample* sample) override {
    if (request.kind() == "rados_keys") {
      *sample = writes(request, kObjectKeysMax, &RadosWork::set_key);
    } else if (request.kind() == "rados_appends") {
      *sample = writes(request, UINT64_MAX, &RadosWork::append);
    } else if (request.kind() == "rados_reads") {
      *sample = reads(request);
    } else if (request.kind() == "clear") {
      clear();
    } else {
      return class_work_->measure(request, sample);
    }
    return true;
  }

 private:
  using Write = void (RadosWork::*)(const std::string& object, uint64_t number,
                                    const librados::bufferlist& data, Flight* flight);

  // One call: `size` bytes into one of the objects, which are left behind when they are full. Each
  // object gets bytes of its own, from a buffer of its own, as a log's does: librados remembers the
  // checksum of a buffer that it has sent before, and the processor has few bytes at hand longer
  // than many.
  Sample writes(const Request& request, uint64_t writes_max, Write write) {
    const uint64_t objects = request.number("objects"), size = request.number("size");
    writes_max = std::min(writes_max, std::max<uint64_t>(1, kObjectBytesMax / size));
    if (to_write_.size() < objects * size) to_write_ = noise(objects * size);
    std::vector<std::string> made;
    uint64_t number = 0;
    const auto start = [&](Finish finish) {
      if (number % (objects * writes_max) == 0) {
        if (made.size() >= kSetsMax * objects) return false;
        for (uint64_t i = 0; i < objects; i++) made.push_back(new_name());
      }
      const std::string& object = made[made.size() - objects + number % objects];
      librados::bufferlist data;
      data.append(ceph::buffer::create_static(static_cast<unsigned>(size),
                                              &to_write_[number % objects * size]));
      (this->*write)(object, number++, data, new Flight(std::move(finish)));
      return true;
    };
    const Sample sample = repeat(request.number("in_flight"), request.seconds(), start);
    remove(made);
    return sample;
  }

  void set_key(const std::string& object, uint64_t number, const librados::bufferlist& data,
               Flight* flight) {
    librados::ObjectWriteOperation operation;
    operation.omap_set({{"e." + std::to_string(number), data}});
    started(io_.aio_operate(object, flight->completion, &operation), flight);
  }

  void append(const std::string& object, uint64_t, const librados::bufferlist& data,
              Flight* flight) {
    started(io_.aio_append(object, flight->completion, data, data.length()), flight);
  }

  // One call: `size` bytes from one of the objects, the next ones or any.
  Sample reads(const Request& request) {
    const uint64_t objects = request.number("objects"), size = request.number("size");
    const uint64_t pieces = std::max<uint64_t>(1, request.number("bytes") / objects / size);
    make_to_read(objects, pieces * size);
    const bool random = request.text("order") == "random";
    std::mt19937_64 generator(1);
    uint64_t number = 0;
    return repeat(request.number("in_flight"), request.seconds(), [&](Finish finish) {
      const uint64_t which = random ? generator() % (objects * pieces) : number++;
      auto* const flight = new Flight(std::move(finish));
      started(io_.aio_read(to_read_[which % objects], flight->completion, &flight->data, size,
                           which / objects % pieces * size),
              flight);
      return true;
    });
  }

  // Makes objects with data, unless they are there from the last time.
  void make_to_read(uint64_t objects, uint64_t bytes) {
    if (to_read_.size() == objects && to_read_bytes_ == bytes) return;
    remove(std::exchange(to_read_, {}));
    to_read_bytes_ = bytes;
    librados::bufferlist piece;
    piece.append(noise(std::min(bytes, kPieceBytes)));
    for (uint64_t i = 0; i < objects; i++) {
      to_read_.push_back(new_name());
      for (uint64_t at = 0; at < bytes; at += piece.length()) {
        check(io_.append(to_read_.back(), piece, piece.length()), "writing what is to be read");
      }
    }
  }

  // Removes all that is in the namespace, which must be a benchmark's own.
  void clear() {
    if (io_.get_namespace().find("bench-") == std::string::npos) check(-EPERM, "clearing");
    std::vector<std::string> objects;
    for (auto at = io_.nobjects_begin(); at != io_.nobjects_end(); ++at) {
      objects.push_back(at->get_oid());
    }
    remove(objects);
  }

  void remove(const std::vector<std::string>& objects) {
    for (const std::string& object : objects) io_.remove(object);
  }

  static void started(int error, Flight* flight) {
    if (error == 0) return;
    const std::unique_ptr<Flight> grounded(flight);
    flight->finish(error);
  }

  std::string new_name() { return "limits.raw." + std::to_string(made_++); }

  Connection connection_;
  librados::IoCtx io_;
  const std::unique_ptr<RadosHost> host_;
  std::unique_ptr<Work> class_work_;
  uint64_t made_ = 0;
  std::string to_write_;
  std::vector<std::string> to_read_;
  uint64_t to_read_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Work> rados_work(const RadosPlace& place) {
  return std::make_unique<RadosWork>(place);
}

}  // namespace zlog::bench
