"""The checker of transactions on lists: known anomalies, and all small histories there are.

A history is written as groups, divided by bars, each of which ends before the next one begins. The
transactions of a group are divided by commas, and run at the same time. ``x+1`` appends 1 to x,
``x=12`` reads 1 and 2 there. Before the steps of a transaction stands ``!`` where it is refused,
``?`` where its outcome is unknown, and ``@a`` where a is its id.
"""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.history import ListTransaction, Result, TransactionHistory, check_transactions

RESULTS = {"!": Result.REFUSED, "?": Result.FAILED}


def play(text: str) -> TransactionHistory:
    """Make a history."""
    history = TransactionHistory()
    for group in text.split("|"):
        begun = []
        for name, said in enumerate(group.split(",")):
            words = said.split()
            result = RESULTS[words.pop(0)] if words[0] in RESULTS else Result.OK
            named = words.pop(0)[1:] if words[0].startswith("@") else None
            transaction = history.begin(f"process-{name}", id=named)
            for word in words:
                step(transaction, word)
            begun.append((transaction, result))
        for transaction, result in begun:
            history.end(transaction, result)
    return history


def step(transaction: ListTransaction, word: str) -> None:
    """Note one step."""
    key, sign, values = word[0], word[1], word[2:]
    if sign == "+":
        transaction.append(key, values)
    else:
        transaction.read(key, values)


BAD = {
    "G0": ("x+1 y+2, x+3 y+4 | x=13 y=42", "P22: G0"),
    "G1a": ("! x+1 | x=1", "P23: G1a"),
    "G1b": ("x+1 x+2, x=1 | x=12", "P23: G1b"),
    "G1c": ("x+1 y=2, y+2 x=1", "P22: G1c"),
    "G-single": ("x+1 y+2, x= y=2 | x=1", "P22: G-single:"),
    "lost update": ("x= x+1, x= x+2 | x=12", "P22: G-single:"),
    "G2, write skew": ("x= y+1, y= x+1 | x=1 y=1", "P22: G2:"),
    "a long fork": ("x+1, y+1, x=1 y=, x= y=1 | x=1 y=1", "P22: G2:"),
    "stale read": ("x+1 | x= | x=1", "P22: G-single-realtime"),
    "lost append": ("x+1 | x=", "P22: G-single-realtime"),
    "appends against real time": ("x+1 | x+2 | x=21", "P22: G0-realtime"),
    "read before it was appended": ("x=1 | x+1", "P22: G1c-realtime"),
    "read of an unknown one that read what is over": (
        "x+1 | ? x= y+1 | y=1 x=1",
        "P22: G-single-realtime",
    ),
    "doubled": ("x+1 | x=11", "P23: x holds 1 twice"),
    "not appended": ("x=1", "P23: x holds 1, which"),
    "orders that contradict each other": ("x+1, x+2, x=12, x=21", "P22: x was read in orders"),
    "own append missing": ("x+1 x= | x=1", "P22: x was read, and not"),
    "an id twice": ("? @a x+1 | @a x+2 | x=12", "P23: transaction a took effect twice"),
}


@pytest.mark.parametrize(("text", "said"), BAD.values(), ids=BAD)
def test_anomalies_are_reported(text: str, said: str) -> None:
    found = [str(each) for each in check_transactions(play(text))]
    assert any(each.startswith(said) for each in found), found


def test_violation_report_includes_evidence() -> None:
    (found,) = check_transactions(play("x= y+1, y= x+2 | x=2 y=1"))
    assert str(found).splitlines() == [
        "P22: G2: no order has #0 -rw on x-> #1 -rw on y-> #0",
        "    #0 [1..3] process-0: read x: nothing, append 1 to y",
        "    #1 [2..4] process-1: read y: nothing, append 2 to x",
    ]


def test_failure_after_repair_is_reported() -> None:
    history = play("? x+1")
    history.note_repaired()
    history.begin("client", id="a").append("x", 2)
    (found,) = check_transactions(history)
    assert str(found).splitlines() == [
        "P13: failed though all faults were over",
        "    #1 [4..inf] client as a: append 2 to x: pending",
    ]


def test_invalid_histories_are_refused() -> None:
    with pytest.raises(ValueError, match="'1' was appended to 'x' by two"):
        check_transactions(play("x+1 | x+1"))
    with pytest.raises(ValueError, match="None"):
        TransactionHistory().begin("client").append("x", None)


def explained(transactions: list[ListTransaction]) -> bool:
    """Whether some order of all committed ones, with some of the unknown, explains what was read.

    It tries all.
    """
    unknown = [each for each in transactions if each.result is Result.FAILED]
    committed = [each for each in transactions if each.result is Result.OK]
    for count in range(len(unknown) + 1):
        for also in itertools.combinations(unknown, count):
            ids = [each.id for each in (*committed, *also) if each.id and each.appends]
            if len(set(ids)) == len(ids) and any(
                explains(order) for order in itertools.permutations([*committed, *also])
            ):
                return True
    return False


def explains(order: tuple[ListTransaction, ...]) -> bool:
    """Whether an order agrees with real time, and with all that was read."""
    lists: dict[str, tuple[object, ...]] = {}
    latest = 0.0
    for transaction in order:
        if transaction.result is Result.OK and transaction.returned < latest:
            return False
        latest = max(latest, transaction.invoked)
        for key, value, found in transaction.steps:
            if value is not None:
                lists[key] = (*lists.get(key, ()), value)
            elif lists.get(key, ()) != found:
                return False
    return True


@st.composite
def histories(draw: st.DrawFn) -> TransactionHistory:
    """Few transactions on two lists; what they read is half by lot, half what is true."""
    history = TransactionHistory()
    values = iter("123456789abcdef")
    lists: dict[str, str] = {"x": "", "y": ""}
    begun: list[tuple[ListTransaction, Result]] = []
    for _ in range(draw(st.integers(1, 4))):
        transaction = history.begin("client", id=draw(st.sampled_from((None,) * 6 + ("a",))))
        result = draw(st.sampled_from((*(Result.OK,) * 3, Result.FAILED, Result.REFUSED)))
        now = dict(lists)
        for _ in range(draw(st.integers(1, 3))):
            key = draw(st.sampled_from("xy"))
            kind = draw(st.integers(0, 4))
            if kind < 2:
                now[key] += (value := next(values))
                transaction.append(key, value)
            elif kind < 4:
                transaction.read(key, now[key])
            else:
                shown = draw(st.permutations(now[key]))
                transaction.read(key, shown[: draw(st.integers(0, 3))])
        if result is Result.OK or (result is Result.FAILED and draw(st.booleans())):
            lists = now
        begun.append((transaction, result))
        if draw(st.booleans()):
            for each, ended in begun:
                history.end(each, ended)
            begun = []
    for each, ended in begun:
        history.end(each, ended)
    for key, value in lists.items():
        if draw(st.booleans()):
            transaction = history.begin("reader")
            transaction.read(key, value)
            history.end(transaction, Result.OK)
    return history


@settings(max_examples=400, deadline=None)
@given(histories())
def test_checker_agrees_with_brute_force(history: TransactionHistory) -> None:
    assert (check_transactions(history) == []) == explained(history.transactions)
