"""The states of groups, without I/O."""

from __future__ import annotations

import json
from typing import Any

import pytest

from zlog.groups._states import GroupState, OrderedState, QueueState
from zlog.objects import Rejected

from ..support.programs import REPOSITORY

CONFIG = {"nonce": "5ca1ab1e", "start": 0}
QUEUE: list[list[Any]] = [
    ["create", {"attempts": 5, "dead_letters": "", **CONFIG}],
    ["join", "a1", "", 30, 2],
    ["work", 2, [], [], 3, 10, [], 0],
    ["work", 2, [[0, 1]], [[1, 1, 0.5, 1700000000000000, "busy", True]], 0, 10, [], 0],
]
ORDERED: list[list[Any]] = [
    ["create", {"by": "tag", "slots": 2, **CONFIG}],
    ["join", "a1", "w1", 10, 2],
    ["join", "a2", "", 10, 3],
    ["commit", 2, [[0, 2, 7], [1, 2, 7]], [[1, 2]]],
    ["intend", 2, [[0, 2, 9]]],
]


def played(cls: type[GroupState], commands: list[list[Any]]) -> GroupState:
    """Return the state after commands at positions from 1 on."""
    state = cls()
    for position, command in enumerate(commands, 1):
        apply(state, position, command)
    return state


def apply(state: GroupState, position: int, command: list[Any]) -> None:
    """Apply a command. Its key is its position."""
    state.position = position
    state.wait(str(position))
    state.apply([command[0], str(position), *command[1:]])


@pytest.mark.parametrize(("cls", "commands"), [(QueueState, QUEUE), (OrderedState, ORDERED)])
def test_snapshot_restores_whole_state(cls: type[GroupState], commands: list[list[Any]]) -> None:
    snapshot = json.dumps(played(cls, commands).snapshot(), sort_keys=True)
    restored = cls()
    restored.restore(json.loads(snapshot))
    assert json.dumps(restored.snapshot(), sort_keys=True) == snapshot
    if cls is QueueState:
        assert snapshot in (REPOSITORY / "docs/formats/groups.md").read_text()


def test_commands_of_other_owners_change_nothing() -> None:
    state = played(OrderedState, ORDERED)
    before = state.snapshot()
    apply(state, 6, ["commit", 3, [[0, 2, 99]], [[0, 2]]])
    assert state.answers["6"] == [[0]]
    for command in (["commit", 9, [], []], ["renew", 9], ["expire", 2, 1]):
        with pytest.raises(Rejected):
            apply(state, 7, command)
    assert state.snapshot() == before


def test_repeated_nack_does_not_return_next_attempt() -> None:
    nack = ["work", 2, [], [[2, 1, 0.0, 0, "", True]], 1, 3, [], 0]  # and takes the job again
    state = played(QueueState, [*QUEUE, nack, nack])
    assert state.members[2].jobs == {2: 2}
    assert state.answers["6"] == [[2]]


def test_repeated_commands_have_no_effect() -> None:
    for cls, commands in ((OrderedState, ORDERED[:3]), (OrderedState, ORDERED)):
        state = played(cls, commands)
        before = state.snapshot()
        apply(state, state.position + 1, commands[-1])
        assert state.snapshot() == before


def test_processed_entries_are_not_announced_again() -> None:
    commit = ["commit", 2, [[0, 2, 9]], []]
    state = played(OrderedState, [*ORDERED, commit, ORDERED[-1]])
    assert state.answers["5"] == [{0: (5, False)}]
    assert state.answers["7"] == [{}]


def test_late_join_does_not_take_name_back() -> None:
    joins = [["join", name, "w1", 10, since] for name, since in (("a4", 4), ("a1", 2))]
    with pytest.raises(Rejected):
        played(OrderedState, [*ORDERED[:2], *joins])
