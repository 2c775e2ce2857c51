#pragma once

#include <string>

namespace zlog {

// Restores the store in `directory` from the database file `backup`, as a new incarnation without
// grants. `backup` may be the store's own data.mdb, if the user copied the backup there; another
// file is not changed. If the process dies, the store is the old one or, if the copy was complete
// and synced, the backup.
//
// Returns 0, or a negative errno with an optional explanation in `reason`. The errno is EBUSY if
// this or another process has the store open, EPROTO if the backup is not a store, and EIO if the
// backup is damaged. A child process reads the backup, so that damaged pages crash the child and
// not the caller.
int restore_store(const std::string& directory, const std::string& backup, std::string* reason);

}  // namespace zlog
