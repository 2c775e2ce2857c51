"""Copying logs with their positions and times: to and from files, and between stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from zlog._audit.check import Progress
from zlog._base.mac import MacKeySource, key_of
from zlog._base.settings import HandleOptions
from zlog._io import BlockingIo, drive
from zlog._transfer import copy
from zlog._transfer.copy import Copied, Mirroring
from zlog._transfer.export_file import Readable, Writable
from zlog.limits import TIMEOUT_SECONDS
from zlog.store import Store
from zlog.sync.log import Log

__all__ = ["Copied", "Readable", "Writable", "export_log", "import_log", "mirror_log"]


def export_log(
    log: Log,
    file: Writable,
    *,
    start: int | None = None,
    end: int | None = None,
    cursors: bool = False,
    progress: Progress | None = None,
) -> Copied:
    """Write a log to a file, in one pass: entries, their times and append ids, fills, trims.

    The file has no more of the log than that and its options; see docs/formats/export.md. Of a log
    with MACs each entry is checked, and the file has none: keep it where it can't be changed. Equal
    logs give equal files. Some windows of entries are in memory at a time.

    Args:
        log: the log; its holes are waited for and filled, as readers do.
        file: a file or pipe for bytes.
        start: the first position; None: the first that is not trimmed.
        end: one past the last; None or beyond the tail: the tail.
        cursors: whether the log's cursors are written too.
        progress: told how many positions were written so far, and how many there are.

    Raises:
        CorruptEntry: a position is lost.
        ForgedEntry: a position holds what was not made with the log's key.
        NotWritten: there is a hole that can't be filled, since the store is read-only, or since the
            log was opened without a hole time-out.
    """
    report = progress or (lambda *_: None)
    return drive(copy.export_log(log._client, file, start, end, report, cursors=cursors))


def import_log(
    store: Store,
    name: str,
    file: Readable,
    *,
    width: int | None = None,
    promote: bool = True,
    timeout: float | None = TIMEOUT_SECONDS,
    progress: Callable[[int], object] | None = None,
    mac_key: MacKeySource | None = None,
) -> Copied:
    """Make a log from a file that :func:`export_log` wrote; each entry keeps its position and time.

    The log is a mirror meanwhile: it takes no appends, and readers see what was imported so far.
    After a failure or a death, import the file again: it goes on where it stopped. Positions below
    the file's first are trimmed in the new log.

    Args:
        store: where.
        name: the log's; it is made, or is a mirror whose next position the file has.
        file: a file or pipe of bytes. Every part is checked before it is written.
        width: of a new log; None: as the exported log's.
        promote: make the log one of its own at the end, so that it takes appends. Else it remains a
            mirror, which a later export can go on with.
        timeout: for each step, in seconds; None for no limit.
        progress: told the next position to be imported.
        mac_key: of the new log, whose entries get MACs, or of the one that is there: see
            :meth:`Log.open`.

    Returns:
        What was imported, without what was there already.

    Raises:
        ExportDamaged: the file is cut short or damaged; what was imported before stays.
        CopyDiffers: the log has entries of its own, or other ones than the file.
    """
    io = BlockingIo(store, f"the log {name!r}")
    report = progress or (lambda _: None)
    settings = HandleOptions(timeout, key=key_of(mac_key))
    return drive(copy.import_log(io, name, settings, file, width, report, promote=promote))


def mirror_log(
    log: Log,
    store: Store,
    name: str | None = None,
    *,
    width: int | None = None,
    follow: bool = False,
    cursors: bool = False,
    adopt: bool = False,
    timeout: float | None = TIMEOUT_SECONDS,
    mac_key: MacKeySource | None = None,
) -> Iterator[int]:
    """Copy a log to a mirror, with its positions, times and gaps, in order.

    Iterate over it to have it done: after each step, some seconds at most, it yields the mirror's
    tail, below which everything was copied. Stopped or killed at any moment, a further call goes on
    there. What the log trims later stays in the mirror, which may be trimmed by itself.

    The mirror takes no appends until it is promoted (:meth:`Log.promote`). Then it is a copy of the
    log up to one position, and no copy of it any more from there on.

    Args:
        log: the source; its holes are waited for and filled, as readers do.
        store: where the mirror is.
        name: the mirror's; None: as the log's. It is made, or is one of this log.
        width: of a new mirror; None: as the log's.
        follow: go on at the tail, for ever. Else it ends at the tail as it is now.
        cursors: copy the log's cursors too, at each step, as far as it was copied. Those of the
            mirror only move forward: its own readers may be ahead.
        adopt: go on with an import though nothing tells whether it is one of this log, since what
            stands just below its tail is trimmed. From the first call on, an import is a mirror of
            this log only.
        timeout: for each step at the mirror, in seconds; None for no limit.
        mac_key: of the mirror; None: its entries get no MACs, whatever those of the log have.

    Raises:
        CopyDiffers: there is a log of that name that is no mirror of this one.
        CorruptEntry: a position of the log is lost.
        ForgedEntry: a position of the log holds what was not made with its key.
        NotWritten: as for :func:`export_log`; with ``follow`` it is waited for.
    """
    io = BlockingIo(store, "the mirror")
    mirroring = drive(
        Mirroring.begin(
            log._client,
            io,
            name or log.name,
            HandleOptions(timeout, key=key_of(mac_key)),
            width,
            follow=follow,
            cursors=cursors,
            adopt=adopt,
        )
    )
    yield mirroring.tail
    while drive(mirroring.step()):
        yield mirroring.tail
