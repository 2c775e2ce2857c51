#pragma once

#include <string>

namespace zlog {

// Makes what the database file `backup` holds the state of the store in `directory`: another
// incarnation, for which nothing was granted yet. `backup` may be the store's own data.mdb, where it
// was put by hand; otherwise it stays as it is. A process may die at any moment: until the copy is
// whole and synced the store is as before, then it is the backup.
//
// Answers 0 or a negative errno, and may then say more in `reason`: EBUSY while the store is open,
// here or elsewhere; EPROTO when the backup holds something else; EIO when it is damaged. A child
// process reads the backup, so damaged pages end the child and not the caller.
int restore_store(const std::string& directory, const std::string& backup, std::string* reason);

}  // namespace zlog
