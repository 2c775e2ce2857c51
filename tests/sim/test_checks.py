"""Each rule finds the smallest history that breaks it, and nothing wrong with a good one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from zlog.entry import GapKind
from zlog.testing import Action, History, Operation, Result, check


def append(
    history: History, entry: bytes, position: int | None, epochs: tuple[int, int] = (1, 1)
) -> Operation:
    operation = history.invoke("writer", Action.APPEND, entry=entry)
    if position is None:
        history.returns([operation], Result.FAILED)
    else:
        operation.position, operation.epochs = position, epochs
        history.returns([operation], Result.OK)
    return operation


def read(
    history: History,
    position: int,
    entry: bytes | None = None,
    gap: GapKind | None = None,
    process: str = "reader",
) -> Operation:
    operation = history.invoke(process, Action.READ, position=position)
    operation.entry, operation.found = entry, gap
    history.returns([operation], Result.OK)
    return operation


def do(history: History, action: Action, position: int, result: Result = Result.OK) -> Operation:
    operation = history.invoke("somebody", action, position=position)
    history.returns([operation], result)
    return operation


def good(h: History) -> None:
    """A bit of everything."""
    early = h.invoke("reader", Action.READ, position=0)
    early.found = GapKind.UNWRITTEN
    append(h, b"a", 0)
    h.returns([early], Result.OK)
    append(h, b"lost", None)
    late = append(h, b"late", None)
    do(h, Action.TAIL, 3)
    do(h, Action.FILL, 1)
    do(h, Action.FILL, 0, Result.WRITTEN)
    read(h, 0, b"a", process="writer")
    read(h, 1, gap=GapKind.FILLED)
    read(h, 2, late.entry)
    append(h, b"b", 3, (1, 2))
    append(h, b"c", 4, (2, 2))
    do(h, Action.TRIM, 3)
    read(h, 3, gap=GapKind.TRIMMED)
    do(h, Action.TRIM_TO, 2)
    read(h, 0, gap=GapKind.TRIMMED)
    do(h, Action.FILL, 3)
    do(h, Action.TAIL, 5)


def vanished(h: History) -> None:
    append(h, b"a", 0)
    read(h, 0, gap=GapKind.UNWRITTEN)


def vanished_to_its_writer(h: History) -> None:
    append(h, b"a", 0)
    read(h, 0, gap=GapKind.LOST, process="writer")


def filled_over(h: History) -> None:
    append(h, b"a", 0)
    read(h, 0, gap=GapKind.FILLED)


def twice_there(h: History) -> None:
    append(h, b"a", 0)
    append(h, b"b", 0)


def acknowledged_twice(h: History) -> None:
    append(h, b"a", 0)
    read(h, 1, b"a")


def timed_out_twice(h: History) -> None:
    append(h, b"a", None)
    read(h, 0, b"a")
    read(h, 1, b"a")


def refused_and_there(h: History) -> None:
    h.returns([h.invoke("writer", Action.APPEND, entry=b"a")], Result.REFUSED)
    read(h, 0, b"a")


def two_truths(h: History) -> None:
    append(h, b"a", None)
    read(h, 0, b"a")
    read(h, 0, gap=GapKind.FILLED)


def behind_its_time(h: History) -> None:
    append(h, b"a", 1)
    append(h, b"b", 0)


def behind_one_that_timed_out(h: History) -> None:
    append(h, b"a", None)
    read(h, 1, b"a")
    append(h, b"b", 0)


def below_a_tail(h: History) -> None:
    do(h, Action.TAIL, 2)
    append(h, b"a", 1)


def tail_too_low(h: History) -> None:
    append(h, b"a", 3)
    do(h, Action.TAIL, 3)


def tail_back(h: History) -> None:
    do(h, Action.TAIL, 3)
    do(h, Action.TAIL, 2)


def read_and_gone(h: History) -> None:
    append(h, b"a", None)
    read(h, 0, b"a")
    read(h, 0, gap=GapKind.UNWRITTEN)


def passed_over(h: History) -> None:
    h.skips.append("after position 3 came 5")


def dead_epoch(h: History) -> None:
    old = h.invoke("slow", Action.APPEND, entry=b"old")
    append(h, b"new", 3, (2, 2))
    old.position, old.epochs = 5, (1, 1)
    h.returns([old], Result.OK)


def fill_over_data(h: History) -> None:
    append(h, b"a", 0)
    do(h, Action.FILL, 0)


def fill_denied_and_filled(h: History) -> None:
    do(h, Action.FILL, 0, Result.WRITTEN)
    read(h, 0, gap=GapKind.FILLED)


def fill_undone(h: History) -> None:
    do(h, Action.FILL, 0)
    read(h, 0, gap=GapKind.UNWRITTEN)


def trimmed_unasked(h: History) -> None:
    do(h, Action.TRIM_TO, 1)
    read(h, 1, gap=GapKind.TRIMMED)


def untrimmed(h: History) -> None:
    append(h, b"a", 0)
    do(h, Action.TRIM_TO, 1)
    read(h, 0, b"a")


def untrimmed_for_a_reader(h: History) -> None:
    append(h, b"a", 0)
    h.invoke("slow", Action.TRIM_TO, position=1)
    read(h, 0, gap=GapKind.TRIMMED)
    read(h, 0, b"a")


def untrimmed_single(h: History) -> None:
    append(h, b"a", 0)
    h.invoke("slow", Action.TRIM, position=0)
    read(h, 0, gap=GapKind.TRIMMED)
    read(h, 0, b"a", process="another")


def trim_under_way(h: History) -> None:
    """Some have heard of it, and others have not."""
    append(h, b"a", 0)
    h.invoke("slow", Action.TRIM_TO, position=1)
    read(h, 0, gap=GapKind.TRIMMED)
    read(h, 0, b"a", process="another")


def never_appended(h: History) -> None:
    read(h, 0, b"noise")


def from_the_future(h: History) -> None:
    read(h, 0, b"a")
    append(h, b"a", 0)


def attempt(
    history: History, entries: bytes, result: Result = Result.OK, process: str = "deliverer"
) -> None:
    """One at a delivery of entries of one letter each."""
    began = history.event()
    operations = [
        history.invoke(
            process, Action.DELIVER, entry=b"%c" % each, delivery=("job", 1, 0), invoked=began
        )
        for each in entries
    ]
    if result is not Result.PENDING:
        history.returns(operations, result)


def log_is(history: History, entries: str) -> None:
    """All that stands in the log; a blank is a position that was filled."""
    do(history, Action.TAIL, len(entries))
    for position, each in enumerate(entries):
        if each == " ":
            read(history, position, gap=GapKind.FILLED)
        else:
            read(history, position, each.encode())


def delivered(h: History) -> None:
    """In several attempts, of which some were given up, and one was overtaken."""
    attempt(h, b"abcd", Result.FAILED)
    attempt(h, b"abcd", Result.SUPERSEDED)
    attempt(h, b"abcd", Result.PENDING)
    attempt(h, b"abcd")
    attempt(h, b"abcd")
    log_is(h, "a c bd")


def delivered_in_any_order(h: History) -> None:
    attempt(h, b"abc", Result.FAILED)
    attempt(h, b"cba")
    log_is(h, "bac")


def delivered_and_trimmed(h: History) -> None:
    """What is gone may come again."""
    attempt(h, b"ab", Result.FAILED)
    log_is(h, "ab")
    do(h, Action.TRIM, 0)
    attempt(h, b"ab")
    read(h, 2, b"a")


def delivered_again_elsewhere(h: History) -> None:
    """While it comes again, it is not there yet; who is found there later is not who came first."""
    attempt(h, b"a")
    read(h, 0, b"a")
    do(h, Action.TRIM, 0)
    again = h.invoke("deliverer", Action.DELIVER, entry=b"a", delivery=("job", 1, 0))
    read(h, 1, gap=GapKind.UNWRITTEN)
    h.returns([again], Result.OK)
    read(h, 1, b"a")


def delivered_again_and_gone(h: History) -> None:
    attempt(h, b"a")
    do(h, Action.TRIM, 0)
    attempt(h, b"a")
    read(h, 1, gap=GapKind.UNWRITTEN)
    read(h, 1, b"a")


def delivered_twice(h: History) -> None:
    attempt(h, b"ab", Result.FAILED)
    attempt(h, b"ab")
    log_is(h, "abb")


def half_delivered_twice(h: History) -> None:
    attempt(h, b"ab", Result.FAILED)
    log_is(h, "aa")


def not_delivered(h: History) -> None:
    attempt(h, b"abc")
    log_is(h, "a c")


def not_delivered_yet(h: History) -> None:
    attempt(h, b"a")
    read(h, 0, gap=GapKind.UNWRITTEN)
    read(h, 0, b"a")


def delivered_in_disorder(h: History) -> None:
    attempt(h, b"abcd")
    log_is(h, " acbd")


def delivered_too_low(h: History) -> None:
    append(h, b"z", 1)
    attempt(h, b"a")
    read(h, 0, b"a")


def delivered_below_a_tail(h: History) -> None:
    attempt(h, b"ab")
    do(h, Action.TAIL, 1)
    read(h, 0, b"a")
    read(h, 1, b"b")


def delivery_stuck(h: History) -> None:
    h.heal()
    attempt(h, b"a", Result.FAILED)


def stuck(h: History) -> None:
    h.heal()
    append(h, b"a", None)


@pytest.mark.parametrize(
    ("broken", "properties"),
    [
        (good, set()),
        (vanished, {"P1"}),
        (vanished_to_its_writer, {"P6"}),
        (filled_over, {"P1", "P3"}),
        (twice_there, {"P2", "P3", "P4"}),
        (acknowledged_twice, {"P2"}),
        (timed_out_twice, {"P11"}),
        (refused_and_there, {"P11"}),
        (two_truths, {"P3"}),
        (behind_its_time, {"P4"}),
        (behind_one_that_timed_out, {"P4"}),
        (below_a_tail, {"P5"}),
        (tail_too_low, {"P5"}),
        (tail_back, {"P5"}),
        (read_and_gone, {"P7"}),
        (passed_over, {"P7"}),
        (dead_epoch, {"P8"}),
        (fill_over_data, {"P9"}),
        (fill_denied_and_filled, {"P9"}),
        (fill_undone, {"P9"}),
        (trimmed_unasked, {"P10"}),
        (untrimmed, {"P10"}),
        (untrimmed_for_a_reader, {"P10"}),
        (untrimmed_single, {"P10"}),
        (trim_under_way, set()),
        (never_appended, {"P12"}),
        (from_the_future, {"P12"}),
        (stuck, {"P13"}),
        (delivered, set()),
        (delivered_in_any_order, set()),
        (delivered_and_trimmed, set()),
        (delivered_again_elsewhere, set()),
        (delivered_again_and_gone, {"P15"}),
        (delivered_twice, {"P15"}),
        (half_delivered_twice, {"P15"}),
        (not_delivered, {"P15"}),
        (not_delivered_yet, {"P15"}),
        (delivered_in_disorder, {"P15"}),
        (delivered_too_low, {"P4"}),
        (delivered_below_a_tail, {"P5"}),
        (delivery_stuck, {"P13"}),
    ],
)
def test_a_rule_finds_what_breaks_it(
    broken: Callable[[History], None], properties: set[str]
) -> None:
    history = History()
    broken(history)
    found = check(history)
    assert {violation.property for violation in found} == properties
    for violation in found:
        assert str(violation).startswith(f"{violation.property}: ")


def test_entries_must_tell_appends_apart() -> None:
    history = History()
    append(history, b"a", 0)
    append(history, b"a", 1)
    with pytest.raises(ValueError, match="appended twice"):
        check(history)


def test_entries_must_tell_those_of_a_delivery_apart() -> None:
    history = History()
    attempt(history, b"aa")
    with pytest.raises(ValueError, match="has an entry twice"):
        check(history)
