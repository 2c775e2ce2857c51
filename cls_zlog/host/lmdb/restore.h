#pragma once

#include <string>

namespace zlog {

// Restores the store in `directory` from the database file `backup`, as a new incarnation, for which
// nothing was granted yet. `backup` may be the store's own data.mdb, if it was copied there by hand;
// otherwise it is not changed. A process may die at any moment: until the copy is whole and synced the
// store is as before, then it is the backup.
//
// Returns 0 or a negative errno, and may then say more in `reason`. EBUSY: the store is open, here or
// elsewhere. EPROTO: the backup is not a store. EIO: it is damaged. A child process reads the backup,
// so damaged pages end the child and not the caller.
int restore_store(const std::string& directory, const std::string& backup, std::string* reason);

}  // namespace zlog
