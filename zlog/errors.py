"""Every error that zlog raises.

The message says what happened, and to which log, object or position. ``hint`` says what to do about
it, and ``retryable`` whether the same call may succeed later.
"""

import typing as _typing

if _typing.TYPE_CHECKING:
    from zlog.entry import Gap


class ZlogError(Exception):
    """Base class of zlog's errors.

    Attributes:
        hint: what to do about the error.
        retryable: whether the same call may succeed later without a change.
        positions: after a failed append of several entries, the position of each acknowledged
            entry, and None for the others; empty for other calls.
        call: the method of the object class that failed, and its object; empty if no method did.
    """

    hint: str = "Run `zlog doctor` to see which part is not working."
    retryable: bool = False
    positions: tuple[int | None, ...] = ()
    call: str = ""

    def __init__(
        self, message: str, *, hint: str | None = None, retryable: bool | None = None
    ) -> None:
        super().__init__(message)
        if hint is not None:
            self.hint = hint
        if retryable is not None:
            self.retryable = retryable


class StaleEpoch(ZlogError):
    """An operation had a lower epoch than the one its object was sealed with (CORFU, section 2.2).

    The client refreshes its view and retries; this error is raised only when its time budget is
    used up. ``epoch`` is the newer epoch, or 0 if it is unknown.
    """

    hint = "The log's layout is changing; try again."
    retryable = True
    epoch: int = 0


class InvalidEpoch(ZlogError):
    """A seal or a view had an epoch that is not above the current one.

    Another client has changed the layout first.
    """

    hint = "Another client is changing the log's layout; try again."
    retryable = True


class InvalidTag(ZlogError, ValueError):
    """An entry has too many tags, or a tag is empty or too long."""

    hint = "Tags are text of 1 to 128 bytes in UTF-8, up to 64 to an entry."


class AlreadyWritten(ZlogError):
    """The position holds an entry, so it can't be filled."""

    hint = "The position needs no fill: readers get the entry (`zlog read LOG POSITION`)."


class NotWritten(ZlogError):
    """Nothing was written at the position: it is a hole, or was not granted yet."""

    hint = (
        "Wait for its writer. If the writer has died and the position is below the tail, fill"
        " it (`zlog fill`)."
    )
    retryable = True


class _HoldsNoEntry(ZlogError):
    def __init__(self, message: str, *, hint: str | None = None, gap: "Gap | None" = None) -> None:
        super().__init__(message, hint=hint)
        self.gap = gap


class Invalidated(_HoldsNoEntry):
    """The position was filled or trimmed, and will never hold an entry.

    Attributes:
        gap: after a read of one position, whether it was filled or trimmed, by whom and when.
    """

    hint = "Continue with the next position, as `read_range` and `follow` do."


class BeyondTail(ZlogError, ValueError):
    """A fill, a trim or a cursor would reach positions that were not granted yet."""

    hint = (
        "Use a lower position. `zlog info LOG` shows the tail, which is the highest"
        " position for a trim or a cursor."
    )


class _AtCursor(ZlogError):
    def __init__(self, message: str, *, position: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.position = position


class HeldByCursor(_AtCursor):
    """A trim would pass positions that a reader with a cursor has not read. Nothing was trimmed.

    Attributes:
        position: the position of the lowest cursor; a trim to it is allowed.
    """

    hint = (
        "Wait for the reader (`zlog cursor ls LOG`), remove its cursor if no reader uses it any"
        " more, or trim anyway: `past_cursors=True`, `zlog trim --past-cursors`."
    )


class CursorNotFound(ZlogError, LookupError):
    """The log has no cursor of this name, or it was removed."""

    hint = "`zlog cursor ls LOG` lists the log's cursors, `zlog cursor set LOG NAME P` creates one."


class CursorAhead(_AtCursor):
    """A commit would move a cursor back: another reader of the same name is ahead.

    Attributes:
        position: the position of the cursor, which is unchanged.
    """

    hint = "Let only one reader at a time use a cursor. To move the cursor back, use `reset`."


class SequenceSuperseded(ZlogError):
    """A later attempt at this exactly-once append has begun, or its sequence is complete.

    The entries that this attempt has appended stay in the log, and the other attempt appends the
    rest.
    """

    hint = "Let the other attempt finish. Repeat the append only if that attempt has ended."


class SequenceDiffers(ZlogError):
    """An exactly-once append was repeated with other entries than before.

    The log now contains the entries of both attempts.
    """

    hint = (
        "Append the same entries in each attempt, in any order. They must not depend on time,"
        " on chance or on the division into parts."
    )


class AppendRefused(ZlogError):
    """The log refuses appends from this client.

    The log is a mirror, which takes entries only from its source; or it has another exclusive
    writer; or it is read-only.
    """

    hint = (
        "Append to its source, or make the mirror a log of its own: `zlog access promote LOG`,"
        " `log.promote()`."
    )


class Fenced(ZlogError):
    """The writer has lost its exclusive log for good.

    Another writer has taken the log, or the log was released or made read-only. Confirmed entries
    of this writer are in the log; entries in flight may be in it.
    """

    hint = (
        "Stop writing. A new writer (`log.writer()`) takes over the log and fences the current"
        " writer. A read-only log must be made writable first (`log.writable()`)."
    )


class CopyDiffers(ZlogError):
    """An import or a mirror can't continue, because the target is not a copy of the source.

    The target is not changed.
    """

    hint = "Copy to a new log with `zlog import NAME` or `zlog mirror --as NAME`."


class ExportDamaged(ZlogError):
    """A file is truncated, damaged or not an export. Entries before the damage can be imported."""

    hint = (
        "Import the complete file, which continues where this one ended. If you have none,"
        " `zlog access promote LOG` turns the imported entries into an independent log."
    )


class LogNotFound(ZlogError, LookupError):
    """The store has no log of this name.

    Attributes:
        removing: whether the log's removal is not finished, so that some of its objects are left.
    """

    hint = "`zlog ls` lists the logs of the store, `zlog create LOG` creates one."
    removing: bool = False


class LogExists(ZlogError):
    """The store already has a log of this name."""

    hint = "Open the log, choose another name, or remove the log first (`zlog rm LOG`)."


class EntryTooLarge(ZlogError, ValueError):
    """An entry is larger than the log's limit. Nothing was sent."""

    hint = "Split the entry, or raise `entry_bytes_max` when opening the log."


class CorruptEntry(_HoldsNoEntry):
    """Stored bytes failed their checksum, or an object of the log is gone.

    Attributes:
        gap: after a read of one position, the reason and the object.
    """

    hint = "Run `zlog check LOG`; on Ceph also look for scrub errors (`ceph health detail`)."


class ForgedEntry(_HoldsNoEntry):
    """The stored entry was not written at this position by a writer with the log's key.

    The entry's checksum is right, but its MAC is wrong: it was changed, or moved here from another
    position or log. Its data is not returned.

    Attributes:
        gap: after a read of one position, that position.
    """

    hint = (
        "Someone without the key has written to the store. Find out who has write access. `zlog"
        " check LOG` with the key finds all such entries."
    )


class KeyNeeded(ZlogError):
    """The log's entries have MACs, but this client has no key.

    Calls that need no data, such as trims or reading the tail, work without it.
    """

    hint = "Give the key: `mac_key=` when opening the log, `zlog --mac-key-file FILE`."


class WrongKey(ZlogError):
    """The MACs of the log's entries were made with another key. Nothing is damaged."""

    hint = "Give the key that the log was created with. The message contains the ids of both keys."


class MacsMissing(ZlogError):
    """This client was given a key, but the log's head says that entries have no MACs.

    Without MACs, no entry is known to come from a writer with the key. The log is therefore neither
    read nor written.
    """

    hint = (
        "If the log was created without a key, open it without one. Otherwise its head has been"
        " changed. Restore the head, and find out who can write to the store."
    )


class UnsupportedVersion(_HoldsNoEntry):
    """A stored value or a message needs a newer version of zlog. Nothing is damaged.

    Attributes:
        gap: after a read of one position, that position, which this version can't read.
    """

    hint = "Upgrade this zlog, and on Ceph libcls_zlog.so on every OSD host (`zlog doctor`)."


class LogExhausted(ZlogError):
    """The log has no free position: the last one is taken, or the tail was moved there.

    Appends never use up the positions of a log. Old versions of the object class let hostile
    clients move the tail.
    """

    hint = "Move the tail back to the end of the entries with `zlog reconfigure LOG --rescue`."


class LimitReached(ZlogError):
    """The log, or a producer of exactly-once appends to it, has reached a limit."""


class StoreUnavailable(ZlogError):
    """The store is unreachable, full or closed, or does not permit the operation."""

    retryable = True


class ReentrantCall(ZlogError, RuntimeError):
    """A signal handler or finalizer has called zlog while it interrupted another call.

    The new call would wait for the interrupted one, which can continue only when the new call
    returns. Nothing was sent.
    """

    hint = "Set a flag in the handler, and call zlog where the program checks the flag."


class StoreReadOnly(ZlogError):
    """A call would write to a store that was opened read-only. Nothing was changed."""

    hint = "Open the store without ?mode=ro, as a user who may write to it."


class StoreTimeout(StoreUnavailable, TimeoutError):
    """The time budget ended before the store answered.

    The entry of an append may or may not be in the log, at one position at most. An append
    therefore also raises this error if a newer version of zlog has written the position, perhaps
    with this entry.
    """

    hint = (
        "The store is slow or unreachable (`zlog doctor`). It is unknown whether a write took"
        " effect."
    )


class SequencerUnavailable(ZlogError):
    """The sequencer that the log's view names does not answer."""

    hint = (
        "Start a sequencer (`zlog seqr`), or wait. Writers continue without one after a"
        " few seconds."
    )
    retryable = True


class SequencerTimeout(SequencerUnavailable, TimeoutError):
    """The time budget ended before the sequencer answered."""

    hint = "Give the call more time; `zlog seqr status` shows whether the sequencer answers."


class SequencerRefused(SequencerUnavailable):
    """The sequencer and the client don't trust each other, because of a token or a certificate.

    Appends fail until the configuration changes, because clients do not install a view without the
    sequencer. Reads continue without the sequencer.
    """

    hint = (
        "`zlog doctor` checks the token and certificate of this client. See"
        " docs/operating.md, Security."
    )
    retryable = False


class SequencerBusy(SequencerRefused):
    """The sequencer has reached one of its limits, such as connections from one address.

    The sequencer serves other clients, so no view without it is installed. Appends wait, and raise
    this error when their time is up. Reads continue without the sequencer.
    """

    hint = (
        "Use fewer processes on this host, or raise the limits: `zlog seqr --connections`,"
        " `--connections-per-address`; `zlog seqr status` shows how full it is."
    )
    retryable = True


class NotLeader(SequencerUnavailable):
    """The sequencer is not the leader in the log's pool, or does not know whether it is.

    Clients look for the leader and retry; this error is raised only when their time budget is used
    up.
    """

    hint = "`zlog seqr status` shows the leader."


class ClassNotLoaded(StoreUnavailable):
    """The OSDs don't have the object class ``zlog``, or don't let this client use it."""

    hint = (
        "Install libcls_zlog.so on every OSD host and append zlog to osd_class_load_list and"
        " osd_class_default_list (docs/operating.md)."
    )
    retryable = False
