#pragma once

#include <string>

namespace zlog {

// Restores the store in `directory` from the database file `backup`, as a new incarnation with a
// new sequencer. `backup` can be the store's own data.mdb, if the user copied the backup there;
// other files are not changed. If the process dies, the store has its old data or the whole backup.
//
// Returns 0, or a negative errno with an optional explanation in `reason`: EBUSY if this or another
// process has the store open, EPROTO if the backup is not a store, and EIO if it is damaged. A
// child process reads the backup, because damaged pages can crash their reader.
int restore_store(const std::string& directory, const std::string& backup, std::string* reason);

}  // namespace zlog
