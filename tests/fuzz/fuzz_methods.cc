// Arbitrary bytes at every method, on objects in every state, healthy and damaged: nothing crashes,
// nothing escapes, and no answer breaks a host's rules.
//
// With clang: -fsanitize=fuzzer. With any compiler: its main() makes random inputs itself,
//   fuzz_methods [SEED [COUNT]]     or     fuzz_methods FILE...   to run stored inputs again.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/base/limits.h"
#include "cls_zlog/client/write_encoder.h"
#include "cls_zlog/host/memory/memory_host.h"
#include "cls_zlog/method_table.h"
#include "cls_zlog/stripe/header.h"
#include "cls_zlog/wire/append_messages.h"
#include "cls_zlog/wire/envelope.h"
#include "cls_zlog/wire/head_messages.h"
#include "cls_zlog/wire/repair_messages.h"

namespace {

using zlog::MemoryHost;
using zlog::MemoryObject;

constexpr uint32_t kWidth = 4;
constexpr uint64_t kLogId = 7;
constexpr std::string_view kWriter = "wwwwwwwwwwwwwwww";

std::string write_request(uint64_t first, uint32_t count, size_t entry_bytes,
                          zlog::Compression compression = zlog::Compression::kNone,
                          const zlog::EntryTags* tags = nullptr) {
  const std::string data(entry_bytes, 'd');
  std::vector<zlog::NewEntry> entries;
  entries.reserve(count);
  for (uint32_t i = 0; i < count; i++) {
    entries.push_back({first + i, first + i, data});
  }
  std::string request;
  const zlog::WriteHead head = {1, 1000, kWriter, {1}, compression, tags};
  zlog::WriteEncoder encoder;
  if (encoder.begin(head, entries.data(), entries.size()) != 0) std::abort();
  encoder.compress();
  request.resize(encoder.size());
  encoder.encode(request.data());
  return request;
}

// A write of entries that have `each` of these tags, every one of them others than the next.
std::string tagged_request(uint64_t first, uint32_t count, uint32_t each, size_t entry_bytes) {
  zlog::EntryTags tags;
  for (uint32_t i = 0; i < zlog::limits::entry_tags_max; i++) {
    tags.names.push_back("tag" + std::to_string(i));
  }
  tags.begins.push_back(0);
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t j = 0; j < each; j++) {
      tags.ids.push_back((i + j) % zlog::limits::entry_tags_max);
    }
    tags.begins.push_back(static_cast<uint32_t>(tags.ids.size()));
  }
  return write_request(first, count, entry_bytes, zlog::Compression::kNone, &tags);
}

// An append of an empty entry, unless an entry has a tag that none has.
std::string conditional_request() {
  const std::string zeros(sizeof(uint32_t), '\0');
  zlog::AppendRequest request;
  request.epoch = 1;
  request.writer = kWriter;
  request.number = 1000;
  request.parts.push_back({1, {}, 0, {{"\4none"}}});
  request.ends = {zeros.data(), 1};
  request.crcs = {zeros.data(), 1};
  request.numbers = {zeros.data(), 1};
  return zlog::wire::encoded(request);
}

// A view that replaces the one of epoch `base`, and has one stripe.
std::string view_request(uint64_t base, uint64_t epoch, uint64_t start,
                         zlog::LogState state = zlog::LogState::kLive, bool offloads = false) {
  zlog::View view;
  view.epoch = epoch;
  view.log_id = kLogId;
  view.state = state;
  view.stripes = {{epoch, start, zlog::limits::end_open, kWidth, 1, {}}};
  view.offloads = offloads;
  const std::string bytes = zlog::wire::encoded(view);
  return zlog::wire::encoded(zlog::ViewProposeRequest{base, bytes});
}

// The header of an object after a call of seal.
std::string header_after(const std::string& seal) {
  MemoryHost host;
  std::string reply;
  MemoryObject object;
  host.execute("object", "seal", seal, &reply);
  host.peek("object", &object);
  return object.attrs.at(zlog::Header::kAttribute);
}

// A sound request of each method, in the order of methods(): SOUND in tests/conformance/hostile.py.
// The fuzzer damages these rather than inventing requests.
std::vector<std::string> sound_requests() {
  using namespace std::literals;
  std::vector<std::string> requests = {
#if __has_include("sound_requests.inc")  // not when clang-tidy reads this
#include "sound_requests.inc"
#endif
  };
  const size_t seal = zlog::find_method("seal") - zlog::methods().data();
  const std::string header = header_after(requests.at(seal));
  const size_t heal = zlog::find_method("heal") - zlog::methods().data();
  requests.at(heal) = zlog::wire::encoded(zlog::HealRequest{zlog::Header::kAttribute, header, ""});
  return requests;
}

// Objects to begin with: what calling the methods named makes of nothing.
std::vector<MemoryObject> make_states(const std::vector<std::string>& requests) {
  const auto made_by = [&](const std::vector<std::pair<const char*, std::string>>& calls) {
    MemoryHost host;
    std::string reply;
    for (const auto& [method, request] : calls) {
      if (host.execute("object", method, request, &reply) != 0) std::abort();
    }
    MemoryObject object;
    host.peek("object", &object);
    return object;
  };
  const auto request_of = [&](const char* method) {
    return requests.at(zlog::find_method(method) - zlog::methods().data());
  };
  const std::string seal = request_of("seal"), write = request_of("write");
  const std::string create = request_of("head_create"), epoch = request_of("epoch_next");
  const std::vector<std::pair<const char*, std::string>> offloaded = {
      {"head_create", create},
      {"epoch_next", epoch},
      {"view_propose", request_of("view_propose")},
      {"epoch_next", epoch},
      {"view_propose", view_request(1, 2, 5, zlog::LogState::kLive, true)},
      {"offload_put", request_of("offload_put")}};
  auto offloaded_and_trimmed = offloaded;
  offloaded_and_trimmed.emplace_back("trim_point_raise", request_of("trim_point_raise"));
  return {
      made_by({{"seal", seal}}),
      made_by({{"seal", seal}, {"write", write}, {"fill", request_of("fill")}}),
      made_by({{"seal", seal}, {"write", write_request(0, 8, 6000)}, {"trim", request_of("trim")}}),
      made_by({{"seal", seal},
               {"write", write},
               {"write", write_request(8, 8, 5000)},
               {"trim_to", request_of("trim_to")}}),
      made_by({{"seal", seal},
               {"write", write_request(0, 6, 10)},
               {"write", write_request(6, 8, 600, zlog::Compression::kZstd)},
               {"write", write_request(14, 2, 300 << 10, zlog::Compression::kLz4)},
               {"trim", request_of("trim")}}),
      made_by({{"seal", seal},
               {"write", write},
               {"write", tagged_request(6, 8, 2, 10)},
               {"write", tagged_request(14, 8, 3, 6000)},
               {"trim", request_of("trim")}}),
      made_by({{"seal", seal},
               {"write", tagged_request(2, 258, 64, 150)},  // as many tags as a chunk takes
               {"write", tagged_request(260, 4, 1, 10)},
               {"write", tagged_request(0, 2, 2, 10)}}),  // late
      made_by({{"seal", seal},
               {"write", tagged_request(0, 8, 2, 10)},
               {"write", tagged_request(8, 8, 3, 600)},
               {"compact", request_of("compact")},
               {"write", tagged_request(16, 2, 2, 10)}}),
      made_by({{"head_create", create}, {"epoch_next", epoch}}),
      made_by({{"head_create", create},
               {"epoch_next", epoch},
               {"view_propose", request_of("view_propose")}}),
      made_by({{"head_create", create},
               {"epoch_next", epoch},
               {"view_propose", view_request(0, 1, 0, zlog::LogState::kRemoved)}}),
      made_by({{"head_create", create}, {"cursor_commit", request_of("cursor_commit")}}),
      made_by({{"head_create", create},
               {"epoch_next", epoch},
               {"delivery_begin", request_of("delivery_begin")},
               {"delivery_grant", request_of("delivery_grant")}}),
      made_by({{"head_create", create},
               {"epoch_next", epoch},
               {"view_propose", request_of("view_propose")},
               {"epoch_next", epoch},
               {"epoch_next", epoch},
               {"view_propose", view_request(1, 3, 100)}}),
      made_by(offloaded),
      made_by(offloaded_and_trimmed),
      made_by({{"seal", seal}, {"write", write}, {"freeze", request_of("freeze")}}),
      made_by({{"seal", seal},
               {"append", request_of("append")},
               {"write", tagged_request(2, 258, 64, 10)},
               {"append", conditional_request()},  // makes a filter
               {"write", tagged_request(262, 4, 1, 10)},
               {"trim", request_of("trim")}}),
      made_by({{"directory_add", request_of("directory_add")},
               {"sequencer_announce", request_of("sequencer_announce")}}),
  };
}

// Each method of the class must carry out its request on some object; else the fuzzer would only
// ever see it refuse.
void check_requests(const std::vector<std::string>& requests,
                    const std::vector<MemoryObject>& states) {
  if (requests.size() != zlog::method_count()) {
    std::fprintf(stderr, "%zu sound requests for %zu methods\n", requests.size(),
                 zlog::method_count());
    std::abort();
  }
  for (size_t i = 0; i < requests.size(); i++) {
    const char* method = zlog::methods()[i].name;
    bool done = false;
    for (size_t state = 0; state <= states.size(); state++) {
      MemoryHost host;
      if (state < states.size()) host.poke("object", states[state]);
      std::string reply;
      done = done || host.execute("object", method, requests[i], &reply) == 0;
    }
    if (!done) {
      std::fprintf(stderr, "no object on which the sound request of %s does anything\n", method);
      std::abort();
    }
  }
}

// Takes the fuzzer's bytes apart; zeros when they run out.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return size_ == 0; }
  uint8_t u8() {
    if (size_ == 0) return 0;
    size_--;
    return *data_++;
  }
  uint16_t u16() { return static_cast<uint16_t>(u8() << 8 | u8()); }
  std::string bytes(size_t length) {
    std::string out;
    while (out.size() < length && !empty()) out.push_back(static_cast<char>(u8()));
    return out;
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

// Changes some bytes of a value, or its length.
void damage(Input* input, std::string* value) {
  for (int changes = input->u8() % 4; changes > 0; changes--) {
    if (value->empty()) return;
    const size_t at = input->u16() % value->size();
    if (input->u8() % 8 == 0) {
      value->resize(at);
    } else {
      (*value)[at] = static_cast<char>(input->u8());
    }
  }
}

// Damages what is inside a stored value and gives it a good CRC again: what only a bug or a client
// with write access to the pool could store. It need not make sense to a method, but must not hurt
// it.
void forge(Input* input, std::string_view key, std::string* value) {
  zlog::Envelope stored;
  if (!zlog::unwrap(key, *value, &stored)) return;
  std::string fields(stored.fields);
  std::string payload(stored.payload);
  damage(input, &fields);
  damage(input, &payload);
  if (input->u8() % 8 == 0) stored.versions = {input->u8(), input->u8()};
  *value = zlog::wrap(key, stored.versions, fields, payload);
}

void damage(Input* input, MemoryObject* object) {
  const bool forged = input->u8() % 2 == 0;
  const auto change = [&](const std::string& key, std::string* value) {
    if (forged) {
      forge(input, key, value);
    } else {
      damage(input, value);
    }
  };
  for (auto& [name, value] : object->attrs) change(name, &value);
  for (auto& [key, value] : object->omap) change(key, &value);
  damage(input, &object->stream);
}

void expect(bool good, const char* what, const char* method, int code) {
  if (good) return;
  std::fprintf(stderr, "%s: method %s, code %d\n", what, method, code);
  std::abort();
}

void run(const uint8_t* data, size_t size) {
  static const std::vector<std::string> requests = sound_requests();
  static const std::vector<MemoryObject> states = make_states(requests);
  [[maybe_unused]] static const bool checked = (check_requests(requests, states), true);
  Input input(data, size);
  MemoryHost host;
  const size_t state = input.u8() % (states.size() + 1);
  if (state < states.size()) {
    MemoryObject object = states[state];
    if (input.u8() % 2 == 0) damage(&input, &object);
    host.poke("object", object);
  }
  while (!input.empty()) {
    const size_t index = input.u8() % zlog::method_count();
    const zlog::Method& method = zlog::methods()[index];
    std::string request;
    if (input.u8() % 2 == 0) {
      request = requests[index];
      damage(&input, &request);
    } else {
      request = input.bytes(input.u8());
    }
    std::string reply;
    const int code = host.execute("object", method.name, request, &reply);
    expect(code <= zlog::kFrozen && code > -4096, "no such code", method.name, code);
    expect(code >= 0 || reply.empty(), "an error with a reply", method.name, code);
    zlog::AppendReply append;  // which may be long if it changed nothing
    const bool report = method.name == std::string_view("append") && code == 0 &&
                        zlog::wire::decode(reply, &append) == zlog::wire::Decoded::kOk &&
                        append.stored == 0;
    expect((method.flags & zlog::kWrite) == 0 || report ||
               reply.size() <= zlog::limits::write_reply_bytes_max,
           "a reply too long", method.name, code);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  run(data, size);
  return 0;
}
