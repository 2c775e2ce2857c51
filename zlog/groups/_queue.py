"""A member of a queue: takes jobs, and sends acknowledgements in batches."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from zlog.entry import Entry, Gap, GapKind
from zlog.errors import SequenceSuperseded
from zlog.extension import LogPort, NewEntry, tagged_each
from zlog.groups._member import POLL_SECONDS, Clocks, Member, awaited, logger, state_of
from zlog.groups._states import QueueState
from zlog.objects.extension import Replica

_CLAIM_SECONDS = 0.1
"""For how long the jobs should last that a member takes at once."""

_BATCH_MAX = 1000
"""How many jobs of a kind a command names at most, which limits the size of its entry."""

_LOOK_SECONDS = 1.0
"""How often a member that takes no jobs looks for delayed ones, of which there may be many."""

_ERROR_BYTES_MAX = 100

OWN_TAGS = ("dead-letter-of:", "dead-position:", "dead-attempts:", "dead-error:")
"""The beginnings of the tags that a dead letter has besides those of its entry."""

_TAGS_MAX = 60
"""A dead letter has this many tags of its entry, and four others."""


class Claim:
    """A job of this member.

    Attributes:
        item: the entry, or the gap if its position is lost; None if it was not read yet.
        deadline: when the lease ends. The user has as long to take the job.
        given: whether the user has the job.
        open: whether the user may still acknowledge it; None if this comes late.
    """

    __slots__ = ("attempt", "deadline", "given", "item", "open", "position")

    def __init__(self, position: int, attempt: int, deadline: float) -> None:
        self.position = position
        self.attempt = attempt
        self.item: Entry | Gap | None = None
        self.deadline = deadline
        self.given = False
        self.open: bool | None = True


def ranges(positions: Iterable[int]) -> list[tuple[int, int]]:
    """Return the ranges that consist of these positions."""
    found: list[tuple[int, int]] = []
    for position in sorted(positions):
        if found and found[-1][1] == position:
            found[-1] = (found[-1][0], position + 1)
        else:
            found.append((position, position + 1))
    return found


class QueueMember(Member[QueueState]):
    """A member of a queue.

    Attributes:
        refused: how many acknowledgements came late.
    """

    def __init__(
        self,
        data: LogPort,
        replica: Replica,
        group: str,
        name: str,
        lease: float,
        open_dead: Callable[[str], Awaitable[LogPort] | LogPort],
    ) -> None:
        super().__init__(data, replica, QueueState, group, name, lease)
        self.refused = 0
        self._held: dict[int, Claim] = {}
        self._unread: list[Claim] = []
        self._ready: deque[Claim] = deque()
        self._acks: list[Claim] = []
        self._nacks: list[tuple[Claim, tuple[float, int, str, bool]]] = []
        self._flying: list[Any] = []
        self._tail = 0
        self._size = self._taken = 1
        self._reset = 0
        self._claimed_at = self._look_at = -math.inf
        self._delays = Clocks(self.clock)
        wall = data.wall_clock_us()
        is_queue = state_of(replica) is QueueState  # otherwise `begin` raises an error
        delayed = self.look(lambda state: [*state.delayed.items()]) if is_queue else []
        self._early = {(p, job[2]): max(0.0, (job[4] - wall) / 1e6) for p, job in delayed}
        """The remaining delays of jobs that were delayed before this member came."""
        self._open_dead = open_dead
        self._dead: LogPort | None = None

    def forget(self) -> None:
        self.refused += len(self._acks)
        for claim in self._held.values():
            claim.open = None if claim.open else claim.open
        for each in (self._held, self._unread, self._ready, self._acks, self._nacks):
            each.clear()

    async def take(self, count: int, seconds: float | None) -> list[Claim]:
        """Return up to ``count`` jobs; none if there are none for some seconds."""
        until = math.inf if seconds is None else self.clock() + seconds
        while True:
            jobs = self.hand_out(count)
            if jobs:
                return jobs
            await self.ensure()
            if await self._claim(count):
                continue
            left = until - self.clock()
            if left <= 0:
                return []
            position = max(self._tail, self.look(lambda state: state.next))
            tail = await self.data.wait(position, min(left, POLL_SECONDS))
            self._tail = max(self._tail, tail or 0)

    def hand_out(self, count: int) -> list[Claim]:
        """Return jobs that are ready, if the lease has not ended."""
        if not self._ready or not self.remaining():
            return []
        with self.lock:
            jobs: list[Claim] = []
            while self._ready and len(jobs) < count:
                job = self._ready.popleft()
                if job.open:  # otherwise it was released
                    job.deadline, job.given = self.clock() + self._lease, True
                    jobs.append(job)
            self._taken += len(jobs)
        return jobs

    async def _claim(self, count: int) -> bool:
        """Take jobs from the group. Returns whether any are ready."""
        with self.lock:  # an earlier call may have ended after its command was stored
            self._note_new(self.token)
        due = self._due()[:_BATCH_MAX]
        next_, again = self.look(lambda state: (state.next, bool(state.ready)))
        if not (due or again or next_ < self._tail):
            tail = await self.data.tail()
            self._tail = max(self._tail, tail)
        if due or again or next_ < self._tail:
            now = self.clock()
            rate = self._taken / max(1e-6, now - self._claimed_at)
            wanted = max(1, min(2 * self._size, int(rate * _CLAIM_SECONDS)))
            self._size, self._taken, self._claimed_at = wanted, 0, now
            await self._work(min(max(count, wanted), _BATCH_MAX), due)
        await self._read()
        return bool(self._ready)

    def _due(self) -> list[tuple[int, int]]:
        """Return the delayed jobs whose delay has passed, with their versions."""
        delayed = self.look(lambda state: [*state.delayed.items()])
        if not delayed:
            return []
        things = [((position, job[2]), job[3]) for position, job in delayed]
        early = self._early.get
        with self.lock:
            return self._delays.update((each, min(s, early(each, s))) for each, s in things)

    async def _work(self, count: int, due: list[tuple[int, int]]) -> None:
        """Send acknowledgements and take up to ``count`` jobs, in one entry."""
        with self.lock:
            token = self.token
            if token is None:
                return None
            self._check_reset()
            reset, acks, nacks = self._reset, self._acks[:_BATCH_MAX], self._nacks[:_BATCH_MAX]
            del self._acks[:_BATCH_MAX], self._nacks[:_BATCH_MAX]
            event = self.port.event()
            self._flying.append(event)
        positions = ranges(claim.position for claim in acks)
        rows = [(claim.position, claim.attempt, *how) for claim, how in nacks]
        try:
            refused = await self.send("work", token, positions, rows, count, self._tail, due, reset)
        except BaseException:
            with self.lock:
                if (self.token, self._reset) == (token, reset):
                    self._acks[:0], self._nacks[:0] = acks, nacks
                else:
                    self.refused += len(acks)
            raise
        finally:
            self._flying.remove(event)
            event.set()
        late = len(acks) if refused is True else len(refused or ())
        if late:
            logger.warning("group %r: %d jobs were not held any more", self.group, late)
        with self.lock:
            self.refused += late
            if refused is True:
                return self.lose(token)
            for claim in (*acks, *(claim for claim, _ in nacks)):
                if self._held.get(claim.position) is claim:
                    del self._held[claim.position]
            self._note_new(token)
        return None

    def _check_reset(self) -> None:
        """Forget all jobs if the group was reset, while the lock is held."""
        reset = self.look(lambda state: state.reset)
        if reset != self._reset:
            self._reset = reset
            self.forget()

    def _note_new(self, token: int | None) -> None:
        """Note the jobs that the group has given to this member, while the lock is held."""
        held = self._held
        if token is None or self.token != token:
            return
        self._check_reset()
        deadline = self.clock() + self._lease
        for position, attempt in self.look(lambda state: _jobs(state, token)):
            known = held.get(position)
            if known is None or known.attempt < attempt:
                held[position] = claim = Claim(position, attempt, deadline)
                self._unread.append(claim)

    async def _read(self) -> None:
        """Read the entries of new jobs."""
        with self.lock:
            unread, self._unread = {each.position: each for each in self._unread}, []
        if not unread:
            return
        try:
            for start, end in ranges(unread):
                items = self.data.items(None, start, end)
                while (window := await items.next()) is not None:
                    for item in window:
                        self._note_item(unread, item)
        finally:
            with self.lock:
                self._unread += (c for c in unread.values() if self._held.get(c.position) is c)

    def _note_item(self, unread: dict[int, Claim], item: Entry | Gap) -> None:
        for position in range(item.position, item.end):
            claim = unread.pop(position, None)
            if claim is None or self._held.get(position) is not claim or not claim.open:
                continue
            if isinstance(item, Entry) or item.kind.hides_entry:
                claim.item = item
                self._ready.append(claim)
            elif item.kind is GapKind.UNWRITTEN:  # this handle fills no holes
                self.nack(claim, 1.0, "the position is not written yet", counts=False)
            else:
                self.ack(claim)

    def ack(self, claim: Claim) -> None:
        """Acknowledge a job, soon."""
        with self.lock:
            if self._close(claim):
                self._acks.append(claim)
                if len(self._acks) == 1:
                    self.wake()

    def nack(self, claim: Claim, delay: float, error: str, *, counts: bool = True) -> None:
        """Return a job, soon."""
        ends = self.data.wall_clock_us() + int(delay * 1e6)
        cut = error.encode()[:_ERROR_BYTES_MAX].decode(errors="ignore")
        with self.lock:
            if self._close(claim):
                self._nacks.append((claim, (float(delay), ends, cut, counts)))
                self.wake()

    def _close(self, claim: Claim) -> bool:
        was, claim.open = claim.open, False
        self.refused += was is None
        return bool(was)

    def left(self, claim: Claim) -> float:
        """Return the remaining seconds of a job's lease."""
        return min(max(0.0, claim.deadline - self.clock()), self.remaining()) if claim.open else 0.0

    def extend(self, claim: Claim, seconds: float | None) -> None:
        """Let the lease of a job begin again."""
        claim.deadline = self.clock() + (self._lease if seconds is None else seconds)

    async def flush(self) -> None:
        """Wait until the group has all acknowledgements."""
        while True:
            flying = [*self._flying]
            if self.token is not None and (self._acks or self._nacks):
                await self._work(0, [])
            elif flying:
                await flying[0].wait()
            else:
                return

    async def tick(self) -> None:
        now = self.clock()
        if now >= self._look_at:  # delays begin when this member first sees them
            self._look_at = now + _LOOK_SECONDS
            self._due()
        with self.lock:
            self._check_reset()
            for claim in self._held.values():
                if claim.open and claim.deadline < now:
                    error = f"not acknowledged within {self._lease:g} s" if claim.given else ""
                    self.nack(claim, 0, error, counts=claim.given)
                    claim.open = None

    async def maintain(self) -> None:
        """Move jobs that have failed too often to the log of dead letters."""
        dead, deaths, config = self.look(
            lambda s: ([*islice(s.dead.items(), _BATCH_MAX)], s.deaths, dict(s.config))
        )
        name = config["dead_letters"]
        if not dead or not name:
            return
        if self._dead is None or self._dead.log != name:
            self._dead = await awaited(self._open_dead(name))
        producer = f"{self.port.log}.{config['nonce']}"
        for number, (position, attempts, error) in dead:
            letter = await self._letter(position, attempts, error)
            try:
                await self._dead.append_once(letter, producer, number)
            except SequenceSuperseded:  # another member does the same
                return
        await self.send("bury", [number for number, _ in dead])
        first = self.look(lambda state: min(state.dead, default=deaths))
        await self._dead.complete_sequences(producer, first)

    async def _letter(self, position: int, attempts: int, error: str) -> list[NewEntry]:
        """Return a dead letter, or nothing if the entry was trimmed."""
        data, tags = b"", tuple[str, ...]()
        items = self.data.items(None, position, position + 1)
        while (window := await items.next()) is not None:
            for item in window:
                if isinstance(item, Entry):
                    data, tags = item.data, item.tags
                elif item.kind.hides_entry:
                    error = f"{item.kind.value}: {error}"
                else:
                    return []
        about = (self.port.log, position, attempts, error)
        own = [f"{name}{value}" for name, value in zip(OWN_TAGS, about, strict=True)]
        return tagged_each([data], [[*sorted(tags)[:_TAGS_MAX], *own]])

    def untried(self) -> list[int]:
        with self.lock:
            return [each.position for each in self._held.values() if not each.given]


def letter_of(letter: Entry) -> tuple[bytes, list[str]]:
    """Return the data and tags that the entry of a dead letter had."""
    return letter.data, [tag for tag in letter.tags if not tag.startswith(OWN_TAGS)]


def _jobs(state: QueueState, token: int) -> Iterator[tuple[int, int]] | list[Any]:
    session = state.members.get(token)
    return [] if session is None else [*session.jobs.items()]
