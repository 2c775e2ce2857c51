"""Every error that zlog raises, and the one place where foreign error codes become them.

An error says what happened, to which log, object or position, and carries in ``hint`` what to do
about it. ``retryable`` tells whether the same call may succeed later by itself.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from zlog._base.protocol import Code

if TYPE_CHECKING:
    from zlog.entry import Gap


class ZlogError(Exception):
    """Base class of everything that zlog raises on purpose.

    Attributes:
        hint: what the reader of the message can do, one sentence.
        retryable: whether the same call may succeed later by itself.
        positions: for a failed append of several entries, the position of each entry that was
            acknowledged before the failure, and None for the others; empty for other calls.
    """

    hint: str = "Run `zlog doctor` to see which part is not working."
    retryable: bool = False
    positions: tuple[int | None, ...] = ()

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
    """The log takes no appends: it is a mirror, whose entries come from its source."""

    hint = (
        "Append to its source, or make the mirror a log of its own: `zlog promote LOG`,"
        " `log.promote()`."
    )


class CopyDiffers(ZlogError):
    """An import or a mirror can't go on: the target is no copy of the source, position by position.

    What the target holds stays as it is.
    """

    hint = "Copy to a new log: `zlog import`, `zlog mirror --as NAME`."


class ExportDamaged(ZlogError):
    """An export is cut short or damaged, or no export. What lies before that can be imported."""

    hint = (
        "Get the whole file, and import that: it goes on where this one ended. If there is none,"
        " `zlog promote LOG` makes a log of its own of what was imported."
    )


class LogNotFound(ZlogError, LookupError):
    """No log of this name is in the store."""

    hint = "`zlog ls` lists the logs of the store, `zlog create LOG` makes one."


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


_REFUSALS: dict[int, tuple[type[ZlogError], str, str | None]] = {
    Code.STALE_EPOCH: (StaleEpoch, "the log's layout has changed", None),
    Code.READ_ONLY: (AlreadyWritten, "the position is taken", None),
    Code.INVALID_EPOCH: (InvalidEpoch, "another client has changed the log's layout", None),
    Code.LIMIT_REACHED: (LimitReached, "a limit is reached", None),
    Code.BEYOND_STRIPE: (
        LimitReached,
        "the live stripe takes no position that high",
        "Start a new stripe: `zlog reconfigure LOG --roll`.",
    ),
    Code.ALIKE: (AlreadyWritten, "an entry that may be this one is there", None),
    Code.BEYOND_TAIL: (BeyondTail, "no tail that high was recorded", None),
    Code.UNREADABLE: (
        UnsupportedVersion,
        "a newer version of zlog stored what is at this position",
        None,
    ),
    Code.LOST: (
        CorruptEntry,
        "what was stored at this position is lost",
        "`zlog check LOG --heal` puts back what another copy has (docs/operating.md).",
    ),
    Code.REQUEST_TOO_NEW: (
        UnsupportedVersion,
        "the store's object class is older than this zlog",
        "Upgrade libcls_zlog.so on every OSD host, or use the older zlog (docs/operating.md).",
    ),
    Code.STORED_TOO_NEW: (
        UnsupportedVersion,
        "a newer version of zlog stored what the object class would have to read",
        "Upgrade libcls_zlog.so on every OSD host; of an embedded store, this zlog.",
    ),
}
"""What a refusal means that no caller expects."""


def from_code(code: int, what: str) -> ZlogError:
    """Turn a method's answer other than OK into an exception.

    Args:
        code: a negative errno, or a code of the object class.
        what: which operation failed, on which object.
    """
    if code < 0:
        return from_errno(code, what)
    kind, why, hint = _REFUSALS.get(code, (ZlogError, f"refused with code {code}", None))
    return kind(f"{what}: {why}", hint=hint)


def from_errno(code: int, what: str) -> ZlogError:
    """Turn a store's outer error into an exception.

    Args:
        code: a negative errno, as librados and the embedded hosts return it.
        what: which operation failed, on which object.

    Source: errno(3), and what an OSD answers for classes (``ceph-osd``: EOPNOTSUPP when the class
    or method is missing, EPERM when the class is not in ``osd_class_load_list``).
    """
    number = -code
    text = f"{what}: {os.strerror(number)} ({errno.errorcode.get(number, number)})"
    if number == errno.ETIMEDOUT:
        return StoreTimeout(f"{what}: the store did not answer in time")
    if number == errno.EOPNOTSUPP:
        return ClassNotLoaded(
            f"{what}: the OSD that serves it lacks the object class, or has an older one without"
            " this method",
            hint="`zlog doctor` names such OSDs. Install libcls_zlog.so on their hosts"
            " (docs/operating.md).",
        )
    if number == errno.EPERM:
        return ClassNotLoaded(
            f"{what}: the OSD refused to run it for this client, whose caps do not allow it; or it"
            " may not load the object class",
            hint="Give this client caps for the pool: osd 'allow pool POOL class zlog', or, without"
            " the object class, 'allow rw pool=POOL'. `zlog doctor` tells whether it is the caps,"
            " or OSDs that may not load the class (docs/operating.md).",
        )
    if number == errno.EACCES:
        return StoreUnavailable(
            text,
            hint="Give this client caps such as: osd 'allow pool POOL class zlog'"
            " (docs/operating.md).",
            retryable=False,
        )
    if number == errno.EROFS:
        return StoreReadOnly(f"{what}: the store is read-only")
    if number == errno.ETXTBSY:
        return StoreUnavailable(
            f"{what}: another process has opened the store for writing, and this one may not write"
            " lock.mdb, in which readers are listed",
            hint="Let this user write lock.mdb (data.mdb need only be readable), or read a copy:"
            " docs/operating.md, Embedded stores.",
        )
    if number == errno.ESTALE:
        return StoreUnavailable(
            f"{what}: the files of the store were removed or replaced while this process had them"
            " open",
            hint="Close the store and connect again: its directory holds another one now, or none.",
            retryable=False,
        )
    if number == errno.EUCLEAN:
        return StoreUnavailable(
            f"{what}: data.mdb holds another database than the one that was written there, or an"
            " earlier state of it: it was put back from a backup, or overwritten",
            hint="To go on with what it holds now, end all processes that use the store and run"
            " `zlog restore`.",
            retryable=False,
        )
    if number in (errno.ENOSPC, errno.EDQUOT):
        return StoreUnavailable(
            f"{what}: the store is full", hint="Trim logs (`zlog trim --to`) or add space."
        )
    if number == errno.EIO:
        return CorruptEntry(
            f"{what}: stored bytes are damaged, or the object class can't be loaded (EIO)",
            hint="Run `zlog doctor`, which tells whether the OSDs can load libcls_zlog.so; and"
            " `zlog check LOG`, which tells what is damaged.",
        )
    if number == errno.EINVAL:
        return ZlogError(
            f"{what}: the object class refused the request as malformed",
            hint="Client and object class disagree; check that both are of the same version.",
        )
    return StoreUnavailable(text)
