"""Copying a log: to a file, from a file, and to another log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from zlog._audit.check import Progress
from zlog._base.io import Io
from zlog._base.log_options import LogOptions
from zlog._base.options import MIRROR_OF, MIRROR_OF_FILE
from zlog._base.settings import HandleOptions
from zlog._client import LogClient
from zlog._layout.views import backoff
from zlog._read.iterate import wait_for_more
from zlog._transfer.export_file import ExportReader, ExportWriter, Info, Readable, Writable
from zlog._transfer.pieces import Batch, Mark, Piece, mark_of, part_from, rounds
from zlog._transfer.source import Source, mark_at
from zlog._transfer.target import PositionTaken, Target
from zlog.errors import CopyDiffers


class Copied(NamedTuple):
    """What was copied: the positions ``[start, end)``, and how many entries are among them."""

    start: int
    end: int
    entries: int


async def export_log(
    client: LogClient,
    file: Writable,
    start: int | None,
    end: int | None,
    progress: Progress,
    *,
    cursors: bool,
) -> Copied:
    """Write a log to a file; see :func:`zlog.export_log`."""
    trim_point = await client.positions.resolve("earliest", client.deadline())
    first = trim_point if start is None else start
    tail = await client.positions.tail(client.deadline())
    last = tail if end is None else min(end, tail)
    first = min(first, last)
    view = client.layout.view
    before = await mark_at(client.reader, client.budget, first - 1) if first > 0 else None
    options = {key: value for key, value in view.options.items() if key != MIRROR_OF}
    writer = ExportWriter(file, Info(first, view.live_stripe.width, before, options))
    source = Source(client.reader, client.budget, first)
    while source.position < last:
        pieces = await source.next(last)
        if not pieces:
            raise source.open_hole()
        for piece in pieces:
            writer.add(piece)
        progress(source.position - first, last - first)
    kept = await client.cursors.list(client.deadline()) if cursors else None
    writer.end(None if kept is None else {each.name: each.position for each in kept})
    return Copied(first, last, writer.entries)


async def import_log(
    io: Io,
    name: str,
    settings: HandleOptions,
    file: Readable,
    width: int | None,
    progress: Callable[[int], object],
    *,
    promote: bool,
) -> Copied:
    """Write a file to a log; see :func:`zlog.import_log`."""
    reader = ExportReader(file)
    info = reader.info
    options = {**info.options, MIRROR_OF: MIRROR_OF_FILE}
    new = LogOptions(width or info.width, options=options)
    target = await _open_mirror(io, name, settings, new)
    await target.begin_at(info.start)
    start, entries = target.tail, 0
    last_mark = await target.last_mark()
    if start == info.start:
        target.compare("the export", info.before, last_mark, start - 1)
    for some in rounds(_missing(reader.pieces(), target, last_mark)):
        await target.write(some)
        entries += sum(len(piece.entries) for piece in some if isinstance(piece, Batch))
        progress(target.tail)
    await target.advance_cursors(reader.cursors or {})
    if promote:
        await target.promote()
    return Copied(start, max(start, reader.position), entries)


async def _open_mirror(io: Io, name: str, settings: HandleOptions, new: LogOptions) -> Target:
    """Open a mirror, or make it; one that is there keeps its own mark.

    Raises:
        CopyDiffers: there is a log of this name that is no mirror, or is being promoted.
    """
    client = await LogClient.open(io, name, settings, new)
    return Target(client.reader, client.cursors, client.budget)


def _missing(pieces: Iterator[Piece], target: Target, last_mark: Mark | None) -> Iterator[Piece]:
    """Leave out what the target has, after a look at the last of it."""
    tail = target.tail
    for piece in pieces:
        if piece.start < tail <= piece.end:
            target.compare("the export", mark_of(piece, tail - 1), last_mark, tail - 1)
        if piece.end > tail:
            yield part_from(piece, tail)


class Mirroring:
    """Copies a log to another one, in rounds.

    Args:
        source: the log that is copied.
        follow: whether it goes on at the tail, for ever.
        cursors: whether the log's cursors are copied too, again and again.
    """

    def __init__(self, source: LogClient, target: Target, *, follow: bool, cursors: bool) -> None:
        self._client = source
        self._target = target
        self._follow = follow
        self._with_cursors = cursors
        self._cursors: dict[str, int] = {}
        self._source = Source(source.reader, source.budget, target.tail)
        self._end = 0
        self._waits = 0
        self._read_again = -1  # the mirror's tail at which it was done

    @classmethod
    async def begin(
        cls,
        source: LogClient,
        io: Io,
        name: str,
        settings: HandleOptions,
        width: int | None,
        *,
        follow: bool,
        cursors: bool,
        adopt: bool,
    ) -> Mirroring:
        """Open the mirror, or make it, and see that it is one of this log.

        An import becomes one; see :func:`_compare` about ``adopt``.

        Raises:
            CopyDiffers: it is not.
        """
        start = await source.positions.resolve("earliest", source.deadline())
        tail = await source.positions.tail(source.deadline())
        view = source.layout.view
        mark = f"{view.log_id:016x}"
        live, options = view.live_stripe, {**view.options, MIRROR_OF: mark}
        new = LogOptions(width or live.width, live.unit, options=options)
        target = await _open_mirror(io, name, settings, new)
        if target.mark not in (mark, MIRROR_OF_FILE) or target.tail > tail:
            raise CopyDiffers(f"{target} is a mirror, but not of log {source.layout}")
        if target.tail:
            await _compare(source, target, adopt=adopt)
        if target.mark == MIRROR_OF_FILE:
            await target.bind(mark)
        if not target.tail:
            await target.begin_at(start)
        mirroring = cls(source, target, follow=follow, cursors=cursors)
        mirroring._end = tail
        return mirroring

    @property
    def tail(self) -> int:
        """The mirror's: how far the log was copied."""
        return self._target.tail

    async def step(self) -> bool:
        """Copy what is next, or wait some seconds for it. False: all was copied.

        Raises:
            NotWritten: the log has a hole that stays open, and nothing is followed.
        """
        if self._source.position >= self._end:
            if not self._follow:
                await self._copy_cursors()
                return False
            at, client = self._source.position, self._client
            self._end = await wait_for_more(client.positions, client.budget, at) or self._end
        if self._source.position < self._end:
            pieces = await self._source.next(self._end)
            await self._hole(pieces)
            await self._write(pieces)
        await self._copy_cursors()
        return True

    async def _write(self, pieces: list[Piece]) -> None:
        """Write pieces; or read them once more, if they may have been trimmed since.

        Another copier that read them later has trimmed them in the mirror then.
        """
        try:
            for some in rounds(pieces):
                await self._target.write(some)
        except PositionTaken:
            if self._read_again == self.tail:
                raise
            self._read_again = self.tail
            self._source = Source(self._client.reader, self._client.budget, self.tail)

    async def _hole(self, pieces: list[Piece]) -> None:
        """Where a hole stays open, wait a while before the next look."""
        if pieces:
            self._waits = 0
            return
        if not self._follow:
            raise self._source.open_hole()
        self._end = self._source.position  # perhaps a tail that no longer counts
        await backoff(self._client.io, self._waits)
        self._waits += 1

    async def _copy_cursors(self) -> None:
        """Move the mirror's cursors to where the log's are, as far as it was copied."""
        if not self._with_cursors:
            return
        kept = await self._client.cursors.list(self._client.deadline())
        wanted = {each.name: min(each.position, self.tail) for each in kept}
        changed = {name: at for name, at in wanted.items() if self._cursors.get(name) != at}
        await self._target.advance_cursors(changed)
        self._cursors = wanted


async def _compare(source: LogClient, target: Target, *, adopt: bool) -> None:
    """Compare what stands just below the tail of a mirror in both.

    Raises:
        CopyDiffers: it is not the same; or the mirror is an import, nothing tells whether it is,
            and it is not to be adopted unseen.
    """
    own = await target.last_mark()
    last = await mark_at(source.reader, source.budget, target.tail - 1)
    target.compare(f"log {source.layout}", last, own, target.tail - 1)
    if target.mark == MIRROR_OF_FILE and None in (last, own) and not adopt:
        raise CopyDiffers(
            f"{target} is an import, and nothing tells whether of log {source.layout}: position"
            f" {target.tail - 1} is trimmed in one of them",
            hint="Copy to a new log: `zlog mirror --as NAME`. If you know that it is one of this"
            " log: `zlog mirror --adopt`.",
        )
