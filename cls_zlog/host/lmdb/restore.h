#pragma once

#include <string>

namespace zlog {

// Restores the store in `directory` from the database file `backup`, as a new incarnation without
// any grants. `backup` may be the store's own data.mdb, if it was copied there by hand; another
// file is not changed. If the process dies, the store is the old one or, once the copy is complete
// and synced, the backup.
//
// Returns 0, or a negative errno with an optional explanation in `reason`. EBUSY: the store is
// open, in this process or another. EPROTO: the backup is not a store. EIO: the backup is damaged.
// A child process reads the backup, so that damaged pages end the child and not the caller.
int restore_store(const std::string& directory, const std::string& backup, std::string* reason);

}  // namespace zlog
