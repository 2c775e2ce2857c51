"""Looking at single copies of a log's objects, and putting right what another copy can give."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

from zlog._audit.findings import Finding, FindingKind, about, at
from zlog._audit.inspect import ANY_EPOCH, walk
from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Reply
from zlog._base.monitor import placement
from zlog._base.names import head_object
from zlog._base.striping import Places, Spacing
from zlog._layout.layout import Layout
from zlog._native import messages
from zlog._native.audit import Audit
from zlog._replica.repair import damaged, heal_record, heal_values, look
from zlog._replica.replicas import Copies
from zlog.errors import ClassNotLoaded, StoreUnavailable
from zlog.view import OPEN_END, ObjectRef, Stripe

_LOOK_POSITIONS = 1 << 16
_LOOK_BYTES = 4 << 20
"""What one operation looks at, at most."""

Pace = Callable[[int], Awaitable[object]]
"""Takes how many bytes the scrub has looked at, and returns when the scrub may go on."""


class _Look(NamedTuple):
    """What one operation has told of positions of one object.

    Attributes:
        seen: those that it was about, the first ones of those that were asked.
        lost: of these, what is damaged.
        empty: of these, where nothing is.
        bytes: data that was looked at.
    """

    seen: Places
    lost: list[Places]
    empty: list[Places]
    bytes: int

    @property
    def sound(self) -> set[int]:
        """Positions at which something is, and is whole."""
        return set(self.seen).difference(*self.lost, *self.empty)


_NOTHING = _Look(Places(Spacing(1), 0, 0), [], [], 0)


class Scrub:
    """Goes through one copy of each of a log's objects, one operation at a time.

    That is the primary copy, which all other calls go to; or one chosen at random for each
    operation: what such a one has lost no client notices until it becomes the primary one.

    Args:
        layout: of the log.
        deadline: starts the budget of one step.
        heal: put right what is found; else only tell.
        any_copy: look at copies chosen at random. Where a store keeps one copy there is none.
        keys_only: leave out data in the bytestream: an OSD whose disk can't read what a copy has
            there ends itself, if the copy is not the primary one (Ceph up to 20).
        pace: called after each look.
    """

    def __init__(
        self,
        layout: Layout,
        deadline: Callable[[], Deadline],
        *,
        heal: bool,
        any_copy: bool,
        keys_only: bool = False,
        pace: Pace | None = None,
    ) -> None:
        self._layout = layout
        self._io = layout.io
        self._deadline = deadline
        self._heal = heal
        self._any_copy = any_copy
        self._keys_only = keys_only
        self._pace = pace

    async def objects(self) -> AsyncIterator[Sequence[Finding]]:
        """Look at the head and, unless an audit does, stripe objects' headers."""
        view = self._layout.view
        yield await self._values(head_object(view.log))
        if not (self._heal or self._any_copy):
            return
        async for stripe in walk(self._layout, view.trim_point, OPEN_END, self._deadline):
            if isinstance(stripe, Stripe):
                for ref in self._layout.objects(view, stripe):
                    yield await self._values(ref.name)

    async def directory(self, objects: Iterable[str]) -> AsyncIterator[Sequence[Finding]]:
        """Look at some objects of the store's directory."""
        for name in objects:
            yield await self._values(name)

    async def positions(self, end: int, begin: int = 0) -> AsyncIterator[Sequence[Finding]]:
        """Look at what stands from ``begin``, or the trim point, to ``end``, object by object."""
        view = self._layout.view
        begin = max(begin, view.trim_point)
        async for stripe in walk(self._layout, begin, end, self._deadline):
            if not isinstance(stripe, Stripe):
                continue  # where these positions are is not known, as an audit tells
            start = max(stripe.start, begin)
            for ref in self._layout.objects(view, stripe):
                left = ref.places(start, min(stripe.end, end))
                while left:
                    look = await self._look(ref, left, self._any_copy)
                    if look is _NOTHING:
                        break  # the object is gone, or its header damaged, as an audit tells
                    for row in look.lost:
                        yield await self._settle(ref, row)
                    await self._paced(look.bytes)
                    left = left[len(look.seen) :]

    async def _paced(self, bytes: int) -> None:
        if self._pace is not None:
            await self._pace(bytes)

    async def _values(self, object: str) -> list[Finding]:
        deadline = self._deadline()
        try:
            names = await damaged(self._io, object, deadline, any_copy=self._any_copy)
        except ClassNotLoaded:  # for want of caps, or an older class
            if self._heal or self._any_copy:
                raise
            return []
        healed = await heal_values(self._io, object, names, deadline) if self._heal else []
        where = "a copy" if self._any_copy else "the primary copy"
        worse = FindingKind.DAMAGED_COPY if self._any_copy else FindingKind.DAMAGED_OBJECT
        await self._paced(0)
        return [
            about(
                FindingKind.HEALED if name in healed else worse,
                object,
                f"what is stored as {name.decode(errors='replace')} fails its checksum in {where}",
            )
            for name in names
        ]

    async def _settle(self, ref: ObjectRef, row: Places) -> list[Finding]:
        """Deal with positions that the copy which was looked at has damaged, or lost."""
        sound, where = set[int](), "the primary copy"
        if self._any_copy:
            sound = (await self._look(ref, row, any_copy=False)).sound
            where = "a copy other than the primary one" if sound else where
        sound |= await self._elsewhere(ref, row, sound)
        healed = await self._put_back(ref, sorted(sound)) if self._heal else set[int]()
        one = f"damaged in {where}, and sound in another"
        lost = set(row) - sound
        return [
            *_findings(FindingKind.LOST, ref, lost, await self._in_vain(ref) if lost else ""),
            *_findings(FindingKind.HEALED, ref, healed, one),
            *_findings(FindingKind.DAMAGED_COPY, ref, sound - healed, one),
        ]

    async def _in_vain(self, ref: ObjectRef) -> str:
        """Say where copies were looked for, and what Ceph's own repair would do."""
        told = "damaged or gone in every copy that was asked"
        try:
            found = await placement(self._io, ref.name, self._deadline())
        except StoreUnavailable:  # not on Ceph, or not for this client
            return told
        osds = ", ".join(f"osd.{number}" for number in found.acting)
        return (
            f"{told} ({osds}); once an OSD is back that has it, heal again: `ceph pg repair"
            f" {found.pgid}` makes all copies like the primary one, which may be the wrong one"
        )

    async def _elsewhere(self, ref: ObjectRef, row: Places, known: set[int]) -> set[int]:
        """Return which of some positions are sound in some copy, apart from those known to be."""
        found = set[int]()
        request, deadline = _verify(ref, row), self._deadline()
        async for reply in Copies(self._io, ref.name, "verify", request, deadline).replies():
            found |= _taken(reply, row).sound
            if len(found | known) == len(row):
                break
        return found

    async def _put_back(self, ref: ObjectRef, positions: list[int]) -> set[int]:
        """Heal the records that hold some positions; returns which of these were."""
        healed = set[int]()
        for position in positions:
            if position not in healed:
                last = await heal_record(self._io, ref.name, position, self._deadline())
                if last is not None:
                    healed.update(ref.places(position, last + 1))
        return healed.intersection(positions)

    async def _look(self, ref: ObjectRef, positions: Places, any_copy: bool) -> _Look:
        call = Call(ref.name, "verify", _verify(ref, positions, self._keys_only))
        reply = await look(self._io, call, self._deadline(), any_copy=any_copy)
        return _NOTHING if reply is None else _taken(reply, positions)


def _verify(ref: ObjectRef, positions: Places, keys_only: bool = False) -> bytes:
    some = positions[:_LOOK_POSITIONS]
    return messages.verify(ANY_EPOCH, _LOOK_BYTES, ref.spacing.packed, some, keys_only)


def _taken(reply: Reply, positions: Places) -> _Look:
    """Return what a copy has told; nothing where it could not."""
    if reply.code != Code.OK:
        return _NOTHING
    positions = positions[:_LOOK_POSITIONS]
    audit = Audit()
    audit.begin("all", 0, len(positions), 1)  # counted from the first one, without the others'
    count = audit.add(reply.payload, 0)
    audit.finish()

    def rows(found: Iterable[range]) -> list[Places]:
        return [positions[row.start : row.stop] for row in found]

    return _Look(positions[:count], rows(audit.lost), rows(audit.holes), audit.counts.bytes)


def _findings(kind: FindingKind, ref: ObjectRef, positions: set[int], detail: str) -> list[Finding]:
    """Tell of positions of one object, in as few rows as may be."""
    rows: list[range] = []
    step = ref.spacing.step
    for position in sorted(positions):
        if rows and rows[-1].stop == position:
            rows[-1] = range(rows[-1].start, position + step, step)
        else:
            rows.append(range(position, position + step, step))
    return [at(kind, ref, row, detail) for row in rows]
