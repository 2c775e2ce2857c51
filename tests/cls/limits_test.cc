// The protocol at its limits: what is refused, and that what is just allowed works.

#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include "check.h"
#include "cls_zlog/base/limits.h"
#include "cls_zlog/wire/frame.h"
#include "stripe_client.h"

namespace {

using namespace zlog;

constexpr uint32_t kMiB = 1u << 20;
const std::string kWriter(limits::writer_bytes, 'w');

std::string in_frame(std::string_view fields) {
  std::string request(wire::kFrameBytes, '\0');
  wire::write_frame_head({1, 1}, fields.size(), request.data());
  return request.append(fields);
}

// A trim of one run with any numbers in it, valid or not.
std::string raw_trim(uint32_t stride, uint32_t count, uint64_t first, uint32_t length) {
  std::string fields;
  wire::Writer(&fields).u64(1).u32(stride).u32(count).u64(first).u32(length);
  return in_frame(fields);
}

void positions_at_the_edge_of_their_range() {
  StripeClient client(1, 0);
  CHECK(client.seal(1, true).code == kOk);
  const uint64_t last = limits::position_max;
  CHECK(client.write(1, 0, kWriter, {{last, 1, "end"}}).code == kOk);
  CHECK(client.read_all(1, {last - 1, last})[1].data == "end");
  CHECK(client.call("trim", raw_trim(1, 1, last + 1, 1)).code == -EINVAL);
  CHECK(client.call("trim", raw_trim(1, 1, last, 2)).code == -EINVAL);
  CHECK(client.call("trim", raw_trim(1, 1, UINT64_MAX, 65536)).code == -EINVAL);
  CHECK(client.call("trim", raw_trim(1024, 1, last - 5, 65536)).code == -EINVAL);
  CHECK(client.trim_to(1, last + 2, 1).code == -EINVAL);
  CHECK(client.trim_to(1, last + 1, 1).code == kOk);
  CHECK(client.stat(1).entries == 0 && client.stat(1).highest == last);
  CHECK(client.write(1, 0, kWriter, {{7, 2, "late"}}).number() == 7);
}

void runs_that_lie() {
  StripeClient client(4, 1);
  CHECK(client.seal(1, true).code == kOk);
  for (const std::string& request :
       {raw_trim(4, 0, 1, 1), raw_trim(4, 2, 1, 1), raw_trim(4, UINT32_MAX, 1, 1),
        raw_trim(4, 1, 1, 0), raw_trim(4, 1, 1, limits::entries_max + 1), raw_trim(0, 1, 1, 1),
        raw_trim(limits::width_max + 1, 1, 1, 1), raw_trim(4, 1, 2, 1), raw_trim(2, 1, 1, 1)}) {
    CHECK(client.call("trim", request).code == -EINVAL);
  }
  std::string overlapping = raw_trim(4, 2, 1, 3).substr(wire::kFrameBytes);
  wire::Writer(&overlapping).u64(9).u32(1);
  CHECK(client.call("trim", in_frame(overlapping)).code == -EINVAL);
  std::string touching = raw_trim(4, 2, 1, 2).substr(wire::kFrameBytes);
  wire::Writer(&touching).u64(9).u32(1);
  CHECK(client.call("trim", in_frame(touching)).code == kOk);
  CHECK(client.stat(1).records == 1);
}

// As many entries as a request may hold, filled in one go and written in another; one more is
// refused.
void as_many_entries_as_allowed() {
  StripeClient client(2, 1);
  CHECK(client.seal(1, true).code == kOk);
  std::vector<uint64_t> positions;
  std::vector<NewEntry> entries;
  for (uint32_t i = 0; i < limits::entries_max; i++) {
    positions.push_back(client.position(i));
    entries.push_back({client.position(limits::entries_max + i), i, "x"});
  }
  CHECK(client.fill(1, 0, kWriter, FillReason::kAsked, positions).code == kOk);
  CHECK(client.stat(1).records == 1);
  CHECK(client.trim(1, {positions[0], positions[500], positions[501]}).code == kOk);
  CHECK(client.stat(1).records == 4);
  CHECK(client.read_all(1, positions)[499].state == EntryState::kFilled);
  CHECK(client.read_all(1, positions)[500].state == EntryState::kTrimmed);
  CHECK(client.write(1, 0, kWriter, entries).code == kOk);
  CHECK(client.write(1, 0, kWriter, entries).code == kOk);
  CHECK(client.stat(1).entries == limits::entries_max);
  entries.push_back({entries.back().position + 2, 1, "x"});
  std::string request;
  CHECK(encode_write({1, 0, kWriter, 2}, entries, &request) == -EINVAL);
}

void bytes_of_an_entry_and_of_a_request() {
  const std::string largest(limits::entry_bytes_max, 'x');
  const std::string larger = largest + "x";
  std::string request;
  CHECK(encode_write({1, 0, kWriter, 1}, {{0, 1, larger}}, &request) == -EINVAL);
  CHECK(encode_write({1, 0, kWriter, 1}, {{0, 1, largest}, {1, 2, largest}}, &request) == -EINVAL);
  CHECK(encode_write({1, 0, kWriter, 1}, {{0, 1, "a"}, {1, 1 + (1ull << 32), "b"}}, &request) ==
        -EINVAL);
  StripeClient client(1, 0);
  CHECK(client.seal(1, true).code == kOk);
  CHECK(client.call("write", std::string(limits::request_bytes_max + 1, '\x01')).code == -EINVAL);
  CHECK(client.write(1, 0, kWriter, {{0, 1, largest}, {1, 2, ""}, {2, 3, "abc"}}).code == kOk);
  std::vector<ReadResult> results;
  CHECK(client.read(1, 0, {0, 1, 2}, &results).code == kOk);
  CHECK(results.size() == 1 && results[0].data == largest);
  CHECK(client.read(1, 0, {1, 2}, &results).code == kOk);
  CHECK(results.size() == 1 && results[0].state == EntryState::kWritten);
  CHECK(client.read(1, 2, {1, 2}, &results).code == kOk && results.size() == 1);
  CHECK(client.read(1, 3, {1, 2}, &results).code == kOk && results.size() == 2);
}

// Data that no longer fits the bytestream goes into values; a call that would have to read too
// many of them is refused or stops early.
void a_full_bytestream() {
  StripeClient client(1, 0);
  CHECK(client.seal(1, true).code == kOk);
  const std::string data(15 * kMiB, 'x');
  for (uint64_t p = 0; p < 14; p += 2) {
    CHECK(client.write(1, 0, kWriter, {{p, p, data}, {p + 1, p + 1, data}}).code == kOk);
  }
  CHECK(client.stat(1).stream_bytes == 120 * kMiB && client.stat(1).records == 4 + 6);
  CHECK(client.read_all(1, {11, 12})[1].data == data);
  std::vector<ReadResult> results;
  const std::vector<uint64_t> inlined = {8, 9, 10, 11, 12, 13};
  CHECK(client.read(1, limits::read_reply_bytes_max, inlined, &results).code == kOk);
  CHECK(results.size() == 2);
  CHECK(client.trim(1, inlined).code == -E2BIG);
  CHECK(client.read_all(1, {8})[0].state == EntryState::kWritten);
  CHECK(client.trim(1, {7, 8, 9}).code == kOk);
  CHECK(client.stat(1).entries == 11 && client.stat(1).bytes == 11 * data.size());
  int calls = 1;
  while (client.trim_to(1, 13, limits::trim_records_max).more()) calls++;
  CHECK(calls > 1 && client.stat(1).entries == 1 && client.stat(1).records == 1);
  CHECK(client.read_all(1, {13})[0].data == data);
  CHECK(client.content().stream.find('x') == std::string::npos);
}

}  // namespace

int main() {
  positions_at_the_edge_of_their_range();
  runs_that_lie();
  as_many_entries_as_allowed();
  bytes_of_an_entry_and_of_a_request();
  a_full_bytestream();
  return 0;
}
