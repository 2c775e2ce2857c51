"""The audit of a log that is in use: its head, its objects and all its positions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from zlog._audit.findings import CheckSummary, Finding, FindingKind, about
from zlog._audit.inspect import Inspector, walk
from zlog._audit.orphans import Strays
from zlog._audit.ranges import BadRows, Doubles, Holes, Window
from zlog._audit.scrub import Scrub
from zlog._audit.verify import Verifier, check_tag_index
from zlog._base.names import head_object
from zlog._base.striping import Striping
from zlog._layout.segments import Part
from zlog._native.audit import Audit
from zlog._read.read import READ_BYTES_MAX, Reader
from zlog.entry import Gap, GapKind
from zlog.errors import CorruptEntry
from zlog.limits import HOLE_TIMEOUT_SECONDS
from zlog.view import ObjectRef, Stripe

_WINDOW_POSITIONS = 1 << 17
"""Positions checked in one step, with one operation per stripe object. They take 6 MiB."""

_MAC_POSITIONS = 4096
_MAC_BYTES = 16 << 20
"""Limits of one read that checks MACs, for all objects together."""

_OBJECT_UNREADABLE = (
    FindingKind.MISSING_OBJECT,
    FindingKind.DAMAGED_OBJECT,
    FindingKind.WRONG_OBJECT,
)

Progress = Callable[[int, int], object]
"""A function that takes the number of checked positions and their total number."""


class Checker:
    """Checks a log window by window, and yields findings.

    The objects check the checksums of their own entries, in parallel, and return each position's
    state and append id. If the entries have MACs, the client reads and checks them itself, because
    no object has the key. A finding that another client's unfinished work could explain is reported
    only if a second check confirms it.
    """

    def __init__(
        self,
        reader: Reader,
        *,
        orphans: bool = True,
        repair: bool = False,
        replicas: int = 0,
        rebuild_index: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self._positions = reader.positions
        self._budget = reader.budget
        self._layout = layout = reader.layout
        self._io = layout.io
        self._progress = progress
        self._reader = reader
        # An audit has no time limit. Each step gets the whole budget.
        self._deadline = deadline = reader.budget.deadline
        self._inspector = Inspector(layout, deadline)
        self._strays = Strays(layout, deadline) if orphans else None
        self._scrubs = [
            Scrub(layout, deadline, repair=repair, any_replica=any_replica)
            for any_replica in (False, *[True] * replicas)
        ]
        self._repair = repair
        self._rebuild_index = rebuild_index
        self._not_repaired: dict[str, str] = {}  # by name, why an object could not be repaired
        self._files: dict[str, str] = {}  # by URL, why positions of a file are lost, if any are
        self._offloaded = 0
        self._lost_detail = "stored bytes are damaged or lost"
        if self._io.store.pool:
            self._lost_detail = "damaged in the primary replica; `--repair` tries the others"
        self._audit = Audit()
        self._forged = 0
        self._end = 0
        self._verifier = Verifier(layout, deadline)
        self._findings = self._run()

    async def next(self) -> Sequence[Finding] | None:
        """Return the findings of the next step, which may be empty. Returns None at the end."""
        return await anext(self._findings, None)

    @property
    def summary(self) -> CheckSummary:
        """The totals so far."""
        counts = self._audit.counts
        return CheckSummary(
            positions=sum(counts) - counts.bytes,
            entries=counts.entries,
            bytes=max(0, counts.bytes - self._layout.macs.bytes * counts.entries),
            filled=counts.filled,
            trimmed=counts.trimmed,
            unwritten=counts.unwritten,
            lost=counts.lost + counts.unknown,
            unreadable=counts.unreadable,
            objects=self._inspector.objects,
            listed=self._strays is not None and self._strays.listed,
            forged=None if self._layout.macs.missing else self._forged,
            offloaded=self._offloaded,
            files=len(self._files),
        )

    async def _run(self) -> AsyncIterator[Sequence[Finding]]:
        listed = self._layout.directory.logs.objects_of(self._layout.view.log)
        for scrub in self._scrubs:
            async for findings in scrub.objects():
                yield findings
            async for findings in scrub.directory(listed):
                yield findings
        objects = await self._check_objects()
        self._verifier.unreadable = {
            each.object for each in objects if each.kind in _OBJECT_UNREADABLE
        }
        yield objects
        yield await self._check_tail()
        for scrub in self._scrubs[0 if self._repair else 1 :]:
            async for findings in scrub.positions(self._end):
                lost = [each for each in findings if each.kind is FindingKind.LOST]
                self._not_repaired |= {each.object: each.detail for each in lost}
                yield [each for each in findings if each not in lost]
        async for findings in self._check_positions():
            yield findings
        async for findings in check_tag_index(
            self._layout, self._end, self._deadline, rebuild=self._rebuild_index
        ):
            yield findings
        if vanished := self._verifier.vanished:
            yield [
                each
                for each in await self._inspector.look()
                if each.kind is FindingKind.MISSING_OBJECT and each.object in vanished
            ]

    async def _check_objects(self) -> list[Finding]:
        suspected = {_identity(each) for each in await self._look_at_objects()}
        if not suspected:
            return []
        await self._wait_since(self._io.monotonic())
        again = await self._look_at_objects()
        return [each for each in again if _identity(each) in suspected]

    async def _look_at_objects(self) -> list[Finding]:
        findings = await self._inspector.look()
        return findings if self._strays is None else findings + await self._strays.look()

    async def _check_tail(self) -> list[Finding]:
        """Read the tail, and compare it with the positions that were already taken before."""
        taken = self._inspector.taken
        try:
            self._end = await self._positions.tail(self._deadline())
        except CorruptEntry:  # objects are damaged, which is reported, and there is no sequencer
            self._end = taken
        if self._end >= taken:
            return []
        detail = (
            f"the tail is {self._end}, but positions up to {taken - 1} are in use or"
            " were reported as the tail"
        )
        return [about(FindingKind.TAIL_BEHIND, head_object(self._layout.view.log), detail)]

    async def _check_positions(self) -> AsyncIterator[Sequence[Finding]]:
        holes, doubles = Holes(), Doubles()
        lost = BadRows(FindingKind.LOST, self._lost_detail)
        unreadable = BadRows(FindingKind.UNREADABLE, "written by a newer version of zlog")
        forged = BadRows(FindingKind.FORGED, "its MAC does not match its position and the key")
        async for window in self._walk("all"):
            yield self._with_reason(lost.take(window, self._audit.rows("lost")))
            yield unreadable.take(window, self._audit.rows("unreadable"))
            yield doubles.take(window, self._audit.found)
            yield forged.take(window, await self._forged_positions(window))
            holes.take(window, self._audit.rows("unwritten"), self._io.monotonic())
            if holes.full:
                yield await self._settle(holes)
        yield self._with_reason(lost.end())
        yield unreadable.end()
        yield forged.end()
        yield await self._settle(holes)
        while self._audit.next_part():
            async for window in self._walk("appends"):
                yield doubles.take(window, self._audit.found)
        if doubles.searched:
            self._audit.search_for(doubles.searched)
            async for window in self._walk("search"):
                yield doubles.compare(window, self._audit.found)

    async def _forged_positions(self, window: Window) -> list[range]:
        """Return the positions of a window whose entries have wrong MACs, in ascending order."""
        if self._layout.macs.key is None:
            return []
        share = min(READ_BYTES_MAX, max(1, _MAC_BYTES // len(window.refs)))
        rows: list[range] = []
        for start in range(window.start, window.end, _MAC_POSITIONS):
            left: Sequence[int] = range(start, min(start + _MAC_POSITIONS, window.end))
            while left:
                found = await self._reader.read_some(left, self._deadline(), bytes_max=share)
                rows += (
                    range(position, position + 1)
                    for position, slot in found.items()
                    if isinstance(slot, Gap) and slot.kind is GapKind.FORGED
                )
                left = [p for p in left if p not in found]
        self._forged += len(rows)
        return sorted(rows, key=lambda row: row.start)

    def _with_reason(self, lost: list[Finding]) -> list[Finding]:
        """Add the reason to findings about files, and objects that could not be repaired."""
        reasons = self._not_repaired | self._files if lost else {}
        return [each._replace(detail=reasons.get(each.object, each.detail)) for each in lost]

    async def _settle(self, holes: Holes) -> list[Finding]:
        """Look at holes again after their writers had time, and report those that remain."""
        if not holes:
            return []
        await self._wait_since(holes.seen)
        audit = Audit()
        again = Holes()
        for window in holes.drain(_WINDOW_POSITIONS):
            await self._verifier.look_at([(window, audit)])
            again.take(window, audit.rows("unwritten"), 0)
        return again.findings()

    async def _wait_since(self, moment: float) -> None:
        """Wait until the hole timeout has passed since a moment."""
        seconds = self._budget.hole_timeout(...)
        seconds = HOLE_TIMEOUT_SECONDS if seconds is None else seconds
        left = moment + seconds - self._io.monotonic()
        if left > 0:
            await self._io.sleep(left)

    async def _walk(self, purpose: str) -> AsyncIterator[Window]:
        """Walk from the trim point to the tail as of the beginning of the audit."""
        begin = min(self._layout.view.trim_point, self._end)
        async for stripe in walk(self._layout, begin, self._end, self._deadline):
            if not isinstance(stripe, Stripe):
                continue  # the stripe is lost, which was reported
            position = max(stripe.start, begin)
            await self._layout.refresh(self._deadline())
            await self._layout.list_offloaded(self._deadline())  # another client may offload it
            while position < min(stripe.end, self._end):
                if purpose == "all":
                    self._layout.offloaded.drop(stripe, position)
                part = await self._layout.part_at(position, self._deadline())
                if part is None:
                    break  # trimmed meanwhile
                refs = self._layout.objects(self._layout.view, part)
                end = min(position + _WINDOW_POSITIONS, part.end, self._end)
                window = Window(refs, position, end)
                file = self._layout.offloaded.file_of(stripe)
                if file is not None and isinstance(part, Part):
                    window = await self._look_into(file.url, part, window, purpose)
                else:
                    await self._verifier.look_at([(window, self._audit)], purpose)
                yield window
                position = end
                if self._progress is not None and purpose == "all":
                    self._progress(position - begin, self._end - begin)

    async def _look_into(self, url: str, part: Part, window: Window, purpose: str) -> Window:
        """Check positions of a file. Returns a window whose only object is the file."""
        whole = Window([ObjectRef(url, Striping(1, 1), 0)], window.start, window.end)
        if part.problem:
            view = await self._layout.refresh(self._deadline())
            trimmed = whole.end <= view.trim_point  # meanwhile, and the file was removed
            self._files[url] = part.problem
            self._audit.begin(purpose, whole.start, whole.end, whole.striping.packed)
            self._audit.rest(whole.start, "trimmed" if trimmed else "lost")
            self._audit.finish()
        else:
            self._files.setdefault(url, "the stripe was offloaded without these positions")
            await self._verifier.look_at([(window, self._audit)], purpose)
        if purpose == "all":
            self._offloaded += whole.end - whole.start
        return whole


def _identity(finding: Finding) -> tuple[FindingKind, str, int | None, str]:
    """Return what identifies a finding in two looks. For a layout change, it has the epoch."""
    ahead = finding.kind is FindingKind.EPOCH_AHEAD
    return finding.kind, finding.object, finding.position, finding.detail if ahead else ""
