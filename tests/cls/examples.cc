// Prints one example of every message and every stored value, as "NAME HEX" lines: what
// docs/formats shows, byte for byte. Everything printed was made by the code that runs in the OSD,
// and every message is decoded again on the way.

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "check.h"
#include "cls_zlog/base/codes.h"
#include "cls_zlog/wire/cursor_messages.h"
#include "cls_zlog/wire/delivery_messages.h"
#include "cls_zlog/wire/head_messages.h"
#include "cls_zlog/host/memory.h"
#include "cls_zlog/base/limits.h"
#include "cls_zlog/wire/messages.h"
#include "cls_zlog/wire/stripe_index_messages.h"
#include "cls_zlog/wire/verify_messages.h"
#include "cls_zlog/head/view.h"
#include "cls_zlog/client/write_encoder.h"

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
  const std::string bytes = message.encode();
  Message again;
  CHECK(Message::decode(bytes, &again) == 0);
  CHECK(again.encode() == bytes);
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
  const std::string sealed = call(&host, stripe, "seal", seal.encode());
  SealReply fresh;
  CHECK(SealReply::decode(sealed, &fresh) == 0 && fresh.encode() == sealed);
  show("seal-reply", sealed);

  const std::string write = write_request();
  show("write-request", write);
  const std::string written = call(&host, stripe, "write", write);
  Fullness fullness;
  CHECK(Fullness::decode(written, &fullness) == 0 && fullness.encode() == written);
  show("write-reply", written);
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
  show_message("fill-request", fill);
  call(&host, stripe, "fill", fill.encode());

  TrimRequest trim;
  trim.epoch = 3;
  trim.runs = runs_of(4, {6, 14});
  show_message("trim-request", trim);
  call(&host, stripe, "trim", trim.encode());
  CHECK(host.peek(stripe, &object));
  show_record("record-inline-trimmed", object, "e.0000000000000006.2");
  show_record("record-fill", object, "e.000000000000000a.1");
  show_record("record-trim", object, "e.000000000000000e.1");

  ReadRequest read;
  read.epoch = 3;
  read.with_ids = true;
  read.bytes_max = 4096;
  read.runs = runs_of(4, {2, 6, 10});
  show_message("read-request", read);
  const std::string reply = call(&host, stripe, "read", read.encode());
  ReadReply decoded;
  CHECK(ReadReply::decode(reply, true, 3, &decoded) == 0);
  CHECK(decoded.state_of(0, 2) == EntryState::kWritten && decoded.data_of(0) == "hello");
  show("read-reply", reply);

  VerifyRequest verify;
  verify.epoch = 3;
  verify.bytes_max = 4096;
  verify.runs = runs_of(4, {2, 6, 10, 14, 18});
  show_message("verify-request", verify);
  show("verify-reply", call(&host, stripe, "verify", verify.encode()));

  show("highest-reply", call(&host, stripe, "max_position", EpochRequest{3}.encode()));
  show_message("epoch-request", EpochRequest{3});
  show("epoch-reply", encode_epoch_reply(4));
  show("position-reply", encode_position_reply(6));
  const std::string stat = call(&host, stripe, "stat", EpochRequest{3}.encode());
  StatReply numbers;
  CHECK(StatReply::decode(stat, &numbers) == 0 && numbers.entries == 1 && numbers.bytes == 5);
  show("stat-reply", stat);

  const TrimToRequest trim_to{3, 7, 100};
  show_message("trim-to-request", trim_to);
  show("more-reply", call(&host, stripe, "trim_to", trim_to.encode()));
}

// A batch that is large enough for the bytestream, and a record that was lost and then cut by a
// trim.
void large_and_lost_examples() {
  MemoryHost host;
  const char* const stripe = "stripe";
  call(&host, stripe, "seal", SealRequest{3, 4, 2, true}.encode());
  const std::string first(20000, 'a');
  const std::string second(12768, 'b');
  std::string write;
  CHECK(encode_write({3, kTime, kWriter, 4}, {{2, 41, first}, {6, 42, second}}, &write) == 0);
  call(&host, stripe, "write", write);
  MemoryObject object;
  CHECK(host.peek(stripe, &object));
  CHECK(object.stream == first + second);
  show_record("record-stream", object, "e.0000000000000006.2");

  object.omap["e.0000000000000006.2"].back() ^= 1;
  host.poke(stripe, object);
  TrimRequest trim;
  trim.epoch = 3;
  trim.runs = runs_of(4, {2});
  call(&host, stripe, "trim", trim.encode());
  CHECK(host.peek(stripe, &object));
  show_record("record-lost", object, "e.0000000000000006.1");
}

void head_examples() {
  MemoryHost host;
  const char* const head = "head";
  const HeadCreateRequest create{"orders", kLogId};
  show_message("head-create-request", create);
  call(&host, head, "head_create", create.encode());
  show("empty-request", encode_empty());
  show_message("epoch-next-request", EpochNextRequest{4});
  const std::string next = call(&host, head, "epoch_next", EpochNextRequest{4}.encode());
  EpochNextReply epoch;
  CHECK(EpochNextReply::decode(next, &epoch) == 0 && epoch.epoch == 1);
  show("epoch-next-reply", next);
  show_message("tail-raise-request", TailRaiseRequest{kLogId, 1, 100});
  call(&host, head, "tail_raise", TailRaiseRequest{kLogId, 1, 100}.encode());
  const TrimPointRequest trim{kLogId, 40, false};
  show_message("trim-point-request", trim);
  call(&host, head, "trim_point_raise", trim.encode());

  View view;
  view.epoch = 1;
  view.log_id = kLogId;
  view.sequencer = "tcp://10.0.0.1:7878";
  view.stripes = {{1, 0, limits::end_open, 4}};
  view.options = {{"owner", "shop"}};
  show_message("view", view);
  const std::string bytes = view.encode();
  const ViewProposeRequest propose{0, bytes};
  show_message("view-propose-request", propose);
  call(&host, head, "view_propose", propose.encode());
  show("epoch-read-reply", call(&host, head, "epoch_read", encode_empty()));
  show_message("view-read-request", ViewReadRequest{0, 16, true});
  const std::string views = call(&host, head, "view_read", ViewReadRequest{0, 16, true}.encode());
  ViewReadReply reply;
  CHECK(ViewReadReply::decode(views, &reply) == 0);
  CHECK(reply.views.size() == 1 && reply.views[0] == bytes && reply.encode() == views);
  show("view-read-reply", views);

  MemoryObject object;
  CHECK(host.peek(head, &object));
  show("stored-head", object.attrs.at("zlog.head"));
  show_record("stored-view", object, "v.0000000000000001");
}

// A stripe that was announced and not made, and one that a view has left out.
void stripe_index_examples() {
  MemoryHost host;
  const char* const head = "head";
  call(&host, head, "head_create", HeadCreateRequest{"orders", kLogId}.encode());
  View view;
  view.log_id = kLogId;
  for (const uint32_t width : {4u, 8u, 2u}) {
    call(&host, head, "epoch_next", EpochNextRequest{width}.encode());
  }
  view.epoch = 1;
  view.stripes = {{1, 0, limits::end_open, 4}};
  const std::string first = view.encode();
  call(&host, head, "view_propose", ViewProposeRequest{0, first}.encode());
  view.epoch = 3;
  view.stripes = {{3, 100, limits::end_open, 2}};
  const std::string second = view.encode();
  call(&host, head, "view_propose", ViewProposeRequest{1, second}.encode());

  const StripesReadRequest read{kLogId, 50, 10};
  show_message("stripes-read-request", read);
  const std::string archived = call(&host, head, "stripes_read", read.encode());
  StripesReadReply stripes;
  CHECK(StripesReadReply::decode(archived, &stripes) == 0 && stripes.encode() == archived);
  show("stripes-read-reply", archived);
  const StripesLooseRequest request{kLogId, 0, 10};
  show_message("stripes-loose-request", request);
  const std::string loose = call(&host, head, "stripes_loose", request.encode());
  StripesLooseReply reply;
  CHECK(StripesLooseReply::decode(loose, &reply) == 0 && reply.encode() == loose);
  show("stripes-loose-reply", loose);
  show_message("stripe-forget-request", StripeForgetRequest{kLogId, 2});

  MemoryObject object;
  CHECK(host.peek(head, &object));
  show_record("stored-archived-stripe", object, "t.0000000000000063");
  show_record("stored-loose-stripe", object, "l.0000000000000002");
}

void cursor_examples() {
  MemoryHost host;
  const char* const head = "head";
  call(&host, head, "head_create", HeadCreateRequest{"orders", kLogId}.encode());
  const CursorCommitRequest commit{kLogId, "app", CommitMode::kCreate, 100, kTime};
  show_message("cursor-commit-request", commit);
  call(&host, head, "cursor_commit", commit.encode());
  const CursorRequest cursor{kLogId, "app"};
  show_message("cursor-request", cursor);
  const std::string read = call(&host, head, "cursor_read", cursor.encode());
  CursorReadReply position;
  CHECK(CursorReadReply::decode(read, &position) == 0 && position.encode() == read);
  show("cursor-read-reply", read);
  const CursorListRequest list{kLogId, "a", 100};
  show_message("cursor-list-request", list);
  const std::string cursors = call(&host, head, "cursor_list", list.encode());
  CursorListReply reply;
  CHECK(CursorListReply::decode(cursors, &reply) == 0 && reply.encode() == cursors);
  CHECK(reply.cursors.size() == 1 && reply.cursors[0].name == "app" && !reply.more);
  show("cursor-list-reply", cursors);

  MemoryObject object;
  CHECK(host.peek(head, &object));
  show_record("stored-cursor", object, "c.app");
}

void delivery_examples() {
  MemoryHost host;
  const char* const head = "head";
  call(&host, head, "head_create", HeadCreateRequest{"orders", kLogId}.encode());
  const DeliveryRequest delivery{kLogId, "query", 3, 1};
  show_message("delivery-request", delivery);
  const DeliveryBeginRequest begin{delivery, kTime};
  show_message("delivery-begin-request", begin);
  const std::string begun = call(&host, head, "delivery_begin", begin.encode());
  DeliveryBeginReply attempt;
  CHECK(DeliveryBeginReply::decode(begun, &attempt) == 0 && attempt.encode() == begun);
  show("delivery-begin-reply", begun);
  const DeliveryGrantRequest grant{delivery, attempt.incarnation, 1, 0, 100, 10, false};
  show_message("delivery-grant-request", grant);
  call(&host, head, "delivery_grant", grant.encode());
  const std::string read = call(&host, head, "delivery_read", delivery.encode());
  DeliveryReadReply reply;
  CHECK(DeliveryReadReply::decode(read, &reply) == 0 && reply.encode() == read);
  CHECK(reply.grants.size() == 1 && reply.grants[0].count == 10);
  show("delivery-read-reply", read);

  MemoryObject object;
  CHECK(host.peek(head, &object));
  show_record("stored-source", object, "s.query");
  show_record("stored-delivery", object, "p.query/0000000000000003.00000001");
  const DeliveryListRequest list{kLogId, "a", 100};
  show_message("delivery-list-request", list);
  const std::string sources = call(&host, head, "delivery_list", list.encode());
  DeliveryListReply listed;
  CHECK(DeliveryListReply::decode(sources, &listed) == 0 && listed.encode() == sources);
  CHECK(listed.sources.size() == 1 && listed.sources[0].name == "query" && !listed.more);
  show("delivery-list-reply", sources);
  const DeliveryDoneRequest done{kLogId, "query", 4, attempt.incarnation, kTime};
  show_message("delivery-done-request", done);
  call(&host, head, "delivery_done", done.encode());
}

void directory_examples() {
  MemoryHost host;
  const char* const directory = "directory";
  const DirectoryEntryRequest entry{"orders", kLogId};
  show_message("directory-entry-request", entry);
  call(&host, directory, "directory_add", entry.encode());
  show_message("directory-list-request", DirectoryListRequest{"audit", 100});
  const std::string names =
      call(&host, directory, "directory_list", DirectoryListRequest{"audit", 100}.encode());
  DirectoryListReply reply;
  CHECK(DirectoryListReply::decode(names, &reply) == 0);
  CHECK(reply.names.size() == 1 && reply.names[0] == "orders" && !reply.more);
  show("directory-list-reply", names);
  const AddressMessage address{"tcp://10.0.0.1:7878"};
  show_message("address-message", address);
  call(&host, directory, "sequencer_announce", address.encode());
  CHECK(call(&host, directory, "sequencer_find", encode_empty()) == address.encode());

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
  cursor_examples();
  delivery_examples();
  stripe_index_examples();
  directory_examples();
  return 0;
}
