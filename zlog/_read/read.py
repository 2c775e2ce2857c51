"""Reads positions, waits for holes and fills them.

A reader waits for a hole below the tail to be written, and then fills it. The object decides
whether the writer or the reader was first, so two readers never disagree about a position.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from zlog._base.codes import ENTRIES_MAX, Code, FillCode, State
from zlog._base.deadline import Deadline
from zlog._base.io import Call, OffloadedObject, Reply, Started
from zlog._base.settings import Budget, HoleTimeout
from zlog._base.striping import ObjectPositions
from zlog._layout.object_calls import by_object, change_positions
from zlog._native import messages
from zlog._native.completions import ReplyBytes
from zlog._native.replies import decode_read
from zlog._positions.positions import Positions
from zlog._read.items import Slot, gap_of, is_bad, is_open, lost, slot_of
from zlog._replica.replicas import (
    POSITION_FAILED_SECONDS,
    SECONDS_MAX,
    Replicas,
    failed_lately,
    helped,
    note_failed,
)
from zlog.entry import Entry, Gap, LossReason
from zlog.errors import CorruptEntry, StoreTimeout
from zlog.view import ObjectRef, View

READ_BYTES_MAX = 4 << 20
"""The data that one read of one object may return. An entry larger than this is returned alone."""

ReplicaReplies = list[tuple[ReplyBytes, list[int]]]
"""Replies to reads with ids, each with the positions that it is about."""

_POLL_SECONDS = 0.0003
_POLL_SECONDS_MAX = 0.1
"""The first and the longest pause between reads of an unwritten position. The first is short,
because a sequencer announces positions when it grants them, just before the entry is written."""

_REPLICAS_PAUSE_SECONDS = 0.25
_REPLICAS_PAUSE_SECONDS_MAX = 2.0
"""The pauses between two rounds over the replicas of an object."""

_FILL_AHEAD_GROWTH = 4
"""The factor by which each run of positions that a reader fills ahead is longer than the last."""


@dataclass(slots=True)
class Window:
    """A range of positions that a reader requests, with one operation per stripe object.

    The replies are decoded once, and then returned, in several steps if there are open holes.

    Attributes:
        start: the first position that was not returned yet.
        end: one past the last position. It is lowered if the entries are larger than expected.
        bytes_max: the maximum size of the data in all replies together.
        with_ids: whether the replies say which client appended or filled each position.
        parts: the positions that each call requests.
        started: the calls.
        decoded: the decoded replies.
        found: the slots of the positions for which ``decoded`` has no final answer. None if the
            replies were not decoded yet.
    """

    start: int
    end: int
    bytes_max: int
    with_ids: bool
    parts: list[ObjectPositions]
    started: Started
    decoded: Any = None
    found: dict[int, Slot] | None = None


class Reader:
    """Reads positions of one log, and fills holes.

    Attributes:
        layout: the layout of the log.
        budget: the time budgets of the handle.
        positions: finds the log's tail. Only positions below the checked tail are filled, because
            higher ones may be granted again.
        with_data: if False, all entries have empty data, and checksums and MACs are not checked.
    """

    def __init__(
        self, positions: Positions, writer: bytes, budget: Budget, *, with_data: bool = True
    ) -> None:
        self.layout = positions.layout
        self.positions = positions
        self.budget = budget
        self.with_data = with_data
        self._writer = writer
        self._io = self.layout.io

    async def read(
        self, positions: Sequence[int], deadline: Deadline, others: ReplicaReplies | None = None
    ) -> dict[int, Slot]:
        """Return the slots of positions as they are now. This neither waits nor fills.

        Replies of other replicas that had a sound entry are added to ``others``.
        """
        found: dict[int, Slot] = {}
        rest = positions
        while rest:
            found.update(await self.read_some(rest, deadline, others=others))
            rest = [p for p in rest if p not in found]
        return found

    async def read_some(
        self,
        positions: Sequence[int],
        deadline: Deadline,
        *,
        bytes_max: int = READ_BYTES_MAX,
        writers: dict[int, bytes] | None = None,
        others: ReplicaReplies | None = None,
    ) -> dict[int, Slot]:
        """Read positions with one request to each object, for up to ``bytes_max`` of its data.

        If an object has more data, the result contains only its first positions. If the result is
        empty, the trim point or the layout has changed, and the caller must repeat the call. The id
        of each entry's writer is added to ``writers``. See :meth:`read` for ``others``.
        """
        view, asked, replies = await self.ask(positions, bytes_max, deadline)
        found: dict[int, Slot] = {
            p: gap_of(p, State.TRIMMED) for p in positions if p < view.trim_point
        }
        gone: list[Gap] = []
        for (ref, group), reply in zip(asked, replies, strict=True):
            if reply.code == -errno.ENOENT:
                gone += (lost(p, LossReason.MISSING, ref.name) for p in group)
            elif reply.code == -errno.EIO:
                found.update((p, lost(p, LossReason.CORRUPT, ref.name)) for p in group)
            else:
                reply.check_call("read", ref.name)
                damaged = self._decode(reply.payload, ref.name, group, found, writers)
                if damaged and not isinstance(ref.name, OffloadedObject):
                    await self._read_replicas(view, ref, damaged, found, writers, others, deadline)
        if gone and not await self.layout.outdated(view, deadline):
            found.update((gap.position, gap) for gap in gone)
        return found

    def _decode(
        self,
        payload: ReplyBytes,
        name: str,
        asked: list[int],
        found: dict[int, Slot],
        writers: dict[int, bytes] | None,
    ) -> list[int]:
        """Put the slots of a reply into ``found``. Returns the positions whose slots are bad."""
        damaged: list[int] = []
        reply = decode_read(payload, asked, self.layout.macs.key, self.with_data)
        if not reply:
            raise StoreTimeout("the store returned an empty answer to a read")
        for i in range(len(reply)):
            found[asked[i]] = slot = slot_of(reply, i, asked[i], name)
            if isinstance(slot, Entry):
                if writers is not None:
                    writers[asked[i]] = reply.writer(i)
            elif is_bad(slot):
                damaged.append(asked[i])
        return damaged

    async def _read_replicas(
        self,
        view: View,
        ref: ObjectRef,
        damaged: list[int],
        found: dict[int, Slot],
        writers: dict[int, bytes] | None,
        others: ReplicaReplies | None,
        deadline: Deadline,
    ) -> None:
        """Read positions that are damaged in the primary replica of an object from other replicas.

        The entries replace the gaps in ``found``. A position counts as lost once all replicas have
        answered and none has an entry for it. Replicas may be asked several times, because OSDs
        come and go. If the layout has changed, the positions are removed from ``found`` and must be
        read again. Raises StoreTimeout if a replica did not answer.
        """
        io, name = self._io, ref.name
        left = [p for p in damaged if not failed_lately(io, name, p)]
        short = deadline.sooner(SECONDS_MAX)
        pause = _REPLICAS_PAUSE_SECONDS
        while left:
            request = self._request(view, ref, left, READ_BYTES_MAX, with_ids=True)
            replicas = Replicas(io, name, "read", request, deadline)
            sound: dict[int, Slot] = {}
            ids: dict[int, bytes] = {}
            async for reply in replicas.replies(short):
                if reply.code == Code.STALE_EPOCH:
                    for position in left:
                        del found[position]
                    return
                slots: dict[int, Slot] = {}
                if reply.code == Code.OK:
                    self._decode(reply.payload, name, left, slots, ids)
                sound = {p: s for p, s in slots.items() if not (is_bad(s) or is_open(s))}
                if sound:
                    break
            if sound:
                helped(io, name)
                found.update(sound)
                if others is not None:
                    others.append((reply.payload, left))
                if writers is not None:
                    writers.update((p, ids[p]) for p in ids if p in sound)
                left = [p for p in left if p not in sound]
                continue
            last = pause > _REPLICAS_PAUSE_SECONDS_MAX or short.expired
            if await replicas.all_answered() and (replicas.told_apart or last):
                note_failed(io, name, left, deadline, POSITION_FAILED_SECONDS)
                return
            if last:
                raise StoreTimeout(
                    f"position {left[0]} of log {self.layout.view.log!r} is damaged or lost in the"
                    f" asked replicas of {name}, and a replica that may have it did not answer",
                    hint="Try again when all OSDs are up and clean (`ceph health detail`).",
                )
            await io.sleep(pause)
            pause *= 2

    async def ask(
        self, positions: Sequence[int], bytes_max: int, deadline: Deadline
    ) -> tuple[View, list[tuple[ObjectRef, list[int]]], list[Reply]]:
        """Read once from each object. Returns the view, each object's positions, and replies."""
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
        """Start one read of ``[start, end)`` per stripe object, without waiting.

        If ``indexes`` is given, only the stripe objects with these numbers are read. Raises
        StripeUnknown if a stripe must be looked up first. The window ends before ``end`` where an
        offloaded segment begins or ends.
        """
        view = self.layout.view
        wanted: list[tuple[ObjectRef, ObjectPositions]] = []
        for first, last, stripe in self.layout.by_part(view, start, end):
            objects = self.layout.objects(view, stripe)
            for part in stripe.striping.by_object(first, last):
                ref = objects[part.number]
                if indexes is None or ref.number in indexes:
                    wanted.append((ref, part))
            end = last
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
        parts: Sequence[ObjectPositions],
        deadline: Deadline,
        *,
        first: int | None = None,
        reverse: bool = False,
    ) -> int | None:
        """Wait for the holes in ``found``, and fill those that stay unwritten.

        A hole may have been trimmed meanwhile, so the head's trim point is read before the hole is
        filled or reported. If the last position in each of ``parts`` was filled, the unwritten
        positions that follow it below ``tail`` are filled too.

        Args:
            found: the slots by position. The new slots are added to it.
            holes: how long to wait for holes.
            tail: a tail of the log. All positions below it were granted.
            parts: the positions that were read from each object.
            deadline: the time budget.
            first: the caller's next position. The call waits only for a hole there. If ``first`` is
                None, it waits for all holes.
            reverse: whether the caller reads downwards.

        Returns:
            The hole for which the caller must call this again, once it has returned the slots
            before the hole. None if there is no hole, or if the holes cannot be filled.
        """
        io = self._io
        seconds = holes.seconds
        give_up = None if seconds is None else io.monotonic() + seconds
        poll = _POLL_SECONDS
        if holes.overdue:  # a window that was read ahead may have been filled since
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
                    with contextlib.suppress(CorruptEntry):  # the tail cannot be recorded now
                        due = min(holes.overdue, await self.positions.tail(deadline))
                abandoned = {p for p in unwritten if p < due}
                if not abandoned:
                    break
                await self.fill(sorted(abandoned), FillCode.READER_WAITED, deadline)
                last = [part for part in parts if part.stop == parts[-1].stop]  # of one stripe
                if last and all(part[-1] in abandoned for part in last):
                    await self._fill_ahead(last, min(due, tail), deadline)
            found.update(await self.read(unwritten, deadline))
        return None

    async def fill(
        self, positions: Sequence[int], reason: FillCode, deadline: Deadline
    ) -> int | None:
        """Fill positions, all or none in each object. Returns a position that is taken, or None."""
        now = self._io.wall_clock_us()

        def request(view: View, ref: ObjectRef, group: list[int]) -> bytes:
            return messages.fill(view.epoch, now, self._writer, reason, ref.striping.packed, group)

        taken: int | None = None
        refusals = (Code.READ_ONLY, Code.LOST)
        for _, reply in await change_positions(
            self.layout, "fill", request, positions, deadline, *refusals
        ):
            if reply.code in refusals:
                taken = reply.number
        return taken

    async def _fill_ahead(
        self, parts: Sequence[ObjectPositions], end: int, deadline: Deadline
    ) -> None:
        """Fill the unwritten positions after ``parts``, up to the first written one in each object.

        A client may have taken a million positions and written none of them. Each round therefore
        fills more positions than the one before, up to the limit of one operation.

        Args:
            parts: the positions that were filled in each object of one stripe.
            end: fill only positions below this one.
            deadline: the time budget.
        """
        striping = parts[0].striping
        end = min(end, self.layout.stripe_of(self.layout.view, parts[0].start).end)
        firsts = [striping.after(part[-1]) for part in parts]
        length = max(map(len, parts))
        while firsts:
            length = min(length * _FILL_AHEAD_GROWTH, ENTRIES_MAX)
            runs = [ObjectPositions(striping, p, end)[:length] for p in firsts if p < end]
            stops = await self._fill_runs(runs, deadline)
            firsts, rest = [], []
            for run, stop in zip(runs, stops, strict=True):
                if stop is None:
                    firsts.append(striping.after(run[-1]))
                elif stop > run.start:
                    rest.append(ObjectPositions(striping, run.start, stop))
            await self._fill_runs(rest, deadline)

    async def _fill_runs(
        self, runs: Sequence[ObjectPositions], deadline: Deadline
    ) -> list[int | None]:
        """Fill one run of positions per object. Each run is filled completely or not at all.

        For each run, returns its first taken position, or None if the run was filled.
        """
        now, why = self._io.wall_clock_us(), FillCode.READER_WAITED

        def calls(view: View) -> list[Call]:
            objects = self.layout.objects(view, self.layout.stripe_of(view, runs[0].start))
            names = [objects[run.number].name for run in runs]
            fixed = view.epoch, now, self._writer, why, runs[0].striping.packed
            return [
                Call(name, "fill", messages.fill(*fixed, run))
                for name, run in zip(names, runs, strict=True)
            ]

        if not runs:
            return []
        stops: list[int | None] = []
        _, replies = await self.layout.guarded(calls, deadline)
        for run, reply in zip(runs, replies, strict=True):
            if reply.code == -errno.ENOENT:
                stops.append(run.start)  # the reader finds the reason when it gets there
                continue
            what = f"cannot fill positions of log {self.layout.view.log!r}"
            reply.check(what, Code.READ_ONLY, Code.UNREADABLE, Code.LOST)
            stops.append(None if reply.code == Code.OK else reply.number)
        return stops

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
        packed = ref.striping.packed
        # The arguments are positional, because keywords would make reading one entry 10 % slower.
        rest = True, tags, not self.with_data  # blocks, tags, without_data
        return messages.read(view.epoch, with_ids, bytes_max, packed, asked, *rest)
