"""Reading positions, waiting for holes and filling them, and reporting gaps.

A hole below the tail is waited for and then filled. The object decides whether the writer or the
reader was first, so two readers never disagree about a position.
"""

from __future__ import annotations

import contextlib
import errno
import functools
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from zlog._base.codes import Code, FillCode
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Reply, Started
from zlog._base.striping import Places
from zlog._layout.object_calls import by_object, change_positions
from zlog._native import messages
from zlog._positions.positions import Positions
from zlog._read.copies import read_copies
from zlog._read.holes import HoleTimeout, fill_ahead
from zlog._read.items import Slot, decode_slots, is_open, lost, trimmed
from zlog.entry import Gap, LossReason
from zlog.errors import CorruptEntry
from zlog.view import ObjectRef, View

READ_BYTES_MAX = 4 << 20
"""Data that one read of one object may return (an entry larger than this is returned alone)."""

_POLL_SECONDS = 0.0003
_POLL_SECONDS_MAX = 0.1
"""How often an unwritten position is read again. A sequencer announces positions when it grants
them, so a follower is usually a moment earlier than the entry, and the first pause is short."""


@dataclass(slots=True)
class Window:
    """A range of positions that is being read, with one operation per stripe object.

    Life: started → decoded → returned, perhaps in several steps, each of which ends at a hole that
    has to be waited for.

    Attributes:
        start: the first position that was not returned yet.
        end: one past the last; decreases if the entries prove larger than expected.
        bytes_max: limit of the data that all calls together return.
        with_ids: whether the replies report who appended and filled.
        parts: the positions that each call asks for.
        started: the calls.
        decoded: what the replies hold, once they are decoded.
        found: what the positions hold that ``decoded`` has no final answer for; None before that.
    """

    start: int
    end: int
    bytes_max: int
    with_ids: bool
    parts: list[Places]
    started: Started
    decoded: Any = None
    found: dict[int, Slot] | None = None


class Reader:
    """Reads positions of one log, and fills them under the id of its writer.

    Args:
        writer: id under which it fills.

    Attributes:
        layout: of the log.
        positions: returns the tail. Nothing is filled at or above the checked tail: a sequencer
            that was replaced may have granted positions that its successor grants again.
        with_data: whether it reads the data of entries. If not, the data of all entries is empty,
            and neither checksums nor MACs are checked.
    """

    def __init__(self, positions: Positions, writer: bytes, *, with_data: bool = True) -> None:
        self.layout = positions.layout
        self.positions = positions
        self.with_data = with_data
        self._writer = writer
        self._io = self.layout.io

    async def read(self, positions: Sequence[int], deadline: Deadline) -> dict[int, Slot]:
        """Read positions as they are now: no waiting, no filling.

        Returns what each position holds. Positions below the trim point are not looked up.
        """
        found: dict[int, Slot] = {}
        rest = positions
        while rest:
            found.update(await self.read_some(rest, deadline))
            rest = [p for p in rest if p not in found]
        return found

    async def read_some(
        self,
        positions: Sequence[int],
        deadline: Deadline,
        *,
        bytes_max: int = READ_BYTES_MAX,
        writers: dict[int, bytes] | None = None,
    ) -> dict[int, Slot]:
        """Ask each object once, for up to ``bytes_max`` of data, as :meth:`read` does repeatedly.

        Returns what the first of each object's positions hold: at least one of them, unless the
        trim point or the layout turns out to have changed, which the next call takes into account.
        With ``writers``, that gets the id of each entry's writer.
        """
        view, asked, replies = await self.ask(positions, bytes_max, deadline)
        found: dict[int, Slot] = {p: trimmed(p) for p in positions if p < view.trim_point}
        gone: list[Gap] = []
        mac = self.layout.macs.key
        decode = functools.partial(decode_slots, mac=mac, with_data=self.with_data)
        for (ref, group), reply in zip(asked, replies, strict=True):
            if reply.code == -errno.ENOENT:
                gone += (lost(p, LossReason.MISSING, ref.name) for p in group)
            elif reply.code == -errno.EIO:
                found.update((p, lost(p, LossReason.CORRUPT, ref.name)) for p in group)
            else:
                reply.check_call("read", ref.name)
                damaged = decode(reply.payload, ref.name, group, found, writers)
                if damaged:
                    request = functools.partial(
                        self._request, view, ref, bytes_max=READ_BYTES_MAX, with_ids=True
                    )
                    await read_copies(
                        self._io, ref.name, decode, request, damaged, found, writers, deadline
                    )
        if gone and not await self.layout.outdated(view, deadline):
            found.update((gap.position, gap) for gap in gone)
        return found

    async def ask(
        self, positions: Sequence[int], bytes_max: int, deadline: Deadline
    ) -> tuple[View, list[tuple[ObjectRef, list[int]]], list[Reply]]:
        """Ask each object once, and return the replies as they are.

        Returns:
            The view, what each object was asked for, and what it answered.
        """
        groups: list[tuple[ObjectRef, list[int]]] = []

        def calls(view: View) -> list[Call]:
            groups[:] = by_object(self.layout, view, positions)
            return [
                Call(ref.name, "read", self._request(view, ref, group, bytes_max, with_ids=True))
                for ref, group in groups
            ]

        view, replies = await self.layout.guarded(calls, deadline)
        return view, groups, replies

    def start(
        self,
        start: int,
        end: int,
        bytes_max: int,
        indexes: Collection[int] | None = None,
        *,
        with_ids: bool = False,
        tags: bool = True,
    ) -> Window:
        """Start reading ``[start, end)``: one operation per stripe object, nothing awaited.

        Positions of a later stripe that is not known yet are not asked for.

        Args:
            start: the first position.
            end: one past the last.
            bytes_max: limit of the data that all calls together return; the rest is read later.
            indexes: of the stripe objects to ask; None asks all.
            with_ids: whether the replies report who appended and filled.
            tags: whether they report the entries' tags.

        Raises:
            StripeUnknown: the stripe of ``start`` must be looked up first.
        """
        view = self.layout.view
        wanted: list[tuple[ObjectRef, Places]] = []
        for first, last, stripe in self.layout.known_stripes(view, start, end):
            objects = self.layout.objects(view, stripe)
            for part in stripe.spacing.parts(first, last):
                ref = objects[part.number]
                if indexes is None or ref.number in indexes:
                    wanted.append((ref, part))
        share = bytes_max // max(1, len(wanted))
        calls = [
            Call(
                ref.name,
                "read",
                self._request(view, ref, asked, share, with_ids=with_ids, tags=tags),
            )
            for ref, asked in wanted
        ]
        parts = [asked for _, asked in wanted]
        return Window(start, end, bytes_max, with_ids, parts, self._io.start(calls))

    async def settle(
        self,
        found: dict[int, Slot],
        holes: HoleTimeout,
        tail: int,
        parts: Sequence[Places],
        deadline: Deadline,
        *,
        first: int | None = None,
        reverse: bool = False,
    ) -> int | None:
        """Wait for the holes among what was found, and fill those that stay.

        Returns the hole before which it stopped: it has to be waited for, and the caller returns
        what it has read before that. None: all is settled, or left alone, as happens after the wait
        in a read-only store.

        Before any is filled or reported, the head is asked whether it was trimmed: the trim point
        comes first, and a trim that died goes no further. Where all objects end with holes that are
        filled, those that follow below ``tail`` are filled with them.

        Args:
            found: what the positions hold.
            holes: how long to wait for them.
            tail: positions below it were granted.
            parts: the positions that were read of each object.
            deadline: budget.
            first: where the caller continues: only a hole there is waited for; None: all are.
            reverse: whether the caller reads downwards.
        """
        io = self._io
        give_up = None if holes.seconds is None else io.monotonic() + holes.seconds
        poll = _POLL_SECONDS
        if holes.overdue:  # a window that was prefetched may have been filled since
            overdue = [p for p, slot in found.items() if is_open(slot) and p < holes.overdue]
            found.update(await self.read(overdue, deadline))
        while unwritten := sorted(p for p, slot in found.items() if is_open(slot)):
            left = 0.0 if give_up is None else give_up - io.monotonic()
            if left <= 0:
                holes.overdue = max(holes.overdue, tail, unwritten[-1] + 1)
            if unwritten[0] >= holes.overdue:
                next_hole = unwritten[-1 if reverse else 0]
                if first not in (None, next_hole):
                    return next_hole
                await io.sleep(min(poll, left))
                poll = min(poll * 2, _POLL_SECONDS_MAX)
            elif unwritten[0] >= (await self.layout.refresh(deadline)).trim_point:
                due = 0
                if give_up is not None and not io.store.read_only:
                    with contextlib.suppress(CorruptEntry):  # of the tail: it can't be recorded now
                        due = min(holes.overdue, await self.positions.tail(deadline))
                abandoned = {p for p in unwritten if p < due}
                if not abandoned:
                    break
                await self.fill(sorted(abandoned), FillCode.READER_WAITED, deadline)
                last = [part for part in parts if part.stop == parts[-1].stop]  # of one stripe
                if last and all(part[-1] in abandoned for part in last):
                    await fill_ahead(self.layout, self._writer, last, min(due, tail), deadline)
            found.update(await self.read(unwritten, deadline))
        return None

    async def fill(
        self, positions: Sequence[int], reason: FillCode, deadline: Deadline
    ) -> int | None:
        """Fill unwritten positions. Returns the first written or lost one of an object, if any.

        An object fills all or none of its positions: where one was written, none of its others
        are filled, and the caller looks again.
        """
        now = self._io.wall_clock_us()

        def request(view: View, ref: ObjectRef, group: list[int]) -> bytes:
            return messages.fill(view.epoch, now, self._writer, reason, ref.spacing.packed, group)

        taken: int | None = None
        refusals = (Code.READ_ONLY, Code.LOST)
        for _, reply in await change_positions(
            self.layout, "fill", request, positions, deadline, *refusals
        ):
            if reply.code in refusals:
                taken = reply.number
        return taken

    def _request(
        self,
        view: View,
        ref: ObjectRef,
        asked: Sequence[int],
        bytes_max: int,
        *,
        with_ids: bool = False,
        tags: bool = True,
    ) -> bytes:
        packed = ref.spacing.packed
        # In order: to sort names out would take a tenth of what reading one entry does.
        rest = True, tags, not self.with_data  # blocks, tags, without_data
        return messages.read(view.epoch, with_ids, bytes_max, packed, asked, *rest)
