#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/stripe/header.h"
#include "cls_zlog/base/object.h"
#include "cls_zlog/base/span.h"

// The methods on a stripe object: the object that holds every width-th position of a stripe. What
// each takes and answers is in messages.h and docs/formats/wire.md. All answer
//   -EINVAL  the request is malformed, or about positions that are not this object's
//   -ENOENT  the object was never sealed, or is removed
//   -EIO     stored bytes that it can't do without are damaged
//   kStaleEpoch (with the object's epoch)  the request's epoch is lower
// A method decides its answer before it changes anything: a positive answer applies what was
// buffered.
namespace zlog::stripe {

// Installs a strictly greater epoch: from then on every lower one is refused. Answers the highest
// position that is taken, and how full the object is. Makes a missing object only when asked to, as for a new stripe: one that
// was lost is noticed (-ENOENT) and never silently replaced by an empty one. kInvalidEpoch (with
// the object's epoch): not greater. -EINVAL: the object was made for other positions. -EEXIST: an
// object that is none of ours.
int seal(Object& object, std::string_view in, std::string* out);

// Writes entries, all or none. Identity goes before epoch: when every position holds the entry
// already (same writer and number), the answer is kOk whatever the epoch. kReadOnly (with the
// first position taken): a position was written by somebody else, filled or trimmed. kStaleEpoch:
// at least one entry is not there and never will be by this request. kOk answers how full the object
// is.
int write(Object& object, std::string_view in, std::string* out);

// What is known of each position, and its data.
int read(Object& object, std::string_view in, std::string* out);

// The same without the data: its checksums are compared here, and what is sent are states and
// identities, of positions alike together.
int verify(Object& object, std::string_view in, std::string* out);

// Fills positions with junk, all or none; one that is filled or trimmed already is left as it is.
// kReadOnly (with the first such position): one is written.
int fill(Object& object, std::string_view in, std::string* out);

// Trims positions, whatever they hold, and frees their data. -E2BIG: too many records are touched.
int trim(Object& object, std::string_view in, std::string* out);

// Trims every position below one, and frees records that are wholly below it, a bounded number per
// call; answers whether some are left. Takes effect for readers and writers with the first call.
int trim_to(Object& object, std::string_view in, std::string* out);

// The highest position that is taken.
int max_position(Object& object, std::string_view in, std::string* out);

int stat(Object& object, std::string_view in, std::string* out);

// Removes the object. Nothing but a seal that makes objects brings it back.
int remove(Object& object, std::string_view in, std::string* out);

// kOk, or kStaleEpoch with its reply: whether a request of this epoch may still act on the object.
int check_epoch(const Header& header, uint64_t epoch, std::string* out);

// The positions (ascending) as spans, as long as possible.
std::vector<Span> spans_of(const std::vector<uint64_t>& positions, uint32_t stride);

}  // namespace zlog::stripe
