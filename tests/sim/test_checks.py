"""Each rule finds the smallest history that breaks it. The simulation has the good histories.

A history is written as steps. A step is what some process did and what came of it: ``append a 3``,
``read 3 a``, ``tail 4``, ``fill 2``; before it the process, as in ``slow: fill 2``, or else a
process called as the step is. An entry's tags stand behind it, as in ``append a#x#y 3``. A reader
by tags is told of an entry, ``told 3 a#x x``, and passes what lacks its tag: ``pass 0-3 x``. What
takes longer is written as ``begin`` and ``end``, and what never returned as ``begin`` alone.
Appends of a process that has taken the log are a writer's.
"""

from __future__ import annotations

import pytest

from tests.history import Action, History, Operation, Result, Wanted, check
from zlog.entry import GapKind

GAPS = {kind.value: kind for kind in GapKind}
RESULTS = {result.value: result for result in Result}
_OF_WRITERS = (Action.TAKE, Action.APPEND, Action.RELEASE)


def play(text: str) -> History:
    """Make the history of some steps, divided by semicolons."""
    history = History()
    begun: dict[str, Operation] = {}
    writers: set[str] = set()
    for step in text.split(";"):
        process, _, said = step.strip().rpartition(": ")
        word, *words = said.split()
        if word == "repaired":
            history.note_repaired()
        elif word in ("told", "pass"):
            select(history, process or word, word, *words)
        elif word == "skip":
            history.skips.append("after position 3 came 5")
        elif word == "log":
            log_is(history, words[0])
        elif word == "attempt":
            attempt(history, *words)
        elif word == "begin":
            begun[process] = invoke(history, process, *words)
            belong(begun[process], writers)
        elif word == "end":
            end(history, begun.pop(process), words)
        else:
            operation = invoke(history, process or word, word, words[0])
            belong(operation, writers)
            end(history, operation, words[1:])
    return history


def belong(operation: Operation, writers: set[str]) -> None:
    """Note whose it is, if it is an exclusive writer's."""
    if operation.action is Action.TAKE:
        writers.add(operation.process)
    if operation.action in _OF_WRITERS and operation.process in writers:
        operation.writer = operation.process


def invoke(history: History, process: str, word: str, what: str) -> Operation:
    """Begin to append an entry, or to do something at a position."""
    action = Action(word)
    if action is Action.APPEND:
        data, *tags = what.split("#")
        return history.invoke(process, action, entry=data.encode(), tags=tags)
    if action is Action.COMPACT:
        return history.invoke(process, action)
    if action is Action.APPEND_ONCE:
        return history.invoke(process, action, entry=what.encode(), part=("job", 1, 0))
    return history.invoke(process, action, position=int(what))


def end(history: History, operation: Operation, words: list[str]) -> None:
    """Say what came of it.

    Of an append its position, and the epochs in which it was begun and ended; of a read an entry or
    a kind of gap; and of all an outcome other than success.
    """
    result = Result.OK
    if words and words[0] in RESULTS:
        result = RESULTS[words[0]]
    elif operation.action is Action.APPEND:
        first, last = words[1].split("-") if len(words) > 1 else (1, 1)
        operation.position, operation.epochs = int(words[0]), (int(first), int(last))
    elif operation.action is Action.READ:
        operation.found = GAPS.get(words[0])
        if operation.found is None:
            data, *tags = words[0].split("#")
            operation.tell(data.encode(), tags)
    history.returns([operation], result)


def select(history: History, process: str, word: str, where: str, *words: str) -> None:
    """Have a reader by tags be told of an entry, or pass some positions."""
    start, _, stop = where.partition("-")
    action = Action.READ if word == "told" else Action.SKIP
    operation = history.invoke(process, action, position=int(start))
    operation.wanted = Wanted((words[-1],), every=False)
    operation.end = int(stop) if stop else None
    end(history, operation, [*words[:-1]])


def attempt(history: History, entries: str, result: str = "ok") -> None:
    """One at an exactly-once append of entries of one letter each."""
    began = history.event()
    operations = [
        history.invoke(
            "job", Action.APPEND_ONCE, entry=each.encode(), part=("job", 1, 0), invoked=began
        )
        for each in entries
    ]
    if result != "pending":
        history.returns(operations, RESULTS[result])


def log_is(history: History, entries: str) -> None:
    """All that stands in the log; a dot is a position that was filled."""
    end(history, invoke(history, "tail", "tail", str(len(entries))), [])
    for position, each in enumerate(entries):
        found = "filled" if each == "." else each
        end(history, invoke(history, "read", "read", str(position)), [found])


BROKEN = [
    ("P1", "append a 0; read 0 unwritten"),
    ("P6", "append a 0; append: read 0 lost"),
    ("P1 P3", "append a 0; read 0 filled"),
    ("P2 P3 P4", "append a 0; append b 0"),
    ("P2", "append a 0; read 1 a"),
    ("P11", "append a failed; read 0 a; read 1 a"),
    ("P11", "append a refused; read 0 a"),
    ("P3", "append a failed; read 0 a; read 0 filled"),
    ("P4", "append a 1; append b 0"),
    ("P4", "append a failed; read 1 a; append b 0"),
    ("P5", "tail 2; append a 1"),
    ("P5", "append a 3; tail 3"),
    ("P5", "tail 3; tail 2"),
    ("P7", "append a failed; read 0 a; read 0 unwritten"),
    ("P7", "skip"),
    ("P8", "slow: begin append old; append new 3 2-2; slow: end 5 1-1"),
    ("P9", "append a 0; fill 0"),
    ("P9", "fill 0 written; read 0 filled"),
    ("P9", "fill 0; read 0 unwritten"),
    ("P10", "trim_to 1; read 1 trimmed"),
    ("P10", "append a 0; trim_to 1; read 0 a"),
    ("P10", "append a 0; slow: begin trim_to 1; read 0 trimmed; read 0 a"),
    ("P10", "append a 0; slow: begin trim 0; read 0 trimmed; another: read 0 a"),
    ("P12", "read 0 noise"),
    ("P12", "read 0 a; append a 0"),
    ("P13", "repaired; append a failed"),
    ("P15", "attempt a; trim 0; attempt a; read 1 unwritten; read 1 a"),
    ("P15", "attempt ab failed; attempt ab; log abb"),
    ("P15", "attempt ab failed; log aa"),
    ("P15", "attempt abc; log a.c"),
    ("P15", "attempt a; read 0 unwritten; read 0 a"),
    ("P15", "attempt abcd; log .acbd"),
    ("P4", "append z 1; attempt a; read 0 a"),
    ("P5", "attempt ab; tail 1; read 0 a; read 1 b"),
    ("P13", "repaired; attempt a failed"),
    ("P17 P18", "ann: take 0; ann: begin append a; ann: begin append b; ann: end 0; read 1 a"),
    ("P17", "ann: take 0; ann: begin append a; more: take 0; ann: append b 0"),
    ("P18", "ann: take 0; ann: append a 1"),
    ("P18", "ann: take 0; ann: append a 0; ann: append b 2"),
    ("P18", "ann: take 0; ann: append x failed; ann: append b 1; read 0 filled"),
    ("P18", "ann: take 0; ann: append x failed; ann: append b 1; read 0 unwritten"),
    ("P18", "slow: begin append b; ann: take 0; ann: append x failed; slow: end 0; read 1 x"),
    ("P5 P19", "ann: take 0; ann: append a 0; ann: append b 1; bob: take 1"),
    ("P19", "ann: take 0; ann: append x fenced; ann: append a 0"),
    ("P19", "ann: take 0; ann: release 0; ann: append a 0"),
    ("P19", "ann: take 0; append a 0"),
    ("P19", "ann: take 0; ann: append a 0; ann: begin append b; bob: take 1; ann: end 1"),
    ("P5", "ann: take 0; ann: append a 0; bob: take 0"),
    ("P5", "tail 2; ann: take 1"),
    ("P20", "append a#x 0; told 0 a#x y"),
    ("P20", "append a#x 0; append b 1; pass 0-2 x"),
    ("P20", "append a#x failed; pass 0-1 x; read 0 a#x; trim 0"),
    ("P10", "append a#x 0; append b#x 1; read 0 trimmed; compact on"),
    ("P21", "compact on; append a#x 0; append b#y 1; read 0 trimmed"),
    ("P21", "compact on; append a 0; append b#x 1; read 0 trimmed"),
    ("P21", "compact on; append a#x#y 0; append b#x 1; read 0 trimmed"),
    ("P21", "compact on; append a#x 0; read 0 trimmed; append b#x 1"),
    ("P20", "compact on; append a#x 0; pass 0-1 x; append b#x 1"),
]


@pytest.mark.parametrize(("properties", "text"), BROKEN)
def test_check_reports_violation(properties: str, text: str) -> None:
    found = check(play(text))
    assert {violation.property for violation in found} == {*properties.split()}
    for violation in found:
        assert str(violation).startswith(f"{violation.property}: ")


def test_entries_of_appends_must_be_distinct() -> None:
    with pytest.raises(ValueError, match="appended twice"):
        check(play("append a 0; append a 1"))


def test_entries_of_attempt_must_be_distinct() -> None:
    with pytest.raises(ValueError, match="has an entry twice"):
        check(play("attempt aa"))
