// Prints examples of messages, and of every stored value, as "NAME HEX" lines: what
// docs/formats shows, byte for byte. Everything printed was made by the code that runs in the OSD,
// and every message is decoded again on the way.

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "check.h"
#include "cls_zlog/base/codes.h"
#include "cls_zlog/base/limits.h"
#include "cls_zlog/client/write_encoder.h"
#include "cls_zlog/host/memory.h"
#include "cls_zlog/wire/cursor_messages.h"
#include "cls_zlog/wire/delivery_messages.h"
#include "cls_zlog/wire/frame.h"
#include "cls_zlog/wire/head_messages.h"

namespace {

using namespace zlog;

constexpr uint64_t kLogId = 0x1122334455667788;
constexpr uint64_t kTime = 1700000000000000;  // µs since 1970
const std::string kWriter = "writer-00000000a";

void show(const char* name, std::string_view bytes) {
  std::printf("%s ", name);
  for (const char byte : bytes) std::printf("%02x", static_cast<unsigned char>(byte));
  std::printf("\n");
}

// Shows a message and checks that decoding and encoding it again changes nothing.
template <typename Message>
void show_message(const char* name, const Message& message) {
  const std::string bytes = wire::encoded(message);
  Message again;
  CHECK(wire::decode(bytes, &again) == wire::Decoded::kOk);
  CHECK(wire::encoded(again) == bytes);
  show(name, bytes);
}

Runs runs_of(uint32_t stride, const std::vector<uint64_t>& positions) {
  Runs runs;
  CHECK(Runs::of(stride, positions, &runs));
  return runs;
}

std::string call(MemoryHost* host, const char* object, const char* method,
                 std::string_view request) {
  std::string reply;
  CHECK(host->execute(object, method, request, &reply) == kOk);
  return reply;
}

template <typename Request>
std::string call(MemoryHost* host, const char* object, const char* method, const Request& request) {
  return call(host, object, method, std::string_view(wire::encoded(request)));
}

// Two entries at positions 2 and 6 of the object with stride 4 and residue 2.
std::string write_request() {
  std::string request;
  CHECK(encode_write({3, kTime, kWriter, 4}, {{2, 41, "hello"}, {6, 42, "log"}}, &request) == 0);
  return request;
}

void show_record(const char* name, const MemoryObject& object, const std::string& key) {
  CHECK(object.omap.count(key) == 1);
  show(name, object.omap.at(key));
}

void stripe_examples() {
  MemoryHost host;
  const char* const stripe = "stripe";
  const SealRequest seal{3, 4, 2, true};
  show_message("seal-request", seal);
  show("seal-reply", call(&host, stripe, "seal", seal));
  std::string refusal;
  CHECK(host.execute(stripe, "seal", wire::encoded(seal), &refusal) == kInvalidEpoch);
  show("refusal-reply", refusal);

  const std::string write = write_request();
  show("write-request", write);
  show("write-reply", call(&host, stripe, "write", std::string_view(write)));
  MemoryObject object;
  CHECK(host.peek(stripe, &object));
  show("stored-header", object.attrs.at("zlog.header"));
  show_record("record-inline", object, "e.0000000000000006.2");

  FillRequest fill;
  fill.epoch = 3;
  fill.timestamp = kTime + 1;
  fill.writer = kWriter;
  fill.reason = FillReason::kReaderWaited;
  fill.runs = runs_of(4, {10, 14, 18});
  call(&host, stripe, "fill", fill);
  call(&host, stripe, "trim", TrimRequest{3, runs_of(4, {6, 14})});
  CHECK(host.peek(stripe, &object));
  show_record("record-inline-trimmed", object, "e.0000000000000006.2");
  show_record("record-fill", object, "e.000000000000000a.1");
  show_record("record-trim", object, "e.000000000000000e.1");

  const ReadRequest read{3, true, 4096, runs_of(4, {2, 6, 10})};
  show_message("read-request", read);
  show("read-reply", call(&host, stripe, "read", read));
}

// A batch that is large enough for the bytestream, and a record that was lost and then cut by a
// trim.
void large_and_lost_examples() {
  MemoryHost host;
  const char* const stripe = "stripe";
  call(&host, stripe, "seal", SealRequest{3, 4, 2, true});
  const std::string first(20000, 'a');
  const std::string second(12768, 'b');
  std::string write;
  CHECK(encode_write({3, kTime, kWriter, 4}, {{2, 41, first}, {6, 42, second}}, &write) == 0);
  call(&host, stripe, "write", std::string_view(write));
  MemoryObject object;
  CHECK(host.peek(stripe, &object));
  CHECK(object.stream == first + second);
  show_record("record-stream", object, "e.0000000000000006.2");

  object.omap["e.0000000000000006.2"].back() ^= 1;
  host.poke(stripe, object);
  call(&host, stripe, "trim", TrimRequest{3, runs_of(4, {2})});
  CHECK(host.peek(stripe, &object));
  show_record("record-lost", object, "e.0000000000000006.1");
}

void head_examples() {
  MemoryHost host;
  const char* const head = "head";
  call(&host, head, "head_create", HeadCreateRequest{"orders", kLogId});
  call(&host, head, "epoch_next", EpochNextRequest{4});
  call(&host, head, "tail_raise", TailRaiseRequest{kLogId, 1, 100});
  call(&host, head, "trim_point_raise", TrimPointRequest{kLogId, 40, false});
  View view;
  view.epoch = 1;
  view.log_id = kLogId;
  view.sequencer = "tcp://10.0.0.1:7878";
  view.stripes = {{1, 0, limits::end_open, 4}};
  view.options = {{"owner", "shop"}};
  show_message("view", view);
  const std::string bytes = wire::encoded(view);
  call(&host, head, "view_propose", ViewProposeRequest{0, bytes});
  MemoryObject object;
  CHECK(host.peek(head, &object));
  show("stored-head", object.attrs.at("zlog.head"));
  show_record("stored-view", object, "v.0000000000000001");
}

// A stripe that was announced and not made, and one that a view has left out.
void stripe_index_examples() {
  MemoryHost host;
  const char* const head = "head";
  call(&host, head, "head_create", HeadCreateRequest{"orders", kLogId});
  View view;
  view.log_id = kLogId;
  for (const uint32_t width : {4u, 8u, 2u}) {
    call(&host, head, "epoch_next", EpochNextRequest{width});
  }
  view.epoch = 1;
  view.stripes = {{1, 0, limits::end_open, 4}};
  const std::string first = wire::encoded(view);
  call(&host, head, "view_propose", ViewProposeRequest{0, first});
  view.epoch = 3;
  view.stripes = {{3, 100, limits::end_open, 2}};
  const std::string second = wire::encoded(view);
  call(&host, head, "view_propose", ViewProposeRequest{1, second});
  MemoryObject object;
  CHECK(host.peek(head, &object));
  show_record("stored-archived-stripe", object, "t.0000000000000063");
  show_record("stored-loose-stripe", object, "l.0000000000000002");
}

void cursor_and_delivery_examples() {
  MemoryHost host;
  const char* const head = "head";
  call(&host, head, "head_create", HeadCreateRequest{"orders", kLogId});
  call(&host, head, "cursor_commit",
       CursorCommitRequest{kLogId, "app", CommitMode::kCreate, 100, kTime});
  const DeliveryRequest delivery{kLogId, "query", 3, 1};
  call(&host, head, "delivery_begin", DeliveryBeginRequest{delivery, kTime});
  call(&host, head, "delivery_grant", DeliveryGrantRequest{delivery, 1, 1, 0, 100, 10, false});
  MemoryObject object;
  CHECK(host.peek(head, &object));
  show_record("stored-cursor", object, "c.app");
  show_record("stored-source", object, "s.query");
  show_record("stored-delivery", object, "p.query/0000000000000003.00000001");
}

void directory_examples() {
  MemoryHost host;
  const char* const directory = "directory";
  call(&host, directory, "directory_add", DirectoryEntryRequest{"orders", kLogId});
  call(&host, directory, "sequencer_announce", AddressMessage{"tcp://10.0.0.1:7878"});
  MemoryObject object;
  CHECK(host.peek(directory, &object));
  show_record("stored-directory-entry", object, "n.orders");
  show("stored-sequencer", object.attrs.at("zlog.sequencer"));
}

}  // namespace

int main() {
  stripe_examples();
  large_and_lost_examples();
  head_examples();
  stripe_index_examples();
  cursor_and_delivery_examples();
  directory_examples();
  return 0;
}
