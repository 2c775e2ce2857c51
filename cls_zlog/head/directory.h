#pragma once

#include "cls_zlog/base/object.h"
#include "cls_zlog/base/result.h"
#include "cls_zlog/wire/head_messages.h"

// The methods on a directory object, which lists the logs of one pool and namespace and stores the
// address of their sequencer. Both are only hints, because a log exists if and only if its head
// object does. Methods return -EIO if stored bytes are damaged, except that adding a log or
// announcing an address replaces damaged bytes.
namespace zlog::directory {

// The attribute with the announced address.
constexpr const char* kSequencer = "zlog.sequencer";

// Adds a log to the list, in place of any earlier log with its name. Creates the object if needed.
Result<Empty> add(Object& object, const NamedLogRequest& request);

// Removes a log from the list. Also succeeds if it is not listed or another log now has its name.
Result<Empty> remove(Object& object, const NamedLogRequest& request);

// Returns a page of names in ascending order.
Result<DirectoryListReply> list(Object& object, const DirectoryListRequest& request);

// Announces a sequencer's address, which replaces an earlier one. Creates the object if needed.
Result<Empty> announce(Object& object, const AddressMessage& request);

// Withdraws an announcement. Also succeeds, without a change, if another address is announced.
Result<Empty> withdraw(Object& object, const AddressMessage& request);

// Returns the announced address; empty if there is none.
Result<AddressMessage> find(Object& object, const Empty& request);

}  // namespace zlog::directory
