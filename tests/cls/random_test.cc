// Random calls on a stripe object, held against a simple model; then damage to what it stored,
// which may hide entries but never change one, free a position or go unnoticed.
//
//   random_test [SEED [RUNS]]      each run has a seed of its own, SEED, SEED + 1, …

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include "check.h"
#include "random.h"
#include "stripe_client.h"
#include "stripe_model.h"

namespace {

using namespace zlog;

constexpr uint64_t kStepsMax = 300;
constexpr uint64_t kIndexes = 60;  // positions that calls are about

struct Write {
  std::string writer;
  uint64_t timestamp = 0;
  std::vector<std::string> data;
  std::vector<NewEntry> entries;  // their data is in `data`
};

class Trial {
 public:
  explicit Trial(uint64_t seed)
      : random_(seed),
        stride_(1 + static_cast<uint32_t>(random_.below(4))),
        residue_(static_cast<uint32_t>(random_.below(stride_))),
        large_(random_.one_in(2)),
        client_(stride_, residue_),
        model_(stride_, residue_) {}

  void calls() {
    CHECK(client_.seal(1, false).code == -ENOENT);
    CHECK(client_.seal(1, true).code == model_.seal(1));
    for (uint64_t steps = random_.below(kStepsMax); steps > 0; steps--) {
      call();
      check_records();
    }
    check_counters();
  }

  void damages() {
    const MemoryObject healthy = client_.content();
    for (int i = 0; i < 20; i++) {
      client_.replace(healthy);
      damage_header(healthy);
      damage_record(healthy);
      swap_records(healthy);
      damage_stream(healthy);
    }
  }

 private:
  std::vector<uint64_t> some_positions() {
    std::vector<uint64_t> positions = random_.some_below(kIndexes);
    for (uint64_t& position : positions) position = client_.position(position);
    return positions;
  }

  std::vector<uint64_t> all_positions() const {
    std::vector<uint64_t> positions;
    for (uint64_t i = 0; i < kIndexes; i++) positions.push_back(client_.position(i));
    return positions;
  }

  // Mostly the object's, sometimes one lower or higher.
  uint64_t some_epoch() { return model_.epoch() + (random_.one_in(8) ? 1 : 0) - random_.one_in(8); }

  void call() {
    switch (random_.below(12)) {
      case 0:
        return seal();
      case 1:
      case 2:
        return writes_.empty() ? write(new_write()) : write(writes_[random_.below(writes_.size())]);
      case 3:
      case 4:
      case 5:
        return write(new_write());
      case 6:
        return fill();
      case 7:
        return trim();
      case 8:
        return trim_to();
      default:
        return read();
    }
  }

  void seal() {
    const uint64_t epoch = model_.epoch() + random_.below(3);
    const Answer answer = client_.seal(epoch, random_.one_in(2));
    CHECK(answer.code == model_.seal(epoch));
    if (answer.code == kInvalidEpoch) {
      CHECK(answer.number() == model_.epoch());
    } else {
      check_highest(answer.sealed().highest);
      check_fullness(answer.sealed().fullness);
    }
  }

  Write new_write() {
    Write write;
    write.writer = std::string(limits::writer_bytes, static_cast<char>('a' + random_.below(3)));
    write.timestamp = random_.below(1000);
    for (const uint64_t position : some_positions()) {
      const bool long_one = large_ && random_.one_in(2);
      write.data.push_back(random_.bytes(random_.below(long_one ? 30000 : 40)));
      write.entries.push_back({position, number_++, {}});
    }
    return write;
  }

  void write(Write write) {
    for (size_t i = 0; i < write.data.size(); i++) write.entries[i].data = write.data[i];
    if (model_.may_be_forgotten(write.entries)) return;
    const uint64_t epoch = some_epoch();
    const Answer answer = client_.write(epoch, write.timestamp, write.writer, write.entries);
    uint64_t blocked_by = 0;
    CHECK(answer.code ==
          model_.write(epoch, write.timestamp, write.writer, write.entries, &blocked_by));
    if (answer.code == kReadOnly) CHECK(answer.number() == blocked_by);
    if (answer.code == kStaleEpoch) CHECK(answer.number() == model_.epoch());
    if (answer.code == kOk) writes_.push_back(std::move(write));
  }

  void fill() {
    const uint64_t epoch = some_epoch();
    const uint64_t time = random_.below(1000);
    const auto reason = static_cast<FillReason>(random_.below(4));
    const std::string writer(limits::writer_bytes, 'f');
    const std::vector<uint64_t> positions = some_positions();
    const Answer answer = client_.fill(epoch, time, writer, reason, positions);
    uint64_t blocked_by = 0;
    CHECK(answer.code == model_.fill(epoch, time, writer, reason, positions, &blocked_by));
    if (answer.code == kReadOnly) CHECK(answer.number() == blocked_by);
  }

  void trim() {
    const uint64_t epoch = some_epoch();
    const std::vector<uint64_t> positions = some_positions();
    CHECK(client_.trim(epoch, positions).code == model_.trim(epoch, positions));
  }

  void trim_to() {
    const uint64_t epoch = some_epoch();
    const uint64_t near = model_.trim_point() + random_.below(3) * stride_;
    const uint64_t point = random_.one_in(20) ? random_.below(kIndexes * stride_) : near;
    const auto records = static_cast<uint32_t>(1 + random_.below(3));
    CHECK(client_.trim_to(epoch, point, records).code == model_.trim_to(epoch, point));
  }

  void read() {
    const uint64_t epoch = some_epoch();
    const auto bytes_max = static_cast<uint32_t>(random_.below(random_.one_in(2) ? 100 : 100000));
    const std::vector<uint64_t> positions = some_positions();
    std::vector<ReadResult> results;
    const Answer answer = client_.read(epoch, bytes_max, positions, &results);
    CHECK(answer.code == (epoch < model_.epoch() ? kStaleEpoch : kOk));
    size_t bytes = 0;
    for (size_t i = 0; i < results.size(); i++) {
      check(results[i], model_.at(positions[i]));
      bytes += results[i].data.size();
      CHECK(i == 0 || results[i].state != EntryState::kWritten || bytes <= bytes_max);
    }
    if (answer.code == kOk && results.size() < positions.size()) {
      CHECK(!results.empty());
      CHECK(bytes + model_.at(positions[results.size()]).data.size() > bytes_max);
    }
  }

  static void check(const ReadResult& real, const ReadResult& expected) {
    CHECK(real.state == expected.state && real.data == expected.data);
    if (real.state != EntryState::kWritten && real.state != EntryState::kFilled) return;
    CHECK(real.timestamp == expected.timestamp && real.writer == expected.writer);
    CHECK(real.number == expected.number && real.reason == expected.reason);
  }

  // As much as stat says: it is what decides when a stripe is full.
  void check_fullness(const Fullness& fullness) {
    const StatReply stat = client_.stat(model_.epoch());
    CHECK(fullness.records == stat.records);
    CHECK(fullness.bytes == std::max(stat.stream_bytes, stat.bytes));
  }

  void check_highest(const Highest& highest) const {
    CHECK(highest.has == model_.highest().has);
    CHECK(highest.position == model_.highest().position);
  }

  // No two records share a position (layout.h): their keys say which ones they have.
  void check_records() {
    uint64_t free_from = 0;
    for (const auto& [key, value] : client_.content().omap) {
      CHECK(first_of(key) >= free_from);
      free_from = last_of(key) + 1;
    }
  }

  void check_counters() {
    while (client_.trim_to(model_.epoch(), model_.trim_point(), 2).more()) {
    }
    uint64_t bytes = 0;
    for (const auto& [position, cell] : model_.cells()) bytes += model_.at(position).data.size();
    const StatReply stat = client_.stat(model_.epoch());
    CHECK(stat.entries == model_.entries() && stat.bytes == bytes);
    CHECK(stat.records == client_.content().omap.size());
    CHECK(stat.trim_point == model_.trim_point() && stat.object_epoch == model_.epoch());
    check_highest(stat.highest);
    for (uint64_t i = 0; i < kIndexes; i++) {
      const uint64_t position = client_.position(i);
      check(client_.read_all(model_.epoch(), {position})[0], model_.at(position));
    }
  }

  // The positions of the record with that key (layout.h).
  static uint64_t last_of(const std::string& key) {
    return std::strtoull(key.substr(2, 16).c_str(), nullptr, 16);
  }
  uint64_t first_of(const std::string& key) const {
    const uint64_t length = std::strtoull(key.substr(19).c_str(), nullptr, 16);
    return last_of(key) - (length - 1) * stride_;
  }

  // Every position still reads as the model says, or as lost if it is one of [first, last].
  void check_damaged(uint64_t first, uint64_t last) {
    const std::vector<uint64_t> positions = all_positions();
    const std::vector<ReadResult> results = client_.read_all(model_.epoch(), positions);
    for (size_t i = 0; i < positions.size(); i++) {
      const bool may_be_lost = first <= positions[i] && positions[i] <= last;
      if (may_be_lost && results[i].state == EntryState::kLost) continue;
      check(results[i], model_.at(positions[i]));
    }
  }

  void damage_header(MemoryObject object) {
    random_.damage(&object.attrs["zlog.header"]);
    client_.replace(object);
    CHECK(client_.seal(model_.epoch() + 1, true).code == -EIO);
    CHECK(client_.trim(model_.epoch(), {client_.position(0)}).code == -EIO);
  }

  void damage_stream(MemoryObject object) {
    if (object.stream.empty()) return;
    random_.damage(&object.stream);
    client_.replace(object);
    check_damaged(0, UINT64_MAX);
  }

  // Good records under each other's keys: all they cover is lost.
  void swap_records(MemoryObject object) {
    if (object.omap.size() < 2) return;
    const auto first = object.omap.begin();
    const auto second = std::next(first);
    if (first->second.size() != second->second.size()) return;
    std::swap(first->second, second->second);
    client_.replace(object);
    const std::vector<uint64_t> positions = all_positions();
    const std::vector<ReadResult> results = client_.read_all(model_.epoch(), positions);
    for (size_t i = 0; i < positions.size(); i++) {
      const bool covered = positions[i] >= model_.trim_point() &&
                           model_.cells().count(positions[i]) != 0 &&
                           positions[i] <= last_of(second->first);
      CHECK((results[i].state == EntryState::kLost) == covered);
    }
  }

  void damage_record(MemoryObject object) {
    if (object.omap.empty()) return;
    auto record = object.omap.begin();
    std::advance(record, random_.below(object.omap.size()));
    random_.damage(&record->second);
    const uint64_t first = first_of(record->first);
    const uint64_t last = last_of(record->first);
    client_.replace(object);
    check_damaged(first, last);

    // Lost positions are taken; one of them can be trimmed, and the others stay lost.
    const uint64_t epoch = model_.epoch();
    const uint64_t length = (last - first) / stride_ + 1;
    const uint64_t position = first + random_.below(length) * stride_;
    if (position < model_.trim_point()) return;
    const std::vector<ReadResult> before = client_.read_all(epoch, all_positions());
    if (before[(position - residue_) / stride_].state != EntryState::kLost) return;
    const std::string writer(limits::writer_bytes, 'z');
    const Answer written = client_.write(epoch, 0, writer, {{position, number_++, "new"}});
    CHECK(written.code == kReadOnly && written.number() == position);
    const Answer filled = client_.fill(epoch, 0, writer, FillReason::kUnknown, {position});
    CHECK(filled.code == kReadOnly && filled.number() == position);
    CHECK(client_.trim(epoch, {position}).code == kOk);
    const std::vector<ReadResult> after = client_.read_all(epoch, all_positions());
    for (size_t i = 0; i < after.size(); i++) {
      const bool trimmed = client_.position(i) == position;
      CHECK(after[i].state == (trimmed ? EntryState::kTrimmed : before[i].state));
      CHECK(after[i].data == before[i].data);
    }
    check_records();
  }

  Random random_;
  const uint32_t stride_;
  const uint32_t residue_;
  const bool large_;  // some batches are for the bytestream
  StripeClient client_;
  StripeModel model_;
  uint64_t number_ = 1;
  std::vector<Write> writes_;
};

}  // namespace

int main(int argc, char** argv) {
  const uint64_t first = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  const uint64_t runs = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 50;
  for (uint64_t seed = first; seed < first + runs; seed++) {
    std::printf("seed %" PRIu64 "\n", seed);
    std::fflush(stdout);
    Trial trial(seed);
    trial.calls();
    trial.damages();
  }
  return 0;
}
