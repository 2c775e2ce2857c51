"""Groups in virtual time, and the checker of histories against broken variants.

Replay a seed: ``python -m tests.groups MODE --simulate SEED``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import pytest

from zlog.groups._member import Member
from zlog.groups._states import OrderedState, QueueState, Session

from .simulation import simulate

# The coroutines of killed processes are destroyed in `async with` blocks.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

SEEDS = 8
MUTANT_SEEDS = 12


@pytest.mark.parametrize("mode", ["queue", "ordered"])
def test_guarantees_hold_under_faults(mode: str) -> None:
    done = 0
    for seed in range(SEEDS):
        simulation = simulate(seed, mode)
        assert simulation.wrong == [], f"seed {seed}"
        done += len(simulation.entries)
    assert done > 300 * SEEDS  # else nothing was tried


_do_commit = OrderedState.do_commit


def _commit_for_anyone(self: OrderedState, token: int, *what: Any) -> list[int]:
    members = {**self.members}
    self.members.setdefault(token, Session(token, "", "", 1.0, 0))
    refused = _do_commit(self, token, *what)
    self.members = members
    return refused


_assign = OrderedState._assign


def _assign_at_once(self: OrderedState) -> None:
    _assign(self)
    for slot in self.slots:
        if slot.target not in (slot.owner, -1):
            slot.owner, slot.grant = slot.target, self.position


async def _pretend_to_renew(self: Member[Any]) -> None:
    self._extend(self.clock())


_restore_queue, _restore_ordered = QueueState.restore, OrderedState.restore


def _restore_earlier(self: QueueState, state: Any) -> None:
    _restore_queue(self, state)
    self.next = max(0, self.next - 5)


def _restore_earlier_slots(self: OrderedState, state: Any) -> None:
    _restore_ordered(self, state)
    for slot in self.slots:
        slot.position = max(0, slot.position - 20)


MUTANTS: dict[str, tuple[str, list[tuple[Any, str, Any]]]] = {
    "commit without token": (
        "ordered",
        [
            (OrderedState, "do_commit", _commit_for_anyone),
            (OrderedState, "_owned", lambda self, _token, number, _grant: self.slots[number]),
        ],
    ),
    "slot assigned before release": ("ordered", [(OrderedState, "_assign", _assign_at_once)]),
    "lease not extended": ("queue", [(Member, "_renew", _pretend_to_renew)]),
    "ack lost at checkpoint": ("queue", [(QueueState, "restore", _restore_earlier)]),
    "commit lost at checkpoint": (
        "ordered",
        [(OrderedState, "restore", _restore_earlier_slots)],
    ),
}


@contextmanager
def broken(name: str) -> Iterator[None]:
    """Break a rule for the length of a ``with`` block."""
    with ExitStack() as stack:
        for owner, attribute, value in MUTANTS[name][1]:
            stack.enter_context(mock.patch.object(owner, attribute, value))
        yield


@pytest.mark.parametrize("name", MUTANTS)
def test_checker_detects_mutants(name: str) -> None:
    with broken(name):
        for seed in range(MUTANT_SEEDS):
            if any(each.startswith("G") for each in simulate(seed, MUTANTS[name][0]).wrong):
                return
    pytest.fail("no seed has noticed it")
