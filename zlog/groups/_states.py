"""The states of groups, as objects in a space. They use no clock.

A member joins under a *token*, the position of its entry, and renews its lease by entries. Other
members measure the lease by their own clocks. Their command to remove a member names the version
that they saw, so a renewal that came first wins. A command under the token of a removed member is
refused.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, field
from typing import Any, ClassVar

from zlog.objects import Rejected, Replicated

NO_MEMBER = -1

Job = tuple[int, int, str]
"""A job that waits: its position, its attempts so far, and its last error."""


@dataclass(slots=True)
class Session:
    """A member, from its entry until it leaves or is removed.

    Attributes:
        token: the position of the entry with which it joined.
        id: distinguishes repeated attempts to join.
        name: the member's name.
        lease: after how many seconds without a renewal it is removed.
        version: the position of its last renewal.
        jobs: of a queue, the attempts of its jobs, by position.
    """

    token: int
    id: str
    name: str
    lease: float
    version: int
    jobs: dict[int, int] = field(default_factory=dict)


class GroupState(Replicated):
    """What groups of both kinds have: a configuration and members.

    Attributes:
        config: the group's settings; empty until it is created.
        members: the members by their tokens, oldest first.
        answers: the answers to commands for which this process waits, by their keys; see ``wait``.
            They are not part of the state.
    """

    mode: ClassVar[str]
    defaults: ClassVar[Mapping[str, Any]]

    def __init__(self) -> None:
        self.config: dict[str, Any] = {}
        self.members: dict[int, Session] = {}
        self.answers: dict[str, list[Any]] = {}

    def apply(self, command: Any) -> None:
        name, key, *arguments = command
        answer: Any = True
        try:
            answer = getattr(self, f"do_{name}")(*arguments)
        finally:
            if key in self.answers:
                self.answers[key].append(answer)

    def wait(self, key: str) -> None:
        """Keep the answers to a command: True for refused, or what the method returns.

        A command has several answers if it was sent again after a reply was lost.
        """
        self.answers.setdefault(key, [])

    def member(self, token: int) -> Session:
        """Return a member. Raises Rejected if it was removed."""
        found = self.members.get(token)
        if found is None:
            raise Rejected(f"token {token} is not a member")
        return found

    def do_create(self, config: dict[str, Any]) -> None:
        """Create the group, unless it exists."""
        if not self.config:
            self.config = config
            self.start(config["start"])

    def do_configure(self, changes: dict[str, Any]) -> None:
        """Change settings."""
        self.config.update(changes)

    def do_join(self, id: str, name: str, lease: float, since: int) -> None:
        """Add a member. Repeating this has no effect.

        Args:
            since: the client knew the members that had joined below this position.
        """
        del since
        if all(each.id != id for each in self.members.values()):
            session = Session(self.position, id, name, lease, self.position)
            self.members[session.token] = session
            self.added(session)

    def do_renew(self, token: int) -> None:
        """Begin the member's lease again."""
        self.member(token).version = self.position

    def do_leave(self, token: int, untried: list[int]) -> None:
        """Remove a member at its own request. It has not begun the jobs ``untried``."""
        session = self.members.pop(self.member(token).token)
        for position in untried:
            if position in session.jobs:
                session.jobs[position] -= 1
        self.removed(session, "the worker ended")

    def do_expire(self, token: int, version: int) -> None:
        """Remove a member that has not renewed its lease since ``version``."""
        if self.member(token).version != version:
            raise Rejected(f"member {token} has renewed its lease")
        self.removed(self.members.pop(token), "the worker's lease ended")

    @abstractmethod
    def start(self, position: int) -> None:
        """Let a new group begin at a position."""

    def added(self, session: Session) -> None:
        """Update the state after a member has joined."""

    @abstractmethod
    def removed(self, session: Session, why: str) -> None:
        """Update the state after a member was removed."""

    @abstractmethod
    def low(self) -> int:
        """Return the lowest position that is not processed."""

    def snapshot(self) -> Any:
        members = [
            [each.token, each.id, each.name, each.lease, each.version, [*each.jobs.items()]]
            for each in self.members.values()
        ]
        return [self.config, members]

    def restore(self, state: Any) -> None:
        self.config, members = state
        self.members = {row[0]: Session(*row) for row in members}
        for session in self.members.values():
            session.jobs = dict(session.jobs)


@dataclass(slots=True)
class Slot:
    """A share of an ordered group's entries.

    Attributes:
        owner: the token of the member that processes the slot; -1 if there is none.
        target: the token of the member that is to have it. If this differs from the owner, the
            owner must release the slot first.
        grant: the position of the entry that gave it to its owner: the fencing token.
        position: all entries below are processed.
        intent: the output of entries below may be in another log, completely or in part.
        sequence: identifies this output.
    """

    position: int
    owner: int = NO_MEMBER
    target: int = NO_MEMBER
    grant: int = NO_MEMBER
    intent: int = NO_MEMBER
    sequence: int = NO_MEMBER


class OrderedState(GroupState):
    """A group whose members process slots in order."""

    type_name = "ordered-group"
    mode = "ordered"
    defaults: ClassVar = {"by": "tag", "slots": 64}

    def __init__(self) -> None:
        super().__init__()
        self.slots: list[Slot] = []

    def start(self, position: int) -> None:
        self.slots = [Slot(position) for _ in range(self.config["slots"])]

    def do_join(self, id: str, name: str, lease: float, since: int) -> None:
        """Add a member, unless another one has joined with the name meanwhile."""
        for each in self.members.values():
            if name and each.name == name and each.id != id and each.token >= since:
                raise Rejected(f"member {each.token} has the name {name!r}")
        super().do_join(id, name, lease, since)

    def added(self, session: Session) -> None:
        named = (each for each in self.members.values() if each.name == session.name)
        earlier = next(named) if session.name else session
        if earlier is not session:  # the same member has returned
            del self.members[earlier.token]
            for slot in self.slots:
                if slot.target == earlier.token:
                    slot.target = session.token
                if slot.owner == earlier.token:
                    slot.owner, slot.grant = session.token, self.position
        self._assign()

    def removed(self, session: Session, why: str) -> None:
        del why
        for slot in self.slots:
            if slot.owner == session.token:
                slot.owner = NO_MEMBER
        self._assign()

    def _assign(self) -> None:
        """Choose who is to have each slot, so that as few slots as possible move."""
        held: dict[int, list[Slot]] = {token: [] for token in self.members}
        free: list[Slot] = []
        for slot in self.slots:
            held.get(slot.target, free).append(slot)
        least, more = divmod(len(self.slots), max(1, len(held)))
        order = sorted(held, key=lambda token: (-len(held[token]), token))
        quotas = {token: least + (rank < more) for rank, token in enumerate(order)}
        for token, quota in quotas.items():
            free += held[token][quota:]
        for token, quota in quotas.items():
            for _ in range(quota - len(held[token])):
                free.pop().target = token
        for slot in free:
            slot.target = NO_MEMBER
        for slot in self.slots:
            if slot.owner == NO_MEMBER != slot.target:
                slot.owner, slot.grant = slot.target, self.position

    def do_commit(
        self,
        token: int,
        commits: list[tuple[int, int, int]],
        releases: list[tuple[int, int]],
    ) -> list[int]:
        """Advance and release slots of one owner. Each is named by its number and grant.

        Returns the slots that the member does not own under the grant.
        """
        self.member(token)
        refused = []
        for number, grant, position in commits:
            slot = self._owned(token, number, grant)
            if slot is None:
                refused.append(number)
            else:
                slot.position = max(slot.position, position)
        for number, grant in releases:
            slot = self._owned(token, number, grant)
            if slot is not None and slot.target != token:
                slot.owner = NO_MEMBER
                if slot.target != NO_MEMBER:
                    slot.owner, slot.grant = slot.target, self.position
        return refused

    def do_intend(self, token: int, intents: list[tuple[int, int, int]]) -> dict[int, Any]:
        """Announce outputs for the entries of slots up to a position.

        Returns the sequence numbers of the outputs by slot, and whether an earlier command has
        announced them. A slot is missing if the member does not own it, if it is processed up to
        the position, or if an earlier owner has begun an output up to another position.
        """
        self.member(token)
        sequences = {}
        for number, grant, position in intents:
            slot = self._owned(token, number, grant)
            if slot is None or slot.position >= position:
                continue
            if slot.intent <= slot.position:
                slot.intent, slot.sequence = position, self.position
            if slot.intent == position:
                sequences[number] = (slot.sequence, slot.sequence != self.position)
        return sequences

    def _owned(self, token: int, number: int, grant: int) -> Slot | None:
        slot = self.slots[number]
        return slot if (slot.owner, slot.grant) == (token, grant) else None

    def do_seek(self, position: int, token: int, numbers: list[int]) -> None:
        """Continue slots of a member, or all slots if the token is -1, at a position.

        Their owners get new grants, so that commits of entries read before are refused.
        """
        for number, slot in enumerate(self.slots):
            if token == NO_MEMBER or (slot.owner == token and number in numbers):
                slot.position, slot.intent, slot.grant = position, NO_MEMBER, self.position

    def low(self) -> int:
        return min(slot.position for slot in self.slots)

    def snapshot(self) -> Any:
        return [super().snapshot(), [astuple(slot) for slot in self.slots]]

    def restore(self, state: Any) -> None:
        super().restore(state[0])
        self.slots = [Slot(*row) for row in state[1]]


class QueueState(GroupState):
    """A group whose members take jobs one by one.

    Attributes:
        next: no job at or above this position was given to a member.
        ready: jobs to give again, with their attempts and last errors, by position.
        delayed: jobs to give again later: their attempts and errors, the position of the command
            that delayed them, the delay in seconds, and when it ends by the clock of the client
            that sent the command, in µs since 1970.
        dead: jobs to move to the dead letters, by numbers that are never used again.
        deaths, redeliveries: how many jobs died or were given again so far.
        reset: the position of the last command that has moved the group to another position.
    """

    type_name = "queue-group"
    mode = "queue"
    defaults: ClassVar = {"attempts": 5, "dead_letters": ""}

    def __init__(self) -> None:
        super().__init__()
        self.next = 0
        self.ready: dict[int, tuple[int, str]] = {}
        self.delayed: dict[int, tuple[int, str, int, float, int]] = {}
        self.dead: dict[int, Job] = {}
        self.deaths = 0
        self.redeliveries = 0
        self.reset = 0

    def start(self, position: int) -> None:
        self.next = position

    def do_configure(self, changes: dict[str, Any]) -> None:
        super().do_configure(changes)
        if not self.config["dead_letters"]:
            self.ready.update({position: (n, error) for position, n, error in self.dead.values()})
            self.dead.clear()

    def removed(self, session: Session, why: str) -> None:
        for position, attempts in session.jobs.items():
            self._failed(position, attempts, why)

    def _failed(self, position: int, attempts: int, error: str) -> None:
        most = self.config["attempts"]
        if self.config["dead_letters"] and most and attempts >= most:
            self.dead[self.deaths] = (position, attempts, error)
            self.deaths += 1
        else:
            self.ready[position] = (attempts, error)

    def do_work(
        self,
        token: int,
        acks: list[tuple[int, int]],
        nacks: list[tuple[int, int, float, int, str, bool]],
        count: int,
        tail: int,
        due: list[tuple[int, int]],
        reset: int,
    ) -> list[int]:
        """Acknowledge ranges of jobs, return jobs, and take up to ``count`` others below ``tail``.

        Args:
            nacks: for each job, its position and attempt, the delay in seconds and its end (see
                ``delayed``), the error, and whether the attempt counts. If the command is repeated,
                the member may already have the next attempt.
            due: the delayed jobs whose delay has passed by the member's clock, with their versions.
            reset: the value of ``reset`` when the member got the jobs of ``acks`` and ``nacks``.

        Returns the positions of jobs that the member does not have, so nothing was done with them.
        """
        jobs, refused = self.member(token).jobs, []
        held = jobs if reset == self.reset else {}
        for start, end in acks:
            for position in range(start, end):
                if held.pop(position, None) is None:
                    refused.append(position)
        for position, attempt, delay, ends, error, counts in nacks:
            if held.get(position) != attempt:
                refused.append(position)
                continue
            self._failed(position, held.pop(position) - (not counts), error)
            if delay > 0 and position in self.ready:
                self.delayed[position] = (*self.ready.pop(position), self.position, delay, ends)
        for position, version in due:
            if position in self.delayed and self.delayed[position][2] == version:
                self.ready[position] = self.delayed.pop(position)[:2]
        again = min(count, len(self.ready))
        for _ in range(again):
            position = next(iter(self.ready))
            attempts, _error = self.ready.pop(position)
            jobs[position] = attempts + 1
        self.redeliveries += again
        end = max(self.next, min(tail, self.next + count - again))
        jobs.update(dict.fromkeys(range(self.next, end), 1))
        self.next = end
        return refused

    def do_bury(self, numbers: list[int]) -> None:
        """Forget jobs that are in the log of dead letters."""
        for number in numbers:
            self.dead.pop(number, None)

    def do_seek(self, position: int, _token: int, _numbers: list[int]) -> None:
        """Continue at a position. No member has a job then."""
        self.next, self.reset = position, self.position
        self.ready.clear()
        self.delayed.clear()
        for session in self.members.values():
            session.jobs.clear()

    def unfinished(self) -> Iterator[int]:
        """Yield the positions of the jobs that are not finished, except those never given."""
        for session in self.members.values():
            yield from session.jobs
        yield from self.ready
        yield from self.delayed
        yield from (position for position, *_ in self.dead.values())

    def low(self) -> int:
        return min(self.unfinished(), default=self.next)

    def snapshot(self) -> Any:
        jobs = [[*each.items()] for each in (self.ready, self.delayed, self.dead)]
        return [super().snapshot(), self.next, jobs, self.deaths, self.redeliveries, self.reset]

    def restore(self, state: Any) -> None:
        common, self.next, jobs, self.deaths, self.redeliveries, self.reset = state
        super().restore(common)
        self.ready, self.delayed, self.dead = (
            {key: (*value,) for key, value in rows} for rows in jobs
        )
