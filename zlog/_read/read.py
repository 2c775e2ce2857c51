"""Reading positions, settling holes, and telling gaps truthfully.

A window of positions is read with one operation per stripe object, all at the same time. A hole
below the tail is waited for and then filled; the object decides who was first, so two readers
never disagree about a position.
"""

from __future__ import annotations

import contextlib
import errno
import functools
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from zlog._base.codes import Code, FillCode, State
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Reply, Started
from zlog._base.striping import Places
from zlog._native import core, messages
from zlog._positions.positions import Positions
from zlog._read.copies import read_copies
from zlog._read.holes import Patience, fill_ahead
from zlog._read.items import Slot, decode_slots, gap_of, in_order, is_open, lost, trimmed
from zlog.entry import Entry, Gap, LossReason
from zlog.errors import CorruptEntry
from zlog.view import ObjectRef, View

READ_BYTES_MAX = 4 << 20
"""Data that one read of one object may bring back (an entry larger than this comes alone)."""

_POLL_SECONDS = 0.0003
_POLL_SECONDS_MAX = 0.1
"""How often an unwritten position is looked at. A sequencer tells of positions when it hands them
out, so a follower is usually there a moment before the entry; the first look again is soon."""

_PLAIN = (State.UNWRITTEN, State.TRIMMED)
"""Gaps that a window tells all of. Who filled a position, or what lost it, is asked for."""


@dataclass(slots=True)
class WindowRead:
    """A window of positions that is being read.

    Life: under way → finished, perhaps in several steps: each ends before a hole that has to be
    waited for.

    Attributes:
        start: the first position that was not returned yet.
        end: one past the last; lower once the entries prove larger than expected.
        bytes_max: data that all calls together may bring.
        parts: the positions that each call asks for.
        started: the calls.
        found: what the calls brought, from ``start`` on.
    """

    start: int
    end: int
    bytes_max: int
    parts: list[Places]
    started: Started
    found: Any = None


class WindowItems(NamedTuple):
    """What a window holds, in order.

    Attributes:
        items: up to ``end``.
        data_bytes: of the entries together.
        end: that of the window, or the hole before which this step ends.
    """

    items: Sequence[Entry | Gap]
    data_bytes: int
    end: int


class Reader:
    """Reads positions of one log, and fills them under the id of its writer.

    Attributes:
        layout: of the log.
        positions: tell the tail. Nothing is filled at or beyond the checked one: a sequencer that
            was replaced may have handed out what its successor will hand out again.
    """

    def __init__(self, positions: Positions, writer: bytes) -> None:
        self.layout = positions.layout
        self.positions = positions
        self._writer = writer
        self._io = self.layout.io

    async def read(self, positions: Sequence[int], deadline: Deadline) -> dict[int, Slot]:
        """Read positions as they are now: no waiting, no filling.

        Returns what each position holds. Positions below the trim point are not looked up.
        """
        found = await self.read_some(positions, deadline) if positions else {}
        while rest := [p for p in positions if p not in found]:
            found.update(await self.read_some(rest, deadline))
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
        trim point or the layout turns out to have changed, which the next call goes by. With
        ``writers``, that gets the id of each entry's writer.
        """
        found: dict[int, Slot] = {}
        view, asked, replies = await self.read_once(positions, bytes_max, deadline)
        found.update((p, trimmed(p)) for p in positions if _is_trimmed(view, p))
        await self._take(view, asked, replies, found, writers, deadline)
        return found

    def start(
        self,
        start: int,
        end: int,
        bytes_max: int,
        indexes: Collection[int] | None = None,
        *,
        with_ids: bool = False,
        tags: bool = True,
    ) -> WindowRead:
        """Start reading ``[start, end)``: one operation per stripe object, nothing awaited.

        Where a later stripe is not known yet, :meth:`finish` goes on.

        Args:
            start: the first position.
            end: one past the last.
            bytes_max: data that all of them together may bring back; the rest is read later.
            indexes: of the stripe objects to ask; None asks all.
            with_ids: whether the replies tell who appended and filled; not for :meth:`finish`.
            tags: whether they tell the entries' tags.

        Raises:
            StripeUnknown: of ``start``, already, the stripe must be looked up first.
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
            Call(ref.name, "read", _request(view, ref, asked, share, with_ids=with_ids, tags=tags))
            for ref, asked in wanted
        ]
        parts = [asked for _, asked in wanted]
        return WindowRead(start, end, bytes_max, parts, self._io.start(calls))

    async def finish(
        self, read: WindowRead, patience: Patience, tail: int, deadline: Deadline
    ) -> WindowItems:
        """Bring in what :meth:`start` asked for, in order, nothing left out.

        What takes more than ``bytes_max`` of data, whose size was not known, is left to the next
        window. What lies before a hole is returned without waiting for the hole; call it again.

        Args:
            read: what is under way.
            patience: with holes. Those that are left alone are reported as UNWRITTEN, as happens
                after the wait in a store that is read-only.
            tail: positions below it are read, too, and were handed out.
            deadline: budget of the whole call.
        """
        if read.found is not None:
            return await self._step(read, patience, tail, deadline)
        window = core.Window(read.start, read.end, self.layout.macs.key)
        replies = await read.started.finish(deadline)
        for asked, reply in zip(read.parts, replies, strict=True):
            if reply.code == Code.OK:
                window.add(reply.payload, asked.start, asked.spacing.packed)
        if window.entries == read.end - read.start:
            items = cast("Sequence[Entry | Gap]", window)
            return WindowItems(items, window.data_bytes, read.end)
        found: dict[int, Slot] = {
            position: item if isinstance(item, Entry) else gap_of(position, item)
            for position, item in window.found().items()
            if isinstance(item, Entry) or item in _PLAIN
        }
        rest = [p for p in range(read.start, read.end) if p not in found]
        await self.read_rest(read, rest, window.data_bytes, found, deadline)
        read.found = {position: found[position] for position in range(read.start, read.end)}
        return await self._step(read, patience, tail, deadline)

    async def _step(
        self, read: WindowRead, patience: Patience, tail: int, deadline: Deadline
    ) -> WindowItems:
        """Return a window's items up to the next hole that has to be waited for."""
        start, found = read.start, read.found
        hole = await self.settle(found, patience, tail, read.parts, deadline, first=start)
        read.start = end = read.end if hole is None else hole
        items = in_order(found.pop(position) for position in range(start, end))
        data_bytes = sum(len(item.data) for item in items if isinstance(item, Entry))
        return WindowItems(items, data_bytes, end)

    async def read_rest(
        self,
        read: WindowRead,
        rest: list[int],
        data_bytes: int,
        found: dict[int, Slot],
        deadline: Deadline,
    ) -> None:
        """Read what is left of a window into ``found``, until its data is as much as it may be.

        The window ends there: later positions may be in ``found``, and do not count.

        Args:
            read: the window.
            rest: positions to read, in ascending order.
            data_bytes: data of the window that is there already.
            found: gets what they hold.
            deadline: budget.
        """
        while rest:
            if rest[0] > read.parts[0].start and data_bytes >= read.bytes_max:
                read.end = rest[0]
                return
            share = max(1, (read.bytes_max - data_bytes) // len(read.parts))
            more = await self.read_some(rest, deadline, bytes_max=share)
            data_bytes += sum(len(slot.data) for slot in more.values() if isinstance(slot, Entry))
            found.update(more)
            rest = [p for p in rest if p not in more]

    async def settle(
        self,
        found: dict[int, Slot],
        patience: Patience,
        tail: int,
        parts: Sequence[Places],
        deadline: Deadline,
        *,
        first: int | None = None,
        reverse: bool = False,
    ) -> int | None:
        """Wait for the holes among what was found, and fill those that stay; see :meth:`finish`.

        Returns the hole before which it stopped: it has to be waited for, and the caller returns
        what it has read before that. None: all is settled, or left alone.

        Before any is filled or reported, the head is asked whether it was trimmed: the trim point
        comes first, and a trim that died goes no further. Where all objects end with holes that are
        filled, those that follow below ``tail`` are filled with them.

        Args:
            found: what the positions hold.
            patience: with holes.
            tail: positions below it were handed out.
            parts: the positions that were read of each object.
            deadline: budget.
            first: where the caller goes on: only a hole there is waited for; None: all are.
            reverse: whether the caller reads downwards.
        """
        io = self._io
        give_up = None if patience.seconds is None else io.monotonic() + patience.seconds
        poll = _POLL_SECONDS
        if patience.overdue:  # a window that was read ahead may have been filled since
            overdue = [p for p, slot in found.items() if is_open(slot) and p < patience.overdue]
            found.update(await self.read(overdue, deadline))
        while holes := sorted(p for p, slot in found.items() if is_open(slot)):
            left = 0.0 if give_up is None else give_up - io.monotonic()
            if left <= 0:
                patience.overdue = max(patience.overdue, tail, holes[-1] + 1)
            if holes[0] >= patience.overdue:
                next_hole = holes[-1 if reverse else 0]
                if first not in (None, next_hole):
                    return next_hole
                await io.sleep(min(poll, left))
                poll = min(poll * 2, _POLL_SECONDS_MAX)
            elif not _is_trimmed(await self.layout.refresh(deadline), holes[0]):
                due = 0
                if give_up is not None and not io.store.read_only:
                    with contextlib.suppress(CorruptEntry):  # of the tail: it can't be recorded now
                        due = min(patience.overdue, await self.positions.tail(deadline))
                abandoned = {p for p in holes if p < due}
                if not abandoned:
                    break
                await self.fill(sorted(abandoned), FillCode.READER_WAITED, deadline)
                last = [part for part in parts if part.stop == parts[-1].stop]  # of one stripe
                if last and all(part[-1] in abandoned for part in last):
                    await fill_ahead(self.layout, self._writer, last, min(due, tail), deadline)
            found.update(await self.read(holes, deadline))
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
        replies = await self.change_positions("fill", request, positions, deadline, *refusals)
        for _, reply in replies:
            if reply.code in refusals:
                taken = reply.number
        return taken

    async def change_positions(
        self,
        method: str,
        request: Callable[[View, ObjectRef, list[int]], bytes],
        positions: Sequence[int],
        deadline: Deadline,
        *refusals: Code,
    ) -> list[tuple[ObjectRef, Reply]]:
        """Run an idempotent method on the objects of some positions.

        Positions below the trim point are passed over: nothing is left to change there. Returns
        what the objects answer: OK, or one of ``refusals``.
        """
        groups: list[tuple[ObjectRef, list[int]]] = []

        def calls(view: View) -> list[Call]:
            groups[:] = self._by_object(view, positions)
            return [Call(ref.name, method, request(view, ref, group)) for ref, group in groups]

        view, replies = await self.layout.guarded(calls, deadline)
        result: list[tuple[ObjectRef, Reply]] = []
        for (ref, _), reply in zip(groups, replies, strict=True):
            if reply.code == -errno.ENOENT:
                if await self.layout.outdated(view, deadline):
                    return await self.change_positions(
                        method, request, positions, deadline, *refusals
                    )
                raise CorruptEntry(f"stripe object {ref.name} is missing")
            reply.check_call(method, ref.name, *refusals)
            result.append((ref, reply))
        return result

    async def read_once(
        self, positions: Sequence[int], bytes_max: int, deadline: Deadline
    ) -> tuple[View, list[tuple[ObjectRef, list[int]]], list[Reply]]:
        groups: list[tuple[ObjectRef, list[int]]] = []

        def calls(view: View) -> list[Call]:
            groups[:] = self._by_object(view, positions)
            return [
                Call(ref.name, "read", _request(view, ref, group, bytes_max, with_ids=True))
                for ref, group in groups
            ]

        view, replies = await self.layout.guarded(calls, deadline)
        return view, groups, replies

    async def _take(
        self,
        view: View,
        asked: Iterable[tuple[ObjectRef, list[int]]],
        replies: Iterable[Reply],
        found: dict[int, Slot],
        writers: dict[int, bytes] | None,
        deadline: Deadline,
    ) -> None:
        """Decode replies into ``found``: nothing of objects that are missing in an old view."""
        gone: list[Gap] = []
        mac = self.layout.macs.key
        for (ref, group), reply in zip(asked, replies, strict=True):
            if reply.code == -errno.ENOENT:
                gone += (lost(p, LossReason.MISSING, ref.name) for p in group)
            elif reply.code == -errno.EIO:
                found.update((p, lost(p, LossReason.CORRUPT, ref.name)) for p in group)
            else:
                reply.check_call("read", ref.name)
                damaged = decode_slots(reply.payload, ref.name, mac, group, found, writers)
                if damaged:
                    request = functools.partial(
                        _request, view, ref, bytes_max=READ_BYTES_MAX, with_ids=True
                    )
                    await read_copies(
                        self._io, ref.name, mac, request, damaged, found, writers, deadline
                    )
        if gone and not await self.layout.outdated(view, deadline):
            found.update((gap.position, gap) for gap in gone)

    def _by_object(self, view: View, positions: Iterable[int]) -> list[tuple[ObjectRef, list[int]]]:
        """Sort positions that are not trimmed, in ascending order, by the object that has them."""
        layout = self.layout
        groups: dict[str, tuple[ObjectRef, list[int]]] = {}
        for position in positions:
            if not _is_trimmed(view, position):
                stripe = layout.stripe_of(view, position)
                objects = layout.objects(view, stripe)
                ref = objects[objects[0].spacing.number(position)]
                groups.setdefault(ref.name, (ref, []))[1].append(position)
        return list(groups.values())


def _request(
    view: View,
    ref: ObjectRef,
    asked: Sequence[int],
    bytes_max: int,
    *,
    with_ids: bool = False,
    tags: bool = True,
) -> bytes:
    packed = ref.spacing.packed
    blocks = True  # in order: to sort names out would take a tenth of what reading one entry does
    return messages.read(view.epoch, with_ids, bytes_max, packed, asked, blocks, tags)


def _is_trimmed(view: View, position: int) -> bool:
    return position < view.trim_point
