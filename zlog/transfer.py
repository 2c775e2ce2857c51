"""Copies logs with their positions and times, to and from files and between stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from zlog._audit.check import Progress
from zlog._base.io import Io
from zlog._base.log_options import LogOptions
from zlog._base.mac import MacKeySource, key_of
from zlog._base.options import MIRROR_OF, MIRROR_OF_FILE, PROMOTED_FROM, origins
from zlog._base.pieces import Batch
from zlog._base.settings import HandleOptions
from zlog._client import LogClient
from zlog._io import BlockingIo, drive
from zlog._layout.views import backoff
from zlog._read.iterate import wait_for_more
from zlog._transfer.export_file import ExportReader, ExportWriter, Info, Readable, Writable
from zlog._transfer.pieces import Mark, Piece, mark_of, part_from, rounds
from zlog._transfer.producers import ProducerCopy
from zlog._transfer.source import Source, mark_at
from zlog._transfer.target import PositionTaken, Target
from zlog.errors import CopyDiffers
from zlog.limits import TIMEOUT_SECONDS
from zlog.store import Store
from zlog.sync.log import Log

__all__ = ["Copied", "Readable", "Writable", "export_log", "import_log", "mirror_log"]


class Copied(NamedTuple):
    """The positions ``[start, end)`` that were copied, and the number of their entries."""

    start: int
    end: int
    entries: int


def export_log(
    log: Log,
    file: Writable,
    *,
    start: int | None = None,
    end: int | None = None,
    cursors: bool = False,
    progress: Progress | None = None,
) -> Copied:
    """Export a log to a file in one pass, with its entries, fills and trims.

    The file also contains each entry's time and append id, and the log's options; see
    docs/formats/export.md. MACs are checked but not exported, so keep the file where only you can
    change it. Exports of equal logs are equal.

    Args:
        log: the log to export. Like any reader, the export waits for holes, and then fills them.
        file: a file or pipe, opened for writing bytes.
        start: the first position; None means the oldest one that is not trimmed.
        end: one past the last position. None, or a position above the tail, means the tail.
        cursors: whether to export the log's cursors as well.
        progress: a function that gets the number of positions written so far and the total number.

    Raises:
        CorruptEntry: a position is lost.
        ForgedEntry: an entry was not made with the log's key.
        NotWritten: a hole cannot be filled: the store is read-only, or there is no hole timeout.
    """
    client = log._client
    trim_point = drive(client.positions.resolve("earliest", client.deadline()))
    tail = drive(client.positions.tail(client.deadline()))
    last = tail if end is None else min(end, tail)
    first = min(trim_point if start is None else start, last)
    view = client.layout.view
    before = drive(mark_at(client.reader, first - 1)) if first > 0 else None
    options = {key: v for key, v in view.options.items() if key not in (MIRROR_OF, PROMOTED_FROM)}
    writer = ExportWriter(file, Info(first, view.live_stripe.width, before, options))
    source = Source(client.reader, first)
    while source.position < last:
        pieces = drive(source.next(last))
        if not pieces:
            raise source.open_hole()
        for piece in pieces:
            writer.add(piece)
        if progress is not None:
            progress(source.position - first, last - first)
    writer.end(_cursors_of(client) if cursors else None)
    return Copied(first, last, writer.entries)


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
    """Create a log from a file that :func:`export_log` wrote, with the same positions and times.

    During the import the log is a mirror: it takes no appends, and readers see what has been
    imported so far. If the import fails or its process dies, import the file again, which continues
    where it stopped. Positions below the file's first position are trimmed in the new log.

    Args:
        store: the new log's store.
        name: the name of a new log, or of a mirror whose tail is a position in the file.
        file: a file or pipe, opened for reading bytes. Every part is checked before it is written.
        width: the width of a new log; None means the width of the exported log.
        promote: whether to promote the log at the end, so that it takes appends. If not, it stays a
            mirror, and you can continue it by importing a later export.
        timeout: the budget of each step, in seconds; None means no limit.
        progress: a function that is called with the next position to import.
        mac_key: the key for the MACs of the log's entries; see :meth:`Log.open`.

    Returns:
        The positions that this call imported.

    Raises:
        ExportDamaged: the file is truncated or damaged. Positions before the damage were imported.
        CopyDiffers: the log is not a mirror, or its entries differ from those in the file.
    """
    io = BlockingIo(store, f"the log {name!r}")
    reader = ExportReader(file)
    info = reader.info
    new = LogOptions(width or info.width, options={**info.options, MIRROR_OF: MIRROR_OF_FILE})
    target = _open_mirror(io, name, HandleOptions(timeout, key=key_of(mac_key)), new)
    drive(target.begin_at(info.start))
    start, entries = target.tail, 0
    last_mark = drive(target.last_mark())
    if start == info.start:
        target.compare("the export", info.before, last_mark, start - 1)
    for some in rounds(_missing(reader.pieces(), target, last_mark)):
        drive(target.write(some))
        entries += sum(len(piece.entries) for piece in some if isinstance(piece, Batch))
        if progress is not None:
            progress(target.tail)
    drive(target.advance_cursors(reader.cursors or {}))
    if promote:
        drive(target.promote())
    return Copied(start, max(start, reader.position), entries)


def _missing(pieces: Iterator[Piece], target: Target, last_mark: Mark | None) -> Iterator[Piece]:
    """Skip positions that the target already has, after comparing the last of them."""
    tail = target.tail
    for piece in pieces:
        if piece.start < tail <= piece.end:
            target.compare("the export", mark_of(piece, tail - 1), last_mark, tail - 1)
        if piece.end > tail:
            yield part_from(piece, tail)


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

    The copying happens while you iterate over the result. Each step takes at most a few seconds and
    yields the mirror's tail, below which everything is copied. If the iteration stops or its
    process dies, another call continues it. Later trims of the log do not trim the mirror.

    The mirror takes no appends until it is promoted (:meth:`Log.promote`). After that, the logs are
    independent.

    Args:
        log: the source. Like any reader, the copy waits for holes and then fills them.
        store: the mirror's store.
        name: the name of a new log or of a mirror of this log; None means the log's name.
        width: the width of a new mirror; None means the width of the log.
        follow: whether to wait at the tail for new entries, without end. Otherwise the copy stops
            at the tail at the time of the call.
        cursors: whether to copy the log's cursors at each step, up to the mirror's tail. The
            mirror's cursors never move back, because its own readers may be ahead.
        adopt: whether to make an imported log a mirror of this log even if the two cannot be
            compared, because the position just below the imported tail is trimmed.
        timeout: the budget of each step at the mirror, in seconds; None means no limit.
        mac_key: the key for MACs of the mirror's entries; None means that they have no MACs.

    Raises:
        CopyDiffers: the store has a log of that name that is not a mirror of this log.
        CorruptEntry: a position of the log is lost.
        ForgedEntry: an entry of the log was not made with its key.
        NotWritten: as for :func:`export_log`. If ``follow`` is set, the call waits instead.
    """
    client = log._client
    io = BlockingIo(store, "the mirror")
    settings = HandleOptions(timeout, key=key_of(mac_key))
    start = drive(client.positions.resolve("earliest", client.deadline()))
    view = client.layout.view
    live, options = view.live_stripe, {**view.options, MIRROR_OF: f"{view.log_id:016x}"}
    if history := origins(view.options):
        options[PROMOTED_FROM] = " ".join(history)
    new = LogOptions(width or live.width, live.stripe_unit, options=options)
    target = _open_mirror(io, name or log.name, settings, new)
    end = drive(client.positions.tail(client.deadline()))  # not below the mirror's tail
    _bind(client, target, end, adopt=adopt)
    if not target.tail:
        drive(target.begin_at(start))
    producers = ProducerCopy(client.reader, target)
    drive(producers.look())
    drive(producers.copy(target.tail))
    drive(producers.complete())
    source = Source(client.reader, target.tail)
    copied: dict[str, int] = {}  # the log's cursors
    waits = 0
    read_again = -1  # the mirror's tail at which pieces were last read again
    yield target.tail
    while source.position < end or follow:
        if source.position >= end:
            more = drive(wait_for_more(client.positions, client.budget, source.position))
            end = more or end
            if more is None:
                drive(producers.look())
        drive(target.inherit(client.layout.view))
        if source.position < end:
            pieces = drive(source.next(end))
            if pieces:
                waits = 0
            elif follow:
                end = source.position  # the tail that was read may be outdated
                drive(backoff(client.io, waits))
                waits += 1
            else:
                raise source.open_hole()
            drive(producers.look(pieces))
            try:
                for some in rounds(pieces):
                    drive(target.write(some, producers.copy))
            except PositionTaken:
                # Another copying process read these positions after they were trimmed, and so
                # trimmed them in the mirror.
                if read_again == target.tail:
                    raise
                read_again = target.tail
                source = Source(client.reader, target.tail)
        drive(producers.complete())
        if cursors:
            copied = _copy_cursors(client, target, copied)
        yield target.tail
    if cursors:
        _copy_cursors(client, target, copied)


def _open_mirror(io: Io, name: str, settings: HandleOptions, new: LogOptions) -> Target:
    client = drive(LogClient.open(io, name, settings, new))
    return Target(client.reader, client.cursors)


def _bind(client: LogClient, target: Target, tail: int, *, adopt: bool) -> None:
    """Check that the target is a mirror of this log. An imported log becomes one.

    Raises:
        CopyDiffers: the target is a mirror of another log, differs from this log just below its
            tail or, if ``adopt`` is False, is an import that cannot be compared.
    """
    source = f"log {client.layout}"
    mark = f"{client.layout.view.log_id:016x}"
    if target.mark not in (mark, MIRROR_OF_FILE) or target.tail > tail:
        raise CopyDiffers(f"{target} is a mirror, but not of {source}")
    if target.tail:
        own = drive(target.last_mark())
        last = drive(mark_at(client.reader, target.tail - 1))
        target.compare(source, last, own, target.tail - 1)
        if target.mark == MIRROR_OF_FILE and None in (last, own) and not adopt:
            raise CopyDiffers(
                f"it is unknown whether {target} is an import of {source}, because position"
                f" {target.tail - 1} is trimmed in one of them",
                hint="Copy to a new log with `zlog mirror --as NAME`. If you know that it"
                " is an import of this log, use `zlog mirror --adopt`.",
            )
    if target.mark == MIRROR_OF_FILE:
        drive(target.bind(mark))


def _cursors_of(client: LogClient) -> dict[str, int]:
    return {each.name: each.position for each in drive(client.cursors.list(client.deadline()))}


def _copy_cursors(client: LogClient, target: Target, copied: dict[str, int]) -> dict[str, int]:
    """Move the mirror's cursors to the log's, but not above the mirror's tail, and return them."""
    wanted = {name: min(position, target.tail) for name, position in _cursors_of(client).items()}
    changed = {name: at for name, at in wanted.items() if copied.get(name) != at}
    drive(target.advance_cursors(changed))
    return wanted
