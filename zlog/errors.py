"""Every error that zlog raises.

An error's message says what happened, and to which log, object or position. ``hint`` says what to
do about it, and ``retryable`` whether repeating the same call may succeed.
"""

import typing as _typing

if _typing.TYPE_CHECKING:
    from zlog.entry import Gap


class ZlogError(Exception):
    """Base class of zlog's errors.

    Attributes:
        hint: what to do about the error.
        retryable: whether the same call may succeed if it is repeated later.
        positions: after a failed append of several entries, the position of each acknowledged
            entry, and None for each other entry. Empty for other calls.
        call: the object class's method that failed, and its object. Empty if no method failed.
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
    """An operation's epoch is lower than its object's, because the layout has changed.

    The client refreshes its view and retries, and raises this error only if its time runs out.
    ``epoch`` is the newer epoch, or 0 if it is unknown.
    """

    hint = "The log's layout is changing; try again."
    retryable = True
    epoch: int = 0


class InvalidEpoch(ZlogError):
    """A seal or a view had an epoch that is not above the current one.

    Another client changed the layout first.
    """

    hint = "Another client is changing the log's layout; try again."
    retryable = True


class InvalidTag(ZlogError, ValueError):
    """An entry has too many tags, or a tag is empty or too long."""

    hint = "Tags are text of 1 to 128 bytes in UTF-8, up to 64 to an entry."


class AlreadyWritten(ZlogError):
    """The position holds an entry, so it cannot be filled."""

    hint = "The position needs no fill: readers get the entry (`zlog read LOG POSITION`)."


class NotWritten(ZlogError):
    """The position holds no entry: it is a hole, or it was not granted yet."""

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
        gap: if a single position was read, its gap, which says who filled the position and when.
    """

    hint = "Continue with the next position, as `read_range` and `follow` do."


class BeyondTail(ZlogError, ValueError):
    """A fill, a trim or a cursor would reach a position that was not granted yet."""

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
        position: the position of the lowest cursor. You can trim up to it.
    """

    hint = (
        "Wait for the reader (`zlog cursor ls LOG`), remove its cursor if no reader uses it any"
        " more, or trim anyway: `past_cursors=True`, `zlog trim --past-cursors`."
    )


class CursorNotFound(ZlogError, LookupError):
    """The log has no cursor with this name. It was never created, or it was removed."""

    hint = "`zlog cursor ls LOG` lists the log's cursors, `zlog cursor set LOG NAME P` creates one."


class CursorAhead(_AtCursor):
    """A commit would move a cursor back, because another reader that uses the cursor is ahead.

    Attributes:
        position: the position of the cursor, which was not changed.
    """

    hint = "Let only one reader at a time use a cursor. To move the cursor back, use `reset`."


class SequenceSuperseded(ZlogError):
    """A newer attempt at the append has begun, or the append's sequence number is complete.

    The entries that this attempt has appended stay in the log. The newer attempt appends the rest.
    """

    hint = "Let the other attempt finish. Repeat the append only if that attempt has ended."


class SequenceDiffers(ZlogError):
    """An exactly-once append was repeated with different entries.

    The log now contains the entries of both attempts.
    """

    hint = (
        "Append the same entries in each attempt, in any order. They must not depend on time,"
        " on chance or on the division into parts."
    )


class AppendRefused(ZlogError):
    """The log refuses appends from this client.

    The log is read-only, belongs to another exclusive writer, or is a mirror of another log. Or the
    append has a condition, but a sequencer orders the log. Or the client asked to be the exclusive
    writer of a log that is ordered by its object.
    """

    hint = (
        "Append to its source, or make the mirror a log of its own: `zlog access promote LOG`,"
        " `log.promote()`."
    )


class Conflict(ZlogError):
    """The condition of an append does not hold. Nothing was appended.

    Attributes:
        position: the position of the first conflicting entry. If the append expected another
            position, the log's tail.
        tags: the tags of the conflicting entry; empty if there are none or it cannot be read.
    """

    hint = "Read the new entries, decide again, and append with a new condition (`log.decide`)."

    def __init__(
        self, message: str, *, position: int, tags: tuple[str, ...] = (), hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.position = position
        self.tags = tags


class Fenced(ZlogError):
    """The exclusive writer has lost its log and cannot get it back.

    Another writer took the log, or the log was released or made read-only. The entries that this
    writer has confirmed are in the log, and its entries in flight may be.
    """

    hint = (
        "Stop writing. A new writer (`log.writer()`) takes over the log and fences the current"
        " writer. A read-only log must be made writable first (`log.writable()`)."
    )


class CopyDiffers(ZlogError):
    """An import or a mirror cannot continue, because the target is not a copy of the source.

    The target was not changed.
    """

    hint = "Copy to a new log with `zlog import NAME` or `zlog mirror --as NAME`."


class ExportDamaged(ZlogError):
    """A file is truncated, damaged or not an export. The entries before the damage can be used."""

    hint = (
        "Import the complete file, which continues where this one ended. If you have none,"
        " `zlog access promote LOG` turns the imported entries into an independent log."
    )


class LogNotFound(ZlogError, LookupError):
    """The store has no log with this name.

    Attributes:
        removing: whether the log's removal is unfinished, so that some of its objects still exist.
    """

    hint = "`zlog ls` lists the logs of the store, `zlog create LOG` creates one."
    removing: bool = False


class LogExists(ZlogError):
    """The store already has a log with this name."""

    hint = "Open the log, choose another name, or remove the log first (`zlog rm LOG`)."


class EntryTooLarge(ZlogError, ValueError):
    """An entry is larger than the log's limit. Nothing was sent."""

    hint = (
        "Split the entry, or raise `entry_bytes_max` of the handle or of the log. An open handle"
        " learns of a raised limit with its next `tail()` or its next append of a smaller entry."
    )


class CorruptEntry(_HoldsNoEntry):
    """Stored bytes fail their checksum, or an object of the log is missing.

    Attributes:
        gap: if a single position was read, its gap, with the reason and the object's name.
    """

    hint = "Run `zlog check LOG`; on Ceph also look for scrub errors (`ceph health detail`)."


class ForgedEntry(_HoldsNoEntry):
    """The stored entry was not written at this position by a writer with the log's key.

    Its checksum is right, but its MAC is wrong: someone has changed or forged the entry, or moved
    it here from another position or log. Its data is not returned.

    Attributes:
        gap: if a single position was read, its gap.
    """

    hint = (
        "Someone without the key has written to the store. Find out who has write access. `zlog"
        " check LOG` with the key finds all such entries."
    )


class KeyNeeded(ZlogError):
    """The log's entries have MACs, but this client has no key.

    Without the key, only calls that need no data work, such as a trim or a read of the tail.
    """

    hint = "Give the key: `mac_key=` when opening the log, `zlog --mac-key-file FILE`."


class WrongKey(ZlogError):
    """The MACs of the log's entries were made with another key. Nothing is damaged."""

    hint = "Give the key that the log was created with. The message contains the ids of both keys."


class MacsMissing(ZlogError):
    """This client was given a key, but the log's head says that its entries have no MACs.

    The client then neither reads nor writes the log, because it cannot tell whether an entry comes
    from a writer with the key.
    """

    hint = (
        "If the log was created without a key, open it without one. Otherwise its head has been"
        " changed. Restore the head, and find out who can write to the store."
    )


class UnsupportedVersion(_HoldsNoEntry):
    """A stored value or a message needs a newer version of zlog. Nothing is damaged.

    Attributes:
        gap: if a single position was read, its gap.
    """

    hint = "Upgrade this zlog, and on Ceph libcls_zlog.so on every OSD host (`zlog doctor`)."


class LogExhausted(ZlogError):
    """The log has no free positions left.

    Ordinary appends never use up a log's positions, but with an old version of the object class, a
    hostile client can move the tail to the end.
    """

    hint = "Move the tail back to the end of the entries with `zlog reconfigure LOG --rescue`."


class LimitReached(ZlogError):
    """The log, or a producer of exactly-once appends, has reached one of its limits."""


class StoreUnavailable(ZlogError):
    """The store is unreachable, full or closed, or does not permit the operation."""

    retryable = True


class ReentrantCall(ZlogError, RuntimeError):
    """A signal handler or finalizer called zlog while it was interrupting another call.

    The new call would wait forever for the interrupted one, which cannot continue before the new
    call returns. Nothing was sent.
    """

    hint = "Set a flag in the handler, and call zlog where the program checks the flag."


class StoreMissing(StoreUnavailable):
    """The store's directory has no store, or another one. Its disk may not be mounted."""

    retryable = False


class StoreReadOnly(ZlogError):
    """A call would have written to a store that was opened read-only. Nothing was changed."""

    hint = "Open the store without ?mode=ro, as a user who may write to it."


class StoreTimeout(StoreUnavailable, TimeoutError):
    """The store did not answer before the call's time was up.

    After an append, the entry may or may not be in the log, but it is at one position at most.
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
    """The sequencer and the client do not accept each other's token or certificate.

    Appends fail until the configuration is fixed. This client does not bypass the sequencer,
    because other clients may still use it. Reads do not need the sequencer.
    """

    hint = (
        "`zlog doctor` checks the token and certificate of this client. See"
        " docs/operating.md, Security."
    )
    retryable = False


class SequencerBusy(SequencerRefused):
    """The sequencer has reached one of its limits, such as connections from one address.

    Appends wait, and raise this error when their time is up. This client does not bypass the
    sequencer, because other clients still use it. Reads do not need the sequencer.
    """

    hint = (
        "Use fewer processes on this host, or raise the limits: `zlog seqr --connections`,"
        " `--connections-per-address`; `zlog seqr status` shows how full it is."
    )
    retryable = True


class NotLeader(SequencerUnavailable):
    """The sequencer is not the leader in the log's pool, or does not know whether it is.

    The client looks for the leader and retries, and raises this error only if its time runs out.
    """

    hint = "`zlog seqr status` shows the leader."


class ClassNotLoaded(StoreUnavailable):
    """The OSDs do not have the object class ``zlog``, or do not let this client use it."""

    hint = (
        "Install libcls_zlog.so on every OSD host and append zlog to osd_class_load_list and"
        " osd_class_default_list (docs/operating.md)."
    )
    retryable = False
