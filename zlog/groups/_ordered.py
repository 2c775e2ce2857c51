"""A member of an ordered group: reads its slots, and commits and releases them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from zlog.entry import Entry, Gap, GapKind
from zlog.errors import Fenced, SequenceSuperseded
from zlog.extension import LogPort, NewEntry, PositionSpec, no_entry
from zlog.groups._member import POLL_SECONDS, Member, awaited
from zlog.groups._slots import (
    Batch,
    Cohort,
    Item,
    Key,
    Output,
    Share,
    hash_of,
    limit_of,
    new_entries,
    object_of,
)
from zlog.groups._states import OrderedState
from zlog.groups.errors import SlotsLost
from zlog.objects.extension import Replica

_FETCH_POSITIONS = 4096
"""The number of positions that are read for one share at a time."""

_FETCH_BYTES = 16 << 20
"""The size of entries after which fewer positions are read."""

_IDLE_SECONDS = 1.0
"""How often positions without entries of this member are committed."""

INTO = "into:"
"""The prefix of settings that name the logs of outputs, so that a removal forgets the producers."""


class OrderedMember(Member[OrderedState]):
    """A member of an ordered group."""

    def __init__(
        self,
        data: LogPort,
        replica: Replica,
        group: str,
        name: str,
        lease: float,
        key: Key | None,
        entries_max: int,
    ) -> None:
        super().__init__(data, replica, OrderedState, group, name, lease)
        self.entries_max = entries_max
        self._key = key
        self._shares: dict[int, Share] = {}
        self._cohorts: deque[Cohort] = deque()
        self._paused: set[int] = set()
        self._tail = 0
        self._idle_at = -math.inf

    def forget(self) -> None:
        self._shares.clear()
        self._cohorts.clear()

    def check_name(self) -> None:
        name, own = self.name, self._id
        others = self.look(lambda state: [*state.members.values()])
        if name and any(each.name == name and each.id != own for each in others):
            raise Fenced(
                f"another client has joined group {self.group!r} as {name!r}",
                hint="Give each worker its own name, or none.",
            )

    @property
    def slots(self) -> dict[int, int]:
        """The slots of this member, with their fencing tokens."""
        with self.lock:
            return {share.number: share.grant for share in self._shares.values()}

    async def next(self, seconds: float | None) -> Batch | None:
        """Return the next batch; None if there is none for some seconds."""
        until = math.inf if seconds is None else self.clock() + seconds
        while True:
            token = await self.ensure()
            if self._adjust(token):
                await self._commit(token, [])
                self._adjust(token)
            batch = await self._step()
            if batch is not None:
                return batch
            left = until - self.clock()
            if left <= 0:
                return None
            with self.lock:
                reading = [each.position for each in self._cohorts]
            if min(reading, default=0) < self._tail:  # it has no slots, or is at a hole
                await self.port.sleep(min(left, POLL_SECONDS))
            else:
                tail = await self.data.wait(self._tail, min(left, POLL_SECONDS))
                self._tail = max(self._tail, tail or 0)

    def _adjust(self, token: int) -> bool:
        """Follow the group's assignment. Returns whether there are slots to release."""
        with self.lock:
            if self.token != token:
                return False
            slots = self.look(lambda state: [replace(slot) for slot in state.slots])
            mine = {n: slot for n, slot in enumerate(slots) if slot.owner == token}
            for share in [*self._shares.values()]:
                if share.number not in mine or mine[share.number].grant != share.grant:
                    self._drop(share)
                    del self._shares[share.number]
            for number, slot in mine.items():
                if number not in self._shares:
                    self._shares[number] = share = Share(number, slot)
                    self._follow(share)
                share = self._shares[number]
                if share.leaving != (slot.target != token):
                    share.leaving = not share.leaving
                    (self._drop if share.leaving else self._follow)(share)
            return any(map(_can_go, self._shares.values()))

    def _follow(self, share: Share) -> None:
        """Read a share's entries from now on."""
        if share.leaving or share.number in self._paused:
            return
        for cohort in self._cohorts:
            fits = cohort.position == cohort.end == share.read
            if fits and share.limit is None and not limit_of(cohort):
                break
        else:
            self._cohorts.append(cohort := Cohort(share.read))
        cohort.shares[share.number] = share

    def _drop(self, share: Share) -> None:
        """Stop reading a share's entries."""
        for cohort in [*self._cohorts]:
            cohort.shares.pop(share.number, None)
            if not cohort.shares:
                self._cohorts.remove(cohort)

    async def _step(self) -> Batch | None:
        """Return a batch of the first cohort that has entries, and let the next one be first."""
        if any(each.position >= self._tail for each in self._cohorts):
            self._tail = max(self._tail, await self.data.tail())
        for cohort in [*self._cohorts]:
            while True:
                with self.lock:
                    if cohort not in self._cohorts or not self.remaining():
                        break
                    ready = cohort.position < cohort.end >= (limit_of(cohort) or 0)
                    batch = self._batch(cohort) if ready else None
                    if batch is not None:
                        self._cohorts.rotate(-1)
                        return batch
                    end = self._fetch_end(cohort)
                if end <= cohort.end or not await self._fetch(cohort, end):
                    break
        return None

    def _fetch_end(self, cohort: Cohort) -> int:
        """Return how far to read a cohort. Join it with another one at the same position."""
        if (limit := limit_of(cohort)) is not None:
            return limit
        end = min(self._tail, cohort.end + _FETCH_POSITIONS)
        for other in [*self._cohorts]:
            if other is cohort or limit_of(other) is not None:
                continue
            if other.position == other.end == cohort.position == cohort.end:
                other.shares.update(cohort.shares)
                self._cohorts.remove(cohort)
                return 0
            if cohort.end < other.position:
                end = min(end, other.position)
        return end

    async def _fetch(self, cohort: Cohort, end: int) -> bool:
        """Read up to ``end``, or less if the entries are large. Returns whether any were read."""
        start = cohort.end
        items = self.data.items(None, start, end)
        found: list[Item] = []
        size = 0
        while size < _FETCH_BYTES and (window := await items.next()) is not None:
            found += window
            size += sum(len(item.data) for item in window if isinstance(item, Entry))
        if size >= _FETCH_BYTES:
            end = found[-1].end
        slot_of = await self._slots_of(start, end)
        buffer: list[tuple[int, Item]] = []
        for item in found:
            if isinstance(item, Entry):
                buffer.append((slot_of(item), item))
            elif item.kind is GapKind.UNWRITTEN:  # this handle fills no holes
                end = item.position
                break
            elif item.kind.hides_entry:
                buffer += [
                    (slot_of(one), one)
                    for p in range(item.position, item.end)
                    for one in [item._replace(position=p, end=p + 1)]
                ]
        with self.lock:
            if cohort.end == start:  # no other thread has read it
                cohort.buffer += [each for each in buffer if each[0] in cohort.shares]
                cohort.end = end
        return end > start

    async def _slots_of(self, start: int, end: int) -> Callable[[Item], int]:
        config = self.config
        slots, key = int(config["slots"]), self._key
        if config["by"] == "object":
            stripes = await self.data.stripes(start, end)
            return lambda item: object_of(stripes, item.position) % slots

        def slot_of(item: Item) -> int:
            if isinstance(item, Gap):
                return item.position % slots  # so that one member reports it
            if key is None:
                return hash_of(min(item.tags, default="")) % slots
            return hash_of(key(item)) % slots

        return slot_of

    def _batch(self, cohort: Cohort) -> Batch | None:
        """Return the next batch of a cohort, or None if there are no entries of its shares."""
        most = math.inf if limit_of(cohort) else self.entries_max
        found: list[tuple[int, Item]] = []
        while cohort.buffer and len(found) < most:
            each = cohort.buffer.popleft()
            if each[0] in cohort.shares:
                found.append(each)
        end = cohort.buffer[0][1].position if cohort.buffer else cohort.end
        cohort.position = end
        for share in cohort.shares.values():
            share.read, share.limit = end, None
        if not found:
            return None
        slots = {number: cohort.shares[number].grant for number, _ in found}
        batch = Batch([item for _, item in found], slots, end)
        for number, item in found:
            batch._items.setdefault(number, []).append(item)
            cohort.shares[number].pending = end
        return batch

    async def commit(self, batch: Batch) -> None:
        """Commit a batch, and all earlier ones of its slots."""
        token, lost = self.token, {*batch.slots} - batch._committed
        if token is not None and lost:
            tried, commits = lost, [(number, batch.slots[number], batch.end) for number in lost]
            lost = tried & {*await self._commit(token, commits)}
            batch._committed |= tried - lost
        if lost:
            raise SlotsLost(
                f"this member of group {self.group!r} has lost {len(lost)} slots of the batch that"
                f" ends at {batch.end}",
                slots=(*sorted(lost),),
            )

    async def _commit(
        self,
        token: int,
        commits: list[tuple[int, int, int]],
    ) -> list[int]:
        """Send commits, release slots that can go, and return the slots that were refused.

        Positions without entries of this member are committed as well.
        """
        with self.lock:
            idle = [(s.number, s.grant, s.read) for s in filter(_is_idle, self._shares.values())]
            ends = {number: end for number, _, end in commits}
            shares = [*self._shares.values()]
            going = [(s.number, s.grant) for s in shares if _can_go(s, ends.get(s.number, 0))]
        refused = await self.send("commit", token, [*commits, *idle], going)
        if refused is True:
            self.lose(token)
            return [*ends]
        with self.lock:
            for number, grant, end in (*commits, *idle):
                share = self._shares.get(number)
                if share and share.grant == grant and number not in (refused or ()):
                    share.committed = max(share.committed, end)
        return refused or []

    async def tick(self) -> None:
        token = self.token
        if token is None:
            return
        due = self.clock() - self._idle_at >= _IDLE_SECONDS
        if self._adjust(token) or (due and any(map(_is_idle, [*self._shares.values()]))):
            self._idle_at = self.clock()
            await self._commit(token, [])

    async def seek(self, position: PositionSpec, slots: Collection[int] | None) -> None:
        """Continue this member's slots at a position."""
        token = await self.ensure()
        where, owned = await self.data.resolve(position), self.slots
        numbers = [*owned] if slots is None else [*slots]
        if lost := {*numbers} - {*owned}:
            raise SlotsLost(f"this member does not own slots {sorted(lost)}", slots=(*lost,))
        await self.hold(where)  # nothing from there on may be trimmed meanwhile
        if await self.send("seek", where, token, numbers):
            self.lose(token)
        else:
            await self.hold(where)  # the oldest member may have moved the cursor again
            self._adjust(token)

    def pause(self, slots: Collection[int] | None, *, paused: bool) -> None:
        """Stop reading slots, or resume."""
        with self.lock:
            numbers = range(self.config["slots"]) if slots is None else slots
            (self._paused.update if paused else self._paused.difference_update)(numbers)
            for share in self._shares.values():
                if share.number in numbers:
                    self._drop(share)
                    self._follow(share)

    async def lag(self) -> dict[int, int]:
        """Return for each slot of this member how many positions are not committed."""
        tail = await self.data.tail()
        with self.lock:
            return {each.number: tail - each.committed for each in self._shares.values()}

    async def transform(
        self,
        function: Callable[[Entry], Iterable[Output] | Awaitable[Iterable[Output]]],
        into: LogPort,
        seconds: float | None,
    ) -> int:
        """Append the output of a function for each entry, and commit the entry with it."""
        appended = 0
        if f"{INTO}{into.log}" not in self.config:
            await self.send("configure", {f"{INTO}{into.log}": True})
        while (batch := await self.next(seconds)) is not None:
            done = None
            try:
                done = await self._pass_on(batch, function, into)
            finally:
                if done is None:
                    with self.lock:  # the entries are delivered again
                        for number in batch.slots:
                            if number in self._shares:
                                self._drop(self._shares.pop(number))
            appended += done or 0
        return appended

    async def _pass_on(self, batch: Batch, function: Any, into: LogPort) -> int | None:
        """Append the output of a batch and commit it. Returns None if slots were lost."""
        outputs: dict[int, list[NewEntry]] = {}
        for number, items in batch.by_slot().items():
            outputs[number] = []
            for item in items:
                if isinstance(item, Gap):
                    raise no_entry(item, self.data.log)
                outputs[number] += new_entries(await awaited(function(item)))
        token = self.token
        if token is None:
            return None
        intents = [(number, batch.slots[number], batch.end) for number in outputs]
        sequences = await self.send("intend", token, intents)
        if not isinstance(sequences, dict) or len(sequences) < len(intents):
            return None
        producer = f"{self.port.log}.{self.config['nonce']}"
        appended = 0
        with suppress(SlotsLost, SequenceSuperseded):
            named = [
                (entries, f"{producer}.{number}", sequences[number][0])
                for number, entries in outputs.items()
                if entries or sequences[number][1]  # an earlier output is compared
            ]
            for entries, name, sequence in named:
                appended += await into.append_once(entries, name, sequence, in_order=True)
            await self.commit(batch)
            for _, name, sequence in named:
                await into.complete_sequences(name, sequence + 1)
            return appended
        return None


def _is_idle(share: Share) -> bool:
    """Whether a share's positions can be committed although no batch had entries of it."""
    return share.pending <= share.committed < share.read


def _can_go(share: Share, end: int = 0) -> bool:
    """Whether a share can be released if it is committed up to ``end``."""
    return share.leaving and share.pending <= max(end, share.committed)
