"""Checks single replicas of a log's objects, and repairs them from other replicas."""

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
from zlog._base.striping import ObjectPositions, Striping
from zlog._layout.layout import Layout
from zlog._native import messages
from zlog._native.audit import Audit
from zlog._replica.repair import damaged, look, repair_record, repair_values
from zlog._replica.replicas import Replicas
from zlog.errors import ClassNotLoaded, StoreUnavailable
from zlog.view import OPEN_END, ObjectRef, Stripe

_LOOK_POSITIONS = 1 << 16
_LOOK_BYTES = 4 << 20
"""Limits of one operation."""

Pace = Callable[[int], Awaitable[object]]
"""A function that takes the number of bytes just checked, and returns when to continue."""


class _Look(NamedTuple):
    """The result of one operation that checked positions of one object.

    Attributes:
        seen: the positions that were checked; an operation may check only the first ones requested.
        lost: the damaged positions.
        empty: the unwritten positions.
        bytes: the size of the checked data.
    """

    seen: ObjectPositions
    lost: list[ObjectPositions]
    empty: list[ObjectPositions]
    bytes: int

    @property
    def sound(self) -> set[int]:
        """Return the positions that are written and not damaged."""
        return set(self.seen).difference(*self.lost, *self.empty)


_NOTHING = _Look(ObjectPositions(Striping(1), 0, 0), [], [], 0)


class Scrub:
    """Checks one replica of each object of a log, one operation at a time.

    Ordinary calls read only an object's primary replica. Damage in the other replicas would be
    noticed only when one of them becomes the primary.

    Args:
        repair: whether to repair damage instead of only reporting it.
        any_replica: whether each operation checks a random replica instead of the primary one. Only
            stores on Ceph have several replicas.
        keys_only: whether to skip data in the objects' bytestream. Up to Ceph 20, an OSD that is
            not the primary aborts if its disk cannot read that data.
        pace: a function that is called after each operation.
    """

    def __init__(
        self,
        layout: Layout,
        deadline: Callable[[], Deadline],
        *,
        repair: bool,
        any_replica: bool,
        keys_only: bool = False,
        pace: Pace | None = None,
    ) -> None:
        self._layout = layout
        self._io = layout.io
        self._deadline = deadline
        self._repair = repair
        self._any_replica = any_replica
        self._keys_only = keys_only
        self._pace = pace

    async def objects(self) -> AsyncIterator[Sequence[Finding]]:
        """Check the head, and the headers of stripe objects if the audit does not check them."""
        view = self._layout.view
        yield await self._values(head_object(view.log))
        if not (self._repair or self._any_replica):
            return
        await self._layout.list_offloaded(self._deadline())
        async for stripe in walk(self._layout, view.trim_point, OPEN_END, self._deadline):
            if isinstance(stripe, Stripe) and self._layout.offloaded.file_of(stripe) is None:
                for ref in self._layout.objects(view, stripe):
                    yield await self._values(ref.name)

    async def directory(self, objects: Iterable[str]) -> AsyncIterator[Sequence[Finding]]:
        """Check objects of the store's directory."""
        for name in objects:
            yield await self._values(name)

    async def positions(self, end: int, begin: int = 0) -> AsyncIterator[Sequence[Finding]]:
        """Check the untrimmed positions of ``[begin, end)``, object by object."""
        view = self._layout.view
        begin = max(begin, view.trim_point)
        await self._layout.list_offloaded(self._deadline())
        async for stripe in walk(self._layout, begin, end, self._deadline):
            if not isinstance(stripe, Stripe) or self._layout.offloaded.file_of(stripe) is not None:
                continue  # the stripe is lost, which the audit reports, or it has no replicas
            start = max(stripe.start, begin)
            for ref in self._layout.objects(view, stripe):
                left = ref.positions(start, min(stripe.end, end))
                while left:
                    look = await self._look(ref, left, self._any_replica)
                    if look is _NOTHING:
                        break  # the object is missing or damaged, which the audit reports
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
            names = await damaged(self._io, object, deadline, any_replica=self._any_replica)
        except ClassNotLoaded:  # the caps forbid the call
            if self._repair or self._any_replica:
                raise
            return []
        repaired = await repair_values(self._io, object, names, deadline) if self._repair else []
        where = "a replica" if self._any_replica else "the primary replica"
        worse = FindingKind.DAMAGED_REPLICA if self._any_replica else FindingKind.DAMAGED_OBJECT
        await self._paced(0)
        return [
            about(
                FindingKind.REPAIRED if name in repaired else worse,
                object,
                f"the value of {name.decode(errors='replace')} fails its checksum in {where}",
            )
            for name in names
        ]

    async def _settle(self, ref: ObjectRef, row: ObjectPositions) -> list[Finding]:
        """Repair or report positions that are damaged in the checked replica."""
        sound, where = set[int](), "the primary replica"
        if self._any_replica:
            sound = (await self._look(ref, row, any_replica=False)).sound
            where = "a replica other than the primary one" if sound else where
        sound |= await self._elsewhere(ref, row, sound)
        repaired = await self._put_back(ref, sorted(sound)) if self._repair else set[int]()
        one = f"damaged in {where}, but intact in another replica"
        lost = set(row) - sound
        return [
            *_findings(FindingKind.LOST, ref, lost, await self._not_repaired(ref) if lost else ""),
            *_findings(FindingKind.REPAIRED, ref, repaired, one),
            *_findings(FindingKind.DAMAGED_REPLICA, ref, sound - repaired, one),
        ]

    async def _not_repaired(self, ref: ObjectRef) -> str:
        """Describe which OSDs were asked, and what Ceph's own repair would do."""
        detail = "damaged or lost in every replica that was asked"
        try:
            found = await placement(self._io, ref.name, self._deadline())
        except StoreUnavailable:  # the store is not on Ceph, or refuses this client
            return detail
        osds = ", ".join(f"osd.{number}" for number in found.acting)
        return (
            f"{detail} ({osds}); if an OSD with an intact copy returns, repair the log again. Do"
            f" not run `ceph pg repair {found.pgid}`, which copies the primary replica even if"
            " it is damaged"
        )

    async def _elsewhere(self, ref: ObjectRef, row: ObjectPositions, known: set[int]) -> set[int]:
        """Return positions that are sound in some replica, not counting the known ones."""
        found = set[int]()
        request, deadline = _verify(ref, row), self._deadline()
        async for reply in Replicas(self._io, ref.name, "verify", request, deadline).replies():
            found |= _taken(reply, row).sound
            if len(found | known) == len(row):
                break
        return found

    async def _put_back(self, ref: ObjectRef, positions: list[int]) -> set[int]:
        """Repair the records of positions, and return the repaired positions."""
        repaired = set[int]()
        for position in positions:
            if position not in repaired:
                last = await repair_record(self._io, ref.name, position, self._deadline())
                if last is not None:
                    repaired.update(ref.positions(position, last + 1))
        return repaired.intersection(positions)

    async def _look(self, ref: ObjectRef, positions: ObjectPositions, any_replica: bool) -> _Look:
        call = Call(ref.name, "verify", _verify(ref, positions, self._keys_only))
        reply = await look(self._io, call, self._deadline(), any_replica=any_replica)
        return _NOTHING if reply is None else _taken(reply, positions)


def _verify(ref: ObjectRef, positions: ObjectPositions, keys_only: bool = False) -> bytes:
    some = positions[:_LOOK_POSITIONS]
    return messages.verify(ANY_EPOCH, _LOOK_BYTES, ref.striping.packed, some, keys_only)


def _taken(reply: Reply, positions: ObjectPositions) -> _Look:
    """Decode a reply. The result is empty if the replica failed."""
    if reply.code != Code.OK:
        return _NOTHING
    positions = positions[:_LOOK_POSITIONS]
    audit = Audit()
    audit.begin("all", 0, len(positions), 1)  # by index, without positions of other objects
    count = audit.add(reply.payload, 0)
    audit.finish()

    def rows(state: str) -> list[ObjectPositions]:
        return [positions[row.start : row.stop] for row in audit.rows(state)]

    return _Look(positions[:count], rows("lost"), rows("unwritten"), audit.counts.bytes)


def _findings(kind: FindingKind, ref: ObjectRef, positions: set[int], detail: str) -> list[Finding]:
    """Return findings about positions of one object, in as few rows as possible."""
    rows: list[range] = []
    step = ref.striping.step
    for position in sorted(positions):
        if rows and rows[-1].stop == position:
            rows[-1] = range(rows[-1].start, position + step, step)
        else:
            rows.append(range(position, position + step, step))
    return [at(kind, ref, row, detail) for row in rows]
