// What holds for every message and stored value, whatever its fields: it can grow, and no bytes do
// harm (docs/decisions/0008-frames.md).

#include <array>
#include <cerrno>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "check.h"
#include "cls_zlog/describe/visitors.h"
#include "cls_zlog/host/memory/memory_host.h"
#include "cls_zlog/method_table.h"
#include "cls_zlog/wire/envelope.h"

namespace {

using namespace zlog;
using wire::Decoded;

constexpr std::string_view kText = "abcdefghijklmnopqrstuvwxyz012345";

// A visitor that gives each field the least value that its bounds allow.
class Least {
 public:
  explicit Least(std::string_view text) : text_(text) {}

  template <typename T>
  void operator()(const char*, T& value, const wire::Bounds& bounds = wire::any()) {
    set(value, bounds);
  }

 private:
  template <typename T>
  void set(T& value, const wire::Bounds& bounds) {
    value = static_cast<T>(bounds.min);
  }
  void set(std::optional<uint64_t>&, const wire::Bounds&) {}
  void set(std::string_view& value, const wire::Bounds& bounds) {
    value = text_.substr(0, bounds.min);
  }
  void set(std::string& value, const wire::Bounds& bounds) { value = text_.substr(0, bounds.min); }
  void set(Runs& runs, const wire::Bounds&) { Runs::of({}, {0}, &runs); }
  void set(std::map<std::string, std::string>&, const wire::Bounds&) {}
  template <size_t n>
  void set(std::array<char, n>&, const wire::Bounds&) {}
  template <typename T>
  void set(wire::Column<T>& column, const wire::Bounds& bounds) {
    column = {zeros_, static_cast<uint32_t>(bounds.min)};
  }
  void set(std::vector<std::string>& list, const wire::Bounds& bounds) {
    list.assign(bounds.min, std::string(text_.substr(0, 1)));
  }
  template <typename T>
  void set(std::vector<T>& list, const wire::Bounds& bounds) {
    list.resize(bounds.min);
  }

  static constexpr char zeros_[64] = {};
  std::string_view text_;
};

// The bytes of a message whose fields are as small as allowed; `text` is cut for its strings.
template <typename T>
std::string least(std::string_view text) {
  T value;
  Least visitor(text);
  value.each(visitor);
  if constexpr (std::is_base_of_v<Offload, T>) value.end = value.segments[0].end = 1;
  std::string bytes;
  wire::encode(value, &bytes);
  return bytes;
}

uint64_t number_of(std::string_view reply) {
  RefusalReply refusal;
  CHECK(wire::decode(reply, &refusal) == Decoded::kOk);
  return refusal.number;
}

// A message with more fields than this version knows.
std::string with_further(std::string message, uint8_t version, uint8_t compat) {
  const auto fields = wire::load<uint32_t>(message.data() + 2);
  message.insert(wire::kFrameBytes + fields, "further");
  wire::write_frame_head({version, compat}, fields + 7, message.data());
  return message;
}

template <typename Request>
void check_message(const char* method) {
  const std::string sound = least<Request>(kText);
  const auto decode = [](std::string_view bytes) {
    Request request;
    return wire::decode(bytes, &request);
  };
  CHECK(decode(sound) == Decoded::kOk);
  const auto newer = static_cast<uint8_t>(sound[0] + 1);
  CHECK(decode(with_further(sound, newer, 1)) == Decoded::kOk);
  CHECK(decode(with_further(sound, newer, newer)) == Decoded::kTooNew);
  CHECK(decode(sound + "behind") == Decoded::kMalformed);
  for (size_t length = 0; length < sound.size(); length++) {
    CHECK(decode(std::string_view(sound).substr(0, length)) == Decoded::kMalformed);
  }
  MemoryHost host;
  std::string reply;
  const bool reads = (find_method(method)->flags & kWrite) == 0;
  const int code = host.execute("object", method, with_further(sound, newer, newer), &reply);
  CHECK(code == (reads ? -ENOENT : kRequestTooNew));  // there is no object to read
  CHECK(reads || number_of(reply) == newer);
}

struct Checker {
  template <auto handler>
  void operator()(Handler<handler>, const char* name, int) {
    check(static_cast<decltype(handler)>(nullptr), name);
  }
  template <typename Reply, typename Request>
  void check(Result<Reply> (*)(Object&, const Request&), const char* name) {
    check_message<Request>(name);
  }
};

// The first and the second version of a message.
struct Before {
  uint64_t first = 0;
  wire::Further further;

  template <typename V>
  void each(V& v) {
    v("first", first);
  }
};

struct After {
  uint64_t first = 0;
  uint32_t second = 7;

  template <typename V>
  void each(V& v) {
    v("first", first);
    v("second", second, between(1, 9).since(2));
  }
};

void a_field_that_came_later() {
  After after;
  CHECK(wire::decode(wire::encoded(Before{5, {}}), &after) == Decoded::kOk);
  CHECK(after.first == 5 && after.second == 7);
  after.second = 8;
  const std::string bytes = wire::encoded(after);
  CHECK(bytes.substr(0, 2) == "\x02\x01");
  Before before;
  CHECK(wire::decode(bytes, &before) == Decoded::kOk && before.first == 5);
  before.first = 6;  // what it does not know is still there when it is stored again
  After again;
  CHECK(wire::decode(wire::encoded(before), &again) == Decoded::kOk);
  CHECK(again.first == 6 && again.second == 8);
  after.second = 10;
  std::string out;
  CHECK(!wire::encode(after, &out));
  CHECK(wire::decode(out, &again) == Decoded::kMalformed);
}

// A field that came later, in a base.
struct Derived : After {
  uint64_t own = 0;

  template <typename V>
  void each(V& v) {
    After::each(v);
    v("own", own);
  }
};

void a_new_field_is_the_last_one() {
  describe::Structs structs;
  describe::describe<After>(&structs);
  describe::describe<Derived>(&structs);
  CHECK(describe::misplaced(structs["After"]) == nullptr);
  const describe::Field* own = describe::misplaced(structs["Derived"]);
  CHECK(own != nullptr && own->name == "own");
}

// A list of elements of the first version.
struct Befores {
  std::vector<Before> elements;

  template <typename V>
  void each(V& v) {
    v("elements", elements);
  }
};

void an_element_that_is_too_new_is_no_damage() {
  const std::string element = wire::encoded(Before{5, {}});
  const auto decoded = [&](const std::string& first, Befores* list) {
    std::string fields;
    wire::Writer(&fields).u32(2).bytes(first).bytes(element);
    return wire::decode_fields({1, 1}, fields, list);
  };
  Befores list;
  CHECK(decoded(with_further(element, 2, 2), &list) == Decoded::kTooNew);
  CHECK(decoded(with_further(element, 2, 3), &list) == Decoded::kMalformed);
  CHECK(decoded(with_further(element, 2, 1), &list) == Decoded::kOk);
  CHECK(list.elements[0].further.fields == "further" && list.elements[1].first == 5);
}

void stored_values_tell_damage_from_a_later_version() {
  const std::string key = "key";
  const std::string newer = wrap(key, {3, 2}, "whatever");
  Before value;
  const Failure too_new = from_stored(key, newer, &value);
  CHECK(too_new.code == kStoredTooNew && too_new.number == 2);
  CHECK(from_stored("other", newer, &value).code == -EIO);
  for (size_t i = 0; i < newer.size(); i++) {
    std::string damaged = newer;
    damaged[i] ^= 1;
    CHECK(from_stored(key, damaged, &value).code == -EIO);
  }
}

}  // namespace

int main() {
  each_method(Checker());
  a_field_that_came_later();
  a_new_field_is_the_last_one();
  an_element_that_is_too_new_is_no_damage();
  stored_values_tell_damage_from_a_later_version();
  return 0;
}
