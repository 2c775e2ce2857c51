"""Writing pieces to a mirror, each position as its source has it.

A mirror is a log that takes no appends: its positions are given, not handed out. So it has no
sequencer, and its tail is the tail floor, which is raised once everything below is written. Readers
see nothing above it; there, some positions of a round may be written and others not yet.

Entries keep their append ids, and fills who did them and when. So what is written once more is the
same again, by the rules of the object class, after a death or by two who copy at the same time; and
a position at which anything else stands refuses.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from zlog._append.roll import RollWatch
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Reply
from zlog._base.options import MIRROR_ENDED, MIRROR_OF
from zlog._base.pool_full import explain
from zlog._base.protocol import Code
from zlog._base.settings import Budget
from zlog._layout.layout import Layout
from zlog._native import core, messages
from zlog._read.cursors import Cursors
from zlog._read.read import Reader
from zlog._transfer.pieces import Batch, Filled, Mark, Piece
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
    from_code,
)
from zlog.view import Stripe, View


class Target:
    """A mirror that is written to.

    Args:
        reader: of the log.
        cursors: of the log.
        budget: of its handle.

    Raises:
        CopyDiffers: the log is no mirror, or is being promoted.
    """

    def __init__(self, reader: Reader, cursors: Cursors, budget: Budget) -> None:
        self._reader = reader
        self._cursors = cursors
        self._budget = budget
        self._layout = reader.layout
        self._rolls = RollWatch(reader.layout)
        self._check(self._layout.view)

    def __str__(self) -> str:
        return f"log {self._layout}"

    @property
    def mark(self) -> str:
        """What it is a mirror of."""
        return self._layout.view.options[MIRROR_OF]

    @property
    def tail(self) -> int:
        """The next position to be copied."""
        return self._layout.view.tail_floor

    def _check(self, view: View) -> None:
        """Raise CopyDiffers unless the log is a mirror in this view."""
        if not view.mirror:
            raise CopyDiffers(f"{self} is no mirror: it has entries of its own")
        if view.options[MIRROR_OF] == MIRROR_ENDED:
            raise CopyDiffers(
                f"{self} is being promoted to a log of its own",
                hint="Finish that: `zlog promote LOG`.",
            )

    def compare(self, source: str, mark: Mark | None, own: Mark | None) -> None:
        """Raise CopyDiffers if what stands just below the tail is known and not the same."""
        if mark is not None and own is not None and mark != own:
            raise CopyDiffers(
                f"{self} is no copy of {source}: they hold different things at position"
                f" {self.tail - 1}"
            )

    async def last_mark(self) -> Mark | None:
        """Return the mark of the position just below the tail; None where there is none."""
        if not self.tail:
            return None
        return await mark_at(self._reader, self._budget, self.tail - 1)

    async def begin_at(self, position: int) -> None:
        """Have the first position to be copied be this one: those below are trimmed.

        Raises:
            CopyDiffers: others were copied already, and those in between are missing.
        """
        deadline = self._budget.deadline()
        await self._look(deadline)
        if self.tail >= position:
            return
        if self.tail:
            raise CopyDiffers(
                f"{self} lacks positions {self.tail} to {position - 1} in between",
                hint=f"Copy these first: `zlog export SOURCE --from {self.tail}`.",
            )
        # A cursor there holds nothing back: the mirror has no entries yet.
        await trim_to(self._layout, position, deadline, past_cursors=True)
        await self._confirm(position, deadline)

    async def write(self, pieces: Sequence[Piece]) -> None:
        """Write one round, which begins at the tail, and raise the tail above it.

        Raises:
            CopyDiffers: a position holds something else, or the log is no mirror any more.
        """
        deadline = self._budget.deadline()
        if self._rolls.alert:
            await self._rolls.act(deadline)
        made: list[tuple[Call, Stripe]] = []

        def calls(view: View) -> list[Call]:
            self._check(view)
            made[:] = _calls(self._layout, view, pieces)
            return [call for call, _ in made]

        view, replies = await self._layout.guarded(calls, deadline)
        live: list[Reply] = []
        for (call, stripe), reply in zip(made, replies, strict=True):
            await self._judge(call, reply)
            if call.method == "write" and stripe.id == view.live_stripe.id:
                live.append(reply)
        if live:
            self._rolls.note(view, live)
        await self._confirm(pieces[-1].end, deadline)

    async def advance_cursors(self, wanted: Mapping[str, int]) -> None:
        """Move cursors forward, as far as the log was copied; those that lack are made.

        One that the mirror's own reader has moved further, or removes meanwhile, is left to it.
        """
        for name, position in wanted.items():
            await self._advance_cursor(name, position, self._budget.deadline())

    async def _advance_cursor(self, name: str, position: int, deadline: Deadline) -> None:
        while True:
            view = await self._look(deadline)
            # Where the copy is trimmed further, the reader begins with what is left.
            at = max(min(position, view.tail_floor), view.trim_point)
            with contextlib.suppress(Invalidated):  # it was trimmed once more: look again
                kept = await self._cursors.create(name, at, deadline)
                if kept < at:
                    with contextlib.suppress(CursorAhead, CursorNotFound):
                        await self._cursors.advance(name, at, deadline)
                return

    async def promote(self) -> None:
        """Make it a log of its own: the last call on it."""
        await promote(self._reader, self._budget.deadline())

    async def _judge(self, call: Call, reply: Reply) -> None:
        if reply.code == Code.READ_ONLY:
            raise CopyDiffers(
                f"{self} is no copy of its source: it holds something else at position"
                f" {reply.number}"
            )
        if reply.code == -errno.ENOENT:
            raise CorruptEntry(f"stripe object {call.object} is missing")
        if reply.code != Code.OK:
            error = from_code(reply.code, f"{call.method} on {call.object}")
            if isinstance(error, StoreTimeout):
                await explain(self._layout.io, error)
            raise error

    async def _look(self, deadline: Deadline) -> View:
        """Return the newest view, in which it is still a mirror."""
        view = await self._layout.refresh(deadline)
        self._check(view)
        return view

    async def _confirm(self, end: int, deadline: Deadline) -> None:
        """Raise the tail, in the epoch of a view in which it is still a mirror."""
        layout = self._layout
        log_id = layout.address.log_id
        while True:
            view = layout.view
            self._check(view)
            if await layout.head.tail_raise(log_id, view.epoch, end, deadline):
                break
            await layout.advance(view, deadline)
        layout.adopt(replace(view, tail_floor=end))


def _calls(layout: Layout, view: View, pieces: Sequence[Piece]) -> list[tuple[Call, Stripe]]:
    """Return the calls that write pieces, each with the stripe that it is about."""
    return [
        (call, stripe)
        for piece in pieces
        for start, end, stripe in _by_stripe(layout, view, piece)
        for call in _calls_of(layout, view, stripe, piece, start, end)
    ]


def _by_stripe(layout: Layout, view: View, piece: Piece) -> Iterator[tuple[int, int, Stripe]]:
    """Cut a piece by stripes, all of which must be known (StripeUnknown)."""
    start = piece.start
    while start < piece.end:
        stripe = layout.stripe_of(view, start)
        end = min(piece.end, stripe.end)
        yield start, end, stripe
        start = end


def _calls_of(
    layout: Layout, view: View, stripe: Stripe, piece: Piece, start: int, end: int
) -> Iterator[Call]:
    objects = layout.objects(view, stripe)
    if isinstance(piece, Batch):
        skipped = start - piece.start
        requests = core.encode_writes(
            view.epoch,
            piece.timestamp,
            piece.writer,
            stripe.width,
            start,
            piece.number + skipped,
            piece.entries,
            skipped,
            end - piece.start,
        )
        for index, request in requests:
            yield Call(objects[index].name, "write", request)
        return
    for first in range(start, min(end, start + stripe.width)):
        name = objects[first % stripe.width].name
        positions = range(first, end, stripe.width)
        if isinstance(piece, Filled):
            _, _, timestamp, writer, reason = piece
            yield Call(
                name,
                "fill",
                messages.fill(view.epoch, timestamp, writer, reason, stripe.width, positions),
            )
        else:
            yield Call(name, "trim", messages.trim(view.epoch, stripe.width, positions))
