"""Writes pieces to a mirror, at the positions that they have in its source.

A mirror takes no appends and has no sequencer. Its tail is its tail floor, which is raised once all
positions below it are written. Readers see nothing above it, where a round may be half written.

Entries keep their append ids, and fills keep their time and the client that filled. Writing a piece
again, after a crash or in another process, therefore has no effect. A write is refused if the
position has other content.
"""

from __future__ import annotations

import contextlib
import errno
from collections import defaultdict
from collections.abc import Awaitable, Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

from zlog._append.feedback import RollWatch
from zlog._append.same_id import AppendId, compare
from zlog._base.codes import Code, State
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Reply
from zlog._base.monitor import explain
from zlog._base.options import (
    MIRROR_ENDED,
    MIRROR_OF,
    MIRROR_OF_FILE,
    PROMOTED_FROM,
    origins,
    promotions,
)
from zlog._base.pieces import Batch, Filled
from zlog._base.refusals import refused_call
from zlog._layout.writes import writes_at
from zlog._native import messages
from zlog._native.new_entries import entries_cut
from zlog._native.replies import decode_read
from zlog._read.cursors import Cursors
from zlog._read.iterate import WINDOW_BYTES
from zlog._read.read import Reader
from zlog._transfer.pieces import Mark, Piece, mark_of, part_from, parts_without
from zlog._transfer.promote import promote
from zlog._transfer.source import mark_at
from zlog._trim.trim import trim_to
from zlog.errors import (
    CopyDiffers,
    CorruptEntry,
    CursorAhead,
    CursorNotFound,
    Invalidated,
    StoreTimeout,
)
from zlog.view import ObjectRef, Stripe, View

T = TypeVar("T")

_REFUSALS = (Code.READ_ONLY, Code.FROZEN, -errno.ENOENT)
"""Replies if a position holds something else, or if its stripe was removed."""


class PositionTaken(CopyDiffers):
    """A position's content differs from the source's."""


class Target:
    """A mirror that pieces are written to.

    Raises:
        CopyDiffers: the log is not a mirror, or is being promoted.
        KeyNeeded: the log's entries have MACs, but this client has no key.
    """

    def __init__(self, reader: Reader, cursors: Cursors) -> None:
        self._reader = reader
        self._cursors = cursors
        self._deadline = reader.budget.deadline
        self.layout = self._layout = reader.layout
        self._rolls = RollWatch(reader.layout)
        self._check(self._layout.view)
        self._layout.macs.check_key()

    def __str__(self) -> str:
        return f"log {self._layout}"

    @property
    def mark(self) -> str:
        """The mark that identifies the mirror's source. Raises CopyDiffers if it has none now."""
        self._check(self._layout.view)
        return self._layout.view.options[MIRROR_OF]

    @property
    def tail(self) -> int:
        """The next position to copy."""
        return self._layout.view.tail_floor

    def _check(self, view: View) -> None:
        """Raise CopyDiffers if the log is not a mirror in this view."""
        if not view.mirror:
            raise CopyDiffers(
                f"{self} is not a mirror: it has entries of its own",
                hint="If it was promoted, `zlog mirror LOG --to URL --missing` lists the entries"
                " that it lacks."
                if view.promoted_from
                else None,
            )
        if view.options[MIRROR_OF] == MIRROR_ENDED:
            raise CopyDiffers(
                f"{self} is being promoted to an independent log",
                hint="Finish the promotion with `zlog access promote LOG`.",
            )

    def compare(self, source: str, mark: Mark | None, own: Mark | None, position: int) -> None:
        """Raise CopyDiffers if both marks of a position are known and differ."""
        if mark is not None and own is not None and mark != own:
            raise CopyDiffers(
                f"{self} is not a copy of {source}: they differ at position {position}"
            )

    async def last_mark(self) -> Mark | None:
        """Return the mark of the position just below the tail, or None if it has none."""
        if not self.tail:
            return None
        return await mark_at(self._reader, self.tail - 1)

    async def begin_at(self, position: int) -> None:
        """Start the copy at ``position``, by trimming all positions below it.

        Raises:
            CopyDiffers: the mirror has entries, but lacks positions between its tail and this one.
        """
        deadline = self._deadline()
        view = await self._look(deadline)
        position = max(position, view.trim_point)  # an earlier call may have died after its trim
        if view.tail_floor >= position:
            return
        if view.tail_floor:
            raise CopyDiffers(
                f"{self} lacks positions {self.tail} to {position - 1}",
                hint=f"Copy these positions first: `zlog export SOURCE --from {self.tail}`.",
            )
        # No cursor needs these positions, because the mirror has no entries yet.
        await trim_to(self._layout, position, deadline, past_cursors=True)
        await self._confirm(position, deadline)

    async def write(
        self,
        pieces: Sequence[Piece],
        before_tail: Callable[[int], Awaitable[None]] | None = None,
    ) -> None:
        """Write a round that begins at or below the tail, and raise the tail to the round's end.

        When everything is written, ``before_tail`` is called with the new tail.

        Raises:
            PositionTaken: the content of a position differs from the source.
            CopyDiffers: the log is no longer a mirror, or another source is copied to it.
        """
        deadline = self._deadline()
        if self._rolls.alert:
            await self._rolls.act(deadline)
        left = pieces
        while left and not await self._written(left, deadline):
            left = await self._above_tail(left)
        if before_tail is not None:
            await before_tail(pieces[-1].end)
        await self._confirm(pieces[-1].end, self._deadline())

    async def _written(self, pieces: Sequence[Piece], deadline: Deadline) -> bool:
        """Write pieces. Returns False if another process has raised the tail above their start.

        Positions below that tail must not be written again, because they may already be trimmed.
        """
        made: list[tuple[Call, Stripe]] = []

        def calls(view: View) -> list[Call]:
            self._check(view)
            trimmed = view.trim_point > pieces[0].start
            made[:] = [] if trimmed else self._calls(view, pieces)
            return [call for call, _ in made]

        view, replies = await self._layout.guarded(calls, deadline)
        if any(reply.code == Code.BEYOND_STRIPE for reply in replies):
            await self._layout.renew(view, deadline)
            return await self._written(pieces, deadline)
        answered = [(call, reply) for (call, _), reply in zip(made, replies, strict=True)]
        if same_id := {call.object for call, reply in answered if reply.code == Code.SAME_ID}:
            rest = await self._without_copied(view, pieces, same_id, deadline)
            return not rest or await self._written(rest, deadline)
        if not made or any(reply.code in _REFUSALS for reply in replies):
            newest = await self._look(deadline)
            if newest.trim_point > newest.tail_floor:  # another process has begun the mirror there
                await self._confirm(newest.trim_point, deadline)
            if self.tail > pieces[0].start:
                return False
        live: list[Reply] = []
        for (call, stripe), reply in zip(made, replies, strict=True):
            await self._decide(call, reply)
            if call.method == "write" and stripe.id == view.live_stripe.id:
                live.append(reply)
        if live:
            self._rolls.note(view, live, view.live_stripe.start)
        return True

    def _calls(self, view: View, pieces: Sequence[Piece]) -> Iterator[tuple[Call, Stripe]]:
        """Yield the calls that write pieces, each with its stripe."""
        for piece in pieces:
            for start, end, stripe in self._layout.by_stripe(view, piece.start, piece.end):
                objects, striping = self._layout.objects(view, stripe), stripe.striping
                if isinstance(piece, Batch):
                    yield from self._writes(view, stripe, piece, start, end)
                    continue
                for positions in striping.by_object(start, end):
                    if isinstance(piece, Filled):
                        by = piece.timestamp, piece.writer, piece.reason
                        fill = messages.fill(view.epoch, *by, striping.packed, positions)
                        call = Call(objects[positions.number].name, "fill", fill)
                    else:
                        trim = messages.trim(view.epoch, striping.packed, positions)
                        call = Call(objects[positions.number].name, "trim", trim)
                    yield call, stripe

    def _writes(
        self, view: View, stripe: Stripe, batch: Batch, start: int, end: int
    ) -> Iterator[tuple[Call, Stripe]]:
        begin, last = start - batch.start, end - batch.start
        while begin < last:
            cut = entries_cut(batch.entries, begin, last - begin, WINDOW_BYTES)
            writes = writes_at(
                self._layout,
                view,
                stripe,
                batch.start + begin,
                batch.entries[begin:cut],
                (batch.writer, batch.number + begin),
                batch.timestamp,
            )
            yield from ((call, stripe) for call in writes)
            begin = cut

    async def _without_copied(
        self, view: View, pieces: Sequence[Piece], same_id: Container[str], deadline: Deadline
    ) -> list[Piece]:
        """Leave out entries that objects hold in other blocks, which the class can't compare."""
        wanted: defaultdict[ObjectRef, dict[int, AppendId]] = defaultdict(dict)
        for piece in pieces:
            if not isinstance(piece, Batch):
                continue
            for start, end, stripe in self._layout.by_stripe(view, piece.start, piece.end):
                objects = self._layout.objects(view, stripe)
                for position in range(start, end):
                    ref = objects[stripe.striping.number(position)]
                    if ref.name in same_id:
                        i = position - piece.start
                        own = AppendId(piece.writer, piece.number + i, piece.entries[i])
                        wanted[ref][position] = own
        copied: set[int] = set()
        for ref, entries in wanted.items():
            for position, same in (await compare(self._layout, ref, entries, deadline)).items():
                if same is None:
                    raise self._lost(position)
                if not same:
                    raise self._taken(position)
                copied.add(position)
        return [part for piece in pieces for part in parts_without(piece, copied)]

    async def _above_tail(self, pieces: Sequence[Piece]) -> list[Piece]:
        """Skip positions that another process has written, after comparing the last one."""
        last = min(self.tail, pieces[-1].end) - 1
        piece = next(each for each in pieces if last < each.end)
        own = await mark_at(self._reader, last)
        self.compare("its source", mark_of(piece, last), own, last)
        return [part_from(each, self.tail) for each in pieces if each.end > self.tail]

    async def advance_cursors(self, wanted: Mapping[str, int]) -> None:
        """Create cursors or move them forward, but not above the tail.

        A cursor is not changed if a reader of the mirror has moved it further, or is removing it.
        """
        left = [*wanted.items()]
        while left:
            name, position = left[-1]
            deadline = self._deadline()
            view = await self._look(deadline)
            at = max(min(position, view.tail_floor), view.trim_point)
            with contextlib.suppress(Invalidated):  # it was trimmed again, so repeat this
                if await self._cursors.create(name, at, deadline) < at:
                    with contextlib.suppress(CursorAhead, CursorNotFound):
                        await self._cursors.advance(name, at, deadline)
                left.pop()

    async def bind(self, mark: str) -> None:
        """Make an imported log a mirror of this source only.

        Raises:
            CopyDiffers: the log has become a mirror of another source.
        """
        await self._set_option(MIRROR_OF, mark, MIRROR_OF_FILE)
        if self.mark != mark:
            raise CopyDiffers(f"{self} has become a mirror of another log")

    async def inherit(self, source: View) -> None:
        """Keep the origin of the source, which may have been promoted since the mirror began."""
        history, own = origins(source.options), origins(self._layout.view.options)[:-1]
        newest = promotions(source.options)[-1:]
        if len(history) > len(own) or not {*newest} <= {*own}:
            await self._set_option(PROMOTED_FROM, " ".join(history), self.mark)

    async def _set_option(self, name: str, value: str, mark: str) -> None:
        """Set an option while the log is a mirror with this mark."""

        def edit(view: View) -> View | None:
            if view.options.get(MIRROR_OF) != mark or view.options.get(name) == value:
                return None
            return replace(view, options=MappingProxyType({**view.options, name: value}))

        self._check(await self._layout.change(edit, self._deadline()))

    async def while_mirror(self, call: Callable[[View, Deadline], Awaitable[T | None]]) -> T:
        """Make a call in the newest epoch. It returns None if there is a newer one.

        Raises:
            CopyDiffers: the log is no longer a mirror.
        """
        deadline = self._deadline()
        while True:
            view = self._layout.view
            self._check(view)
            if (result := await call(view, deadline)) is not None:
                return result
            await self._layout.advance(view, deadline)

    async def promote(self) -> None:
        """Turn the mirror into an independent log. Call nothing on this object afterwards."""
        await promote(self._reader, self._deadline())

    async def _decide(self, call: Call, reply: Reply) -> None:
        if reply.code == Code.LOST or (
            reply.code == Code.READ_ONLY and await self._has_lost(reply.number)
        ):
            raise self._lost(reply.number)
        if reply.code == Code.READ_ONLY:
            raise self._taken(reply.number)
        if reply.code == -errno.ENOENT:
            raise CorruptEntry(f"stripe object {call.object} is missing")
        if reply.code != Code.OK:
            error = refused_call(reply.code, call.method, call.object)
            if isinstance(error, StoreTimeout):
                await explain(self._layout.io, error)
            raise error

    def _lost(self, position: int) -> CorruptEntry:
        return CorruptEntry(
            f"position {position} of {self} is lost, so it can't be compared with its source",
            hint="`zlog check MIRROR --repair` restores the entry if another replica of the object"
            " has it. Otherwise, copy to a new log with `zlog mirror --as NAME`.",
        )

    def _taken(self, position: int) -> PositionTaken:
        return PositionTaken(
            f"{self} is not a copy of its source: they differ at position {position}"
        )

    async def _has_lost(self, position: int) -> bool:
        """Whether a position is damaged or lost in the primary replica."""
        _, _, replies = await self._reader.ask([position], 1, self._deadline())
        return any(
            reply.code == Code.OK
            and decode_read(reply.payload, [position], self._layout.macs.key).state(0) == State.LOST
            for reply in replies
        )

    async def _look(self, deadline: Deadline) -> View:
        """Return the newest view. Raises if the log is no longer a mirror in it."""
        view = await self._layout.refresh(deadline)
        self._check(view)
        return view

    async def _confirm(self, end: int, deadline: Deadline) -> None:
        """Raise the tail, in an epoch in which the log is still a mirror."""
        layout = self._layout
        while True:
            view = layout.view
            self._check(view)
            if await layout.raise_tail(view, end, deadline):
                break
        layout.adopt(replace(view, tail_floor=end))
