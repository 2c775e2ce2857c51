#pragma once

namespace zlog {

// A method's result. If the code is not kOk, the method refused the request and changed nothing;
// the code's comment says which number the reply contains, if any. Malformed requests, and failures
// of RADOS or the host, return negative errnos instead. The values never change.
enum Code : int {
  kOk = 0,
  kStaleEpoch = 1,    // the request's epoch is below the one in the reply
  kReadOnly = 2,      // the position in the reply is written, filled or trimmed
  kNotWritten = 3,    // the position is not written yet (clients derive this from its state)
  kInvalidated = 4,   // the position is filled or trimmed (clients derive this from its state)
  kInvalidEpoch = 5,  // the proposed epoch is not above this one, or was not granted

  kCursorAhead = 16,     // the cursor is at this position, which is higher
  kHeldByCursor = 17,    // a cursor is at this position, which is lower
  kBelowTrimPoint = 18,  // the position is below this trim point
  kNotFound = 19,  // no such cursor, producer or part exists; for a producer, the next incarnation
  kExists = 20,    // the cursor is at this position; or the stripe with this id has another file
  kSuperseded = 21,     // this newer attempt, producer incarnation or version exists
  kSequenceDone = 22,   // the sequence number is complete; this is the first incomplete one
  kLimitReached = 23,   // the request would exceed this limit
  kUnreadable = 24,     // a newer class has stored something at this position
  kRequestTooNew = 25,  // the class must support this version of the message
  kStoredTooNew = 26,   // the class must support this version of the stored value
  kBeyondStripe = 27,   // the live stripe accepts no position from this one on
  kLost = 28,           // the entry at this position is damaged or lost
  kBeyondTail = 29,     // this is the highest recorded tail
  kSameId = 30,         // the append here has the same id, length and checksum; compare the data
  kFrozen = 31,         // the stripe is frozen; only trim_to trims positions from this one on
};

// The state of one position in a read's reply. The values are on the wire and on disk.
enum class EntryState : unsigned char {
  kWritten = 0,
  kUnwritten = 1,
  kFilled = 2,
  kTrimmed = 3,
  kLost = 4,        // something was stored here and its bytes are damaged or gone
  kUnreadable = 5,  // something is stored here that a newer version wrote, and it is intact
};

// What an append did with one of its parts. The values are on the wire.
enum class PartState : unsigned char {
  kAppended = 0,
  kConflict = 1,
  kSearched = 2,  // not stored, and no conflict was found yet
};

// Why a position was filled. The values are on the wire and on disk.
enum class FillReason : unsigned char {
  kUnknown = 0,
  kReaderWaited = 1,
  kAsked = 2,
  kWriterGaveUp = 3,
};

// How the data of a block is compressed. The values are on the wire and on disk.
enum class Compression : unsigned char {
  kNone = 0,
  kZstd = 1,  // one frame of RFC 8878
  kLz4 = 2,   // one block of LZ4, without a frame
};

}  // namespace zlog
