#pragma once

#include "cls_zlog/base/object.h"
#include "cls_zlog/base/result.h"
#include "cls_zlog/wire/head_messages.h"

// The methods on the directory object, one per pool and namespace: the names of the logs there,
// and the address of a sequencer that serves them. It is a hint for people and for clients that
// look for a sequencer: whether a log exists, its head object decides. All answer -EINVAL for a
// malformed request and -EIO when stored bytes are damaged; adding a log or announcing an address
// repairs that one.
namespace zlog::directory {

// The attribute with the announced address.
constexpr const char* kSequencer = "zlog.sequencer";

// Lists a log under its name, with its id; an earlier log's entry of that name is replaced. Makes
// the object if there is none.
Result<Empty> add(Object& object, const DirectoryEntryRequest& request);

// Takes a log off the list. No error when it is not there, or when the name is another log's by
// now: a late remover never unlists a new log of the same name.
Result<Empty> remove(Object& object, const DirectoryEntryRequest& request);

// Names in ascending order, a page at a time.
Result<DirectoryListReply> list(Object& object, const DirectoryListRequest& request);

// Says where a sequencer can be reached; it takes the place of an earlier one. Makes the object if
// there is none.
Result<Empty> announce(Object& object, const AddressMessage& request);

// Takes an announcement back, if it is still this one; otherwise there is nothing to do.
Result<Empty> withdraw(Object& object, const AddressMessage& request);

// The announced address; empty when there is none.
Result<AddressMessage> find(Object& object, const Empty& request);

}  // namespace zlog::directory
