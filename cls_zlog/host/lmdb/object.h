#pragma once

#include <lmdb.h>

#include <string>
#include <string_view>

#include "cls_zlog/host/listing.h"
#include "cls_zlog/host/lmdb/redo_log.h"
#include "cls_zlog/host/transaction.h"

namespace zlog {

// The objects of an embedded store, which are all in one tree (docs/formats/embedded.md). A
// bytestream is stored as extents, which never overlap. Bytes outside all extents read as zeros.

// Lists the names of objects that begin with `prefix` and are above `after`.
int list_objects(MDB_txn* txn, std::string_view prefix, std::string_view after, Listing* page);

// Runs a method on an object inside a transaction, in a database of the given format. Adds all
// changes to `changes` if that is not nullptr.
Outcome run_in_transaction(MDB_txn* txn, int format, Redo* changes, std::string_view object,
                           const Method& method, std::string_view payload, std::string* reply);

}  // namespace zlog
