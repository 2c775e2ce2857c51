#pragma once

namespace zlog {

// What a method answers when it ran: the inner code, >= 0. A negative errno is the outer result
// (RADOS or the host failed, or the request was refused as malformed) and then no inner code
// exists. The values are those of the original zlog and never change.
enum Code : int {
  kOk = 0,
  kStaleEpoch = 1,    // the request's epoch is below the object's: refresh the view
  kReadOnly = 2,      // the position is taken: written by somebody else, filled or trimmed
  kNotWritten = 3,    // nothing is at the position yet (client side: a read's entry state)
  kInvalidated = 4,   // the position was filled or trimmed (client side: a read's entry state)
  kInvalidEpoch = 5,  // the proposed epoch does not fit: not above the object's, or not granted
};

// The state of one position in a read's reply. The values are on the wire and on disk.
enum class EntryState : unsigned char {
  kWritten = 0,
  kUnwritten = 1,
  kFilled = 2,
  kTrimmed = 3,
  kLost = 4,  // something was stored here and its bytes are damaged
};

// Why a position was filled. The values are on the wire and on disk.
enum class FillReason : unsigned char {
  kUnknown = 0,
  kReaderWaited = 1,
  kAsked = 2,
  kWriterGaveUp = 3,
};

}  // namespace zlog
