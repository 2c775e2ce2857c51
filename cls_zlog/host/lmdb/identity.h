#pragma once

#include <lmdb.h>

#include <string>

namespace zlog {

// What a database says of itself: the format of what it holds, and its incarnation, which is random
// and made anew when a backup takes the store's place: what was written since the backup is of
// another history, also where transactions and positions have the same numbers.
//
// All answer 0 or a negative errno.

// ENOENT when the database does not say; EPROTO when it has another format.
int check_format(MDB_txn* txn, MDB_dbi dbi);

// ENOENT when it has none: an earlier version made it.
int read_incarnation(MDB_txn* txn, MDB_dbi dbi, std::string* incarnation);

// Says that the format is this version's newest.
int put_format(MDB_txn* txn, MDB_dbi dbi);

// Changes nothing, by a write.
int touch_format(MDB_txn* txn, MDB_dbi dbi);

int put_new_incarnation(MDB_txn* txn, MDB_dbi dbi, std::string* incarnation);

}  // namespace zlog
