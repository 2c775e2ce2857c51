#include <lmdb.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "limits.h"

namespace zlog::bench {
namespace {

constexpr size_t kMapBytes = size_t{1} << 40;      // address space, as for an embedded store
constexpr uint64_t kBytesMax = uint64_t{4} << 30;  // on disk, per measurement

// Throws std::system_error for an error of LMDB. Its own codes are negative, an errno is positive.
void lmdb_check(int result, const char* what) {
  if (result == 0) return;
  check(result > 0 ? -result : -EIO, std::string(what) + ": " + mdb_strerror(result));
}

// Returns a key that sorts like its number.
struct Key {
  explicit Key(uint64_t number) {
    for (size_t i = 0; i < bytes.size(); i++) {
      bytes[bytes.size() - 1 - i] = static_cast<uint8_t>(number >> (8 * i));
    }
  }
  MDB_val value() { return MDB_val{bytes.size(), bytes.data()}; }

  std::array<uint8_t, 8> bytes;
};

// A temporary database. Like LMDB by default, it syncs at every commit.
class Database {
 public:
  explicit Database(const std::string& directory) : directory_(directory) {
    std::filesystem::create_directory(directory);
    lmdb_check(mdb_env_create(&env_), "LMDB");
    lmdb_check(mdb_env_set_mapsize(env_, kMapBytes), "LMDB's map");
    lmdb_check(mdb_env_open(env_, directory.c_str(), MDB_NOTLS, 0660), "opening LMDB");
    MDB_txn* txn = begin(0);
    lmdb_check(mdb_dbi_open(txn, nullptr, 0, &dbi_), "LMDB's database");
    lmdb_check(mdb_txn_commit(txn), "LMDB's commit");
  }
  ~Database() {
    mdb_env_close(env_);
    std::filesystem::remove_all(directory_);
  }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  uint64_t keys() const { return keys_; }

  // Adds `count` keys after the existing ones in one durable transaction.
  void append(uint64_t count, std::string& data) {
    MDB_txn* txn = begin(0);
    for (uint64_t i = 0; i < count; i++) {
      Key key(keys_++);
      MDB_val at = key.value(), value{data.size(), data.data()};
      lmdb_check(mdb_put(txn, dbi_, &at, &value, MDB_APPEND), "LMDB's put");
    }
    lmdb_check(mdb_txn_commit(txn), "LMDB's commit");
  }

  // Copies `count` values in a row out, in a snapshot of its own.
  void scan(uint64_t first, uint64_t count, std::string* out) {
    MDB_txn* txn = begin(MDB_RDONLY);
    MDB_cursor* cursor = nullptr;
    lmdb_check(mdb_cursor_open(txn, dbi_, &cursor), "LMDB's cursor");
    Key key(first);
    MDB_val at = key.value(), value{};
    out->clear();
    for (uint64_t i = 0; i < count; i++) {
      const MDB_cursor_op next = i == 0 ? MDB_SET_KEY : MDB_NEXT;
      lmdb_check(mdb_cursor_get(cursor, &at, &value, next), "LMDB's scan");
      out->append(static_cast<const char*>(value.mv_data), value.mv_size);
    }
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
  }

 private:
  MDB_txn* begin(unsigned flags) {
    MDB_txn* txn = nullptr;
    lmdb_check(mdb_txn_begin(env_, nullptr, flags, &txn), "LMDB's transaction");
    return txn;
  }

  const std::string directory_;
  MDB_env* env_ = nullptr;
  MDB_dbi dbi_ = 0;
  uint64_t keys_ = 0;
};

// A call is a synced transaction of `keys` values, `size` bytes each.
Measure puts(const std::string& directory, const Options& options) {
  const uint64_t keys = options.number("keys");
  return [=, data = noise(options.number("size"))](double seconds) mutable {
    Database database(directory + "/lmdb");
    return repeat_alone(seconds, [&] {
      if (database.keys() * data.size() > kBytesMax) return false;
      database.append(keys, data);
      return true;
    });
  };
}

// A database of `entries` values to read.
std::shared_ptr<Database> filled(const std::string& directory, const Options& options) {
  constexpr uint64_t kPutTogether = 4096;
  auto database = std::make_shared<Database>(directory + "/lmdb-to-read");
  std::string data = noise(options.number("size"));
  while (database->keys() < options.number("entries")) database->append(kPutTogether, data);
  return database;
}

// One call: a window of values in a row, copied out.
Measure scans(const std::string& directory, const Options& options) {
  const uint64_t entries = options.number("entries");
  const uint64_t window = std::min(options.number("window"), entries);
  return [=, database = filled(directory, options)](double seconds) {
    uint64_t next = 0;
    std::string out;
    return repeat_alone(seconds, [&] {
      if (next + window > entries) next = 0;
      database->scan(next, window, &out);
      next += window;
      return true;
    });
  };
}

}  // namespace

Measure directory_limit(const std::string& kind, const Options& options) {
  const std::string directory = options.text_or_empty("directory");
  if (kind == "lmdb_puts") return puts(directory, options);
  if (kind == "lmdb_scans") return scans(directory, options);
  return nullptr;
}

}  // namespace zlog::bench
