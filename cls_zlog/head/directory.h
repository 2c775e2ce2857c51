#pragma once

#include "cls_zlog/base/object.h"
#include "cls_zlog/base/result.h"
#include "cls_zlog/wire/head_messages.h"

// The methods on a directory object: the names of the logs of a pool and namespace, and the address
// of a sequencer there. Both are hints: a log exists if its head object does. All answer -EIO if
// stored bytes are damaged; adding a log or announcing an address replaces them.
namespace zlog::directory {

// The attribute with the announced address.
constexpr const char* kSequencer = "zlog.sequencer";

// Lists a log under its name, in place of an earlier log of that name. Makes the object if needed.
Result<Empty> add(Object& object, const NamedLogRequest& request);

// Removes a log from the list. kOk also if it is not listed, or if the name belongs to another log
// now.
Result<Empty> remove(Object& object, const NamedLogRequest& request);

// A page of names, ascending.
Result<DirectoryListReply> list(Object& object, const DirectoryListRequest& request);

// Announces a sequencer's address in place of an earlier one. Makes the object if needed.
Result<Empty> announce(Object& object, const AddressMessage& request);

// Withdraws an announcement; kOk also if another address is announced.
Result<Empty> withdraw(Object& object, const AddressMessage& request);

// The announced address; empty if there is none.
Result<AddressMessage> find(Object& object, const Empty& request);

}  // namespace zlog::directory
