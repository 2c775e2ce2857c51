"""Statistics of groups."""

from __future__ import annotations

import time
from datetime import datetime
from typing import NamedTuple

from zlog.groups._states import GroupState, OrderedState, QueueState


class MemberStat(NamedTuple):
    """A member of a group.

    Attributes:
        name: its name; may be empty.
        token: the position at which it has joined, in the group's own log.
        lease: its lease in seconds.
        share: the number of its slots or jobs.
        version: the position of its last renewal, in the group's own log.
        renewed: when it last renewed its lease, by its clock; None if this is unknown, because the
            entry was trimmed.
    """

    name: str
    token: int
    lease: float
    share: int
    version: int
    renewed: datetime | None = None


class GroupStat(NamedTuple):
    """The state of a group.

    Attributes:
        log: the log that the group reads.
        name: the group's name.
        mode: ``"ordered"`` or ``"queue"``.
        position: the lowest position that is not processed. The group's cursor follows it.
        tail: the log's tail.
        lag: the number of positions that are not processed; in an ordered group, the number from
            the slowest slot on.
        oldest: when the oldest entry that is not processed was appended; None if there is none.
        members: the members, oldest first. Dead ones are listed until a living one removes them.
        slots: the number of slots; 0 for a queue.
        by: what decides the slot: ``"tag"``, ``"object"`` or ``"key"``; empty for a queue.
        in_progress: the number of jobs that workers have.
        waiting: the number of jobs that wait to be tried again, with those that are delayed.
        redeliveries: how often a job was tried again.
        dead: how many jobs became dead letters.
        attempts: how often a job is tried.
        dead_letters: the log of the dead letters; empty if there is none.
    """

    log: str
    name: str
    mode: str
    position: int
    tail: int
    lag: int
    oldest: datetime | None
    members: tuple[MemberStat, ...]
    slots: int = 0
    by: str = ""
    in_progress: int = 0
    waiting: int = 0
    redeliveries: int = 0
    dead: int = 0
    attempts: int = 0
    dead_letters: str = ""

    @property
    def age(self) -> float:
        """The age of the oldest entry that is not processed, in seconds; 0 if there is none."""
        return max(0.0, time.time() - self.oldest.timestamp()) if self.oldest else 0.0


def stat_of(state: GroupState, log: str, name: str, tail: int) -> GroupStat:
    """Return the statistics that follow from a state."""
    config = state.config
    low = state.low()
    members: list[MemberStat] = []
    for each in state.members.values():
        share = len(each.jobs)
        if isinstance(state, OrderedState):
            share = sum(slot.owner == each.token for slot in state.slots)
        members.append(MemberStat(each.name, each.token, each.lease, share, each.version))
    stat = GroupStat(log, name, state.mode, low, tail, tail - low, None, (*members,))
    if isinstance(state, QueueState):
        running = sum(each.share for each in members)
        waiting = len(state.ready) + len(state.delayed) + len(state.dead)
        return stat._replace(
            lag=max(0, tail - state.next) + running + waiting,
            in_progress=running,
            waiting=waiting,
            redeliveries=state.redeliveries,
            dead=state.deaths,
            attempts=config["attempts"],
            dead_letters=config["dead_letters"],
        )
    return stat._replace(slots=config["slots"], by=config["by"])
