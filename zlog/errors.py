"""Every error that zlog raises.

An error says what happened, to which log, object or position, and carries in ``hint`` what to do
about it. ``retryable`` tells whether the same call may succeed later by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zlog.entry import Gap


class ZlogError(Exception):
    """Base class of everything that zlog raises on purpose.

    Attributes:
        hint: what the reader of the message can do, one sentence.
        retryable: whether the same call may succeed later by itself.
        positions: for a failed append of several entries, the position of each entry that was
            acknowledged before the failure, and None for the others; empty for other calls.
        call: which method of the object class failed, on which object; empty if none did.
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
    """An operation carried an epoch below the one its object was sealed with (CORFU, section 2.2).

    The client refreshes its view and tries again by itself; this error surfaces only when the
    whole time budget went by in doing so. ``epoch`` is the newer epoch, 0 when unknown.
    """

    hint = "The log's layout is changing; try again."
    retryable = True

    def __init__(self, message: str, *, epoch: int = 0, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.epoch = epoch


class InvalidEpoch(ZlogError):
    """A seal or a view came with an epoch that is not above the installed one.

    Another client is changing the layout at the same time, and won.
    """

    hint = "Another client is changing the log's layout; try again."
    retryable = True


class InvalidTag(ZlogError, ValueError):
    """An entry's tags are too many, or one of them is empty or too long."""

    hint = "Tags are text of 1 to 128 bytes in UTF-8, up to 64 to an entry."


class AlreadyWritten(ZlogError):
    """The position holds an entry, so it is not filled."""

    hint = "Read the position: its writer was first."


class NotWritten(ZlogError):
    """The position holds nothing yet: a hole, or not handed out so far."""

    hint = "Wait for its writer; below the tail, fill it if the writer is gone (`zlog fill`)."
    retryable = True


class _HoldsNoEntry(ZlogError):
    def __init__(self, message: str, *, hint: str | None = None, gap: Gap | None = None) -> None:
        super().__init__(message, hint=hint)
        self.gap = gap


class Invalidated(_HoldsNoEntry):
    """The position was filled or trimmed and holds no entry, for ever.

    Attributes:
        gap: for a read of one position: which of the two, and who filled it, when and why.
    """

    hint = "Go on with the next position; `read_range` and `follow` do so and report a Gap."


class BeyondTail(ZlogError, ValueError):
    """A fill, a trim or a cursor would reach positions that were not handed out yet."""

    hint = "Go no further than the tail (`zlog info LOG`): what comes is not handed out yet."


class HeldByCursor(ZlogError):
    """A trim would pass what a reader with a named cursor has not read yet. Nothing was trimmed.

    Attributes:
        position: the lowest cursor's position; a trim to it is fine.
    """

    hint = (
        "Wait for the reader (`zlog cursor ls LOG`), remove its cursor if no reader uses it any"
        " more, or trim all the same: `past_cursors=True`, `zlog trim --past-cursors`."
    )

    def __init__(self, message: str, *, position: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.position = position


class CursorNotFound(ZlogError, LookupError):
    """The log has no cursor of this name, or it was removed meanwhile."""

    hint = "`zlog cursor ls LOG` lists the log's cursors, `zlog cursor set LOG NAME P` makes one."


class CursorAhead(ZlogError):
    """A commit would move a cursor back: another reader of the same name has come further.

    Attributes:
        position: where the cursor is, and stays.
    """

    hint = "Let one reader at a time work with a cursor; `reset` moves it back on purpose."

    def __init__(self, message: str, *, position: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.position = position


class DeliverySuperseded(ZlogError):
    """An attempt at a delivery is not the last one: another has begun, or the batch is done.

    What this attempt has appended counts, and the other one goes on from there.
    """

    hint = "Let the other one do it; deliver the same part again only if that one is gone."


class DeliveryDiffers(ZlogError):
    """A delivery was repeated with other entries than before. What is in the log stays there.

    The entries that were given this time are in the log now, and others as well.
    """

    hint = (
        "Deliver the same entries each time, in any order: what makes them must not depend on"
        " time, chance or on how the work is divided into parts."
    )


class AppendRefused(ZlogError):
    """The log takes no appends of this client.

    It is a mirror, whose entries come from its source; another client is its exclusive writer; or
    it is read-only.
    """

    hint = (
        "Append to its source, or make the mirror a log of its own: `zlog access promote LOG`,"
        " `log.promote()`."
    )


class Fenced(ZlogError):
    """The writer is not the exclusive writer of its log any more, and never will be again.

    Another one has taken the log, it was given back, or it was made read-only. What this writer has
    confirmed is in the log; an append that was under way may be.
    """

    hint = (
        "Stop writing. A new writer (`log.writer()`) takes the log back, and fences the one that"
        " has it; a log that is read-only is opened first (`log.writable()`)."
    )


class CopyDiffers(ZlogError):
    """An import or a mirror can't go on: the target is no copy of the source, position by position.

    What the target holds stays as it is.
    """

    hint = "Copy to a log that is not there yet: `zlog import NAME`, `zlog mirror --as NAME`."


class ExportDamaged(ZlogError):
    """An export is cut short or damaged, or no export. What lies before that can be imported."""

    hint = (
        "Get the whole file, and import that: it goes on where this one ended. If there is none,"
        " `zlog access promote LOG` makes a log of its own of what was imported."
    )


class LogNotFound(ZlogError, LookupError):
    """No log of this name is in the store.

    Attributes:
        removing: whether objects of a removed log are left: its removal is under way, or its client
            died, or may not take all steps of it.
    """

    hint = "`zlog ls` lists the logs of the store, `zlog create LOG` makes one."

    def __init__(self, message: str, *, hint: str | None = None, removing: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.removing = removing


class LogExists(ZlogError):
    """A log of this name is in the store already."""

    hint = "Open it, choose another name, or remove it first (`zlog rm LOG`)."


class EntryTooLarge(ZlogError, ValueError):
    """An entry is larger than the log's limit. Nothing was sent."""

    hint = "Split the entry, or raise `entry_bytes_max` when opening the log."


class CorruptEntry(_HoldsNoEntry):
    """Stored bytes failed their checksum, or an object of the log is gone. Never wrong bytes.

    Attributes:
        gap: for a read of one position: which of the two, and of which object.
    """

    hint = "Run `zlog check LOG`; on Ceph also look for scrub errors (`ceph health detail`)."


class ForgedEntry(_HoldsNoEntry):
    """What is stored at the position is no entry that a writer with the log's key has put there.

    The bytes are intact: they fit their checksum, and not their MAC. They were changed, or come
    from another position or log. Never their data.

    Attributes:
        gap: for a read of one position: the position.
    """

    hint = (
        "Someone who can write to the store, and has not the key, has put it there: see who can."
        " `zlog check LOG` with the key finds all such entries."
    )


class KeyNeeded(ZlogError):
    """The log's entries have MACs, and this client was not given the key to make or check them.

    What needs no data goes on without it, such as trimming or asking for the tail.
    """

    hint = "Give the key: `mac_key=` when opening the log, `zlog --mac-key-file FILE`."


class WrongKey(ZlogError):
    """The log's entries have MACs of another key than this client was given. Nothing is damaged."""

    hint = "Give the key that the log was made with. Its id, and that of yours, are in the message."


class MacsMissing(ZlogError):
    """This client was given a key, and the log says that its entries have no MACs.

    So nothing in it is known to come from a writer with the key, and it is not read or written.
    """

    hint = (
        "If the log was made without a key, open it without. If it was made with one, the store's"
        " owner has changed its head: restore it, and see who can write to the store."
    )


class UnsupportedVersion(_HoldsNoEntry):
    """A newer version of zlog made what is stored, or what was sent. Nothing is damaged.

    Attributes:
        gap: for a read of one position: the position, which this version can't read.
    """

    hint = "Upgrade this zlog; on Ceph also libcls_zlog.so on every OSD host (`zlog doctor`)."


class LogExhausted(ZlogError):
    """The log has no position left: its last one is taken, or its tail was moved there.

    No log comes there by appends. An object class from before there were bounds let hostile clients
    move the tail.
    """

    hint = "Bring the tail back to where the entries end: `zlog reconfigure LOG --rescue`."


class LimitReached(ZlogError):
    """The log, or a source of deliveries to it, has as many of something as it may have."""


class StoreUnavailable(ZlogError):
    """The store did not carry out an operation: unreachable, full, closed, or not permitted."""

    retryable = True


class ReentrantCall(ZlogError, RuntimeError):
    """A signal handler or a finalizer has called zlog over a call of its own thread.

    The new call would wait for the interrupted one, which can only continue after it. Nothing was
    sent.
    """

    hint = "Set a flag in the handler, and call zlog where the program looks at it."


class StoreReadOnly(ZlogError):
    """A call would write to a store that was opened to be read only. Nothing was changed."""

    hint = "Open the store without ?mode=ro, as a user who may write to it."


class StoreTimeout(StoreUnavailable, TimeoutError):
    """The time budget ended before the store answered.

    For an append this means *indeterminate*: the entry may or may not be in the log, at one
    position at most. So an append raises it, too, where the store does answer, and can't tell: a
    newer version of zlog stored what is at the entry's position.
    """

    hint = (
        "The store is slow or unreachable (`zlog doctor`); whether a write took effect is unknown."
    )


class SequencerUnavailable(ZlogError):
    """The sequencer that the log's view names does not answer."""

    hint = "Start one (`zlog seqr`), or wait: writers go on without one after a few seconds."
    retryable = True


class SequencerTimeout(SequencerUnavailable, TimeoutError):
    """The time budget ended before the sequencer answered."""

    hint = "Give the call more time; `zlog seqr status` shows whether the sequencer answers."


class SequencerRefused(SequencerUnavailable):
    """Sequencer and client don't trust each other: a token, a certificate, or a file with one.

    It stays so until the configuration changes. Appends fail then, and no client brings in a
    view without the sequencer because of it; reading goes on without its help.
    """

    hint = "See docs/operating.md, Security; `zlog doctor` checks what this client shows."
    retryable = False


class SequencerBusy(SequencerRefused):
    """The sequencer has reached one of its limits, such as connections from one address.

    It serves others, so no client brings in a view without it because of it: appends wait, and
    raise this when their time is up. Reading goes on without its help.
    """

    hint = (
        "Use fewer processes on this host, or raise what it takes: `zlog seqr --connections`,"
        " `--connections-per-address`; `zlog seqr status` shows how full it is."
    )
    retryable = True


class NotLeader(SequencerUnavailable):
    """The sequencer that was asked does not lead where the log is, or can't tell whether it does.

    Clients look for the one that leads and try again by themselves; this error surfaces only when
    the whole time budget went by in doing so.
    """

    hint = "`zlog seqr status` shows who leads."


class ClassNotLoaded(StoreUnavailable):
    """The OSDs don't have the object class ``zlog``, or don't let this client use it."""

    hint = (
        "Install libcls_zlog.so on every OSD host and append zlog to osd_class_load_list and"
        " osd_class_default_list (docs/operating.md)."
    )
    retryable = False
