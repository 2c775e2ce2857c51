"""The pure state machine: what it decides depends on the entries alone."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import example, given, settings

from zlog.objects import (
    ApplyFailed,
    Diverged,
    NewerRecord,
    UnknownRecord,
)
from zlog.objects import _decided as decided_module
from zlog.objects._decided import Decided, Decision
from zlog.objects._machine import Frozen, Machine
from zlog.objects._records import (
    decode_record,
    encode,
    encode_commit,
    encode_write,
    refusal,
)
from zlog.objects._sorted import SortedKeys, after_prefix
from zlog.objects._states import MapState, Replicated

from .test_objects import Account

KEYS = st.sampled_from(["a", "ab", "b", "ba", "c"])


TYPES: dict[str, type[Replicated]] = {"Account": Account}

OPS = st.one_of(
    st.tuples(st.just("map"), st.just("m"), st.tuples(KEYS, st.integers(0, 9))),
    st.tuples(st.just("map"), st.just("m"), st.tuples(KEYS)),
    st.tuples(st.just("set"), st.just("s"), st.tuples(KEYS, st.just(True))),
    st.tuples(st.just("counter"), st.just("c"), st.integers(-5, 5)),
    st.tuples(st.just("register"), st.just("r"), st.none() | st.integers(0, 9)),
    st.tuples(
        st.just("queue"),
        st.just("q"),
        st.just([])
        | st.lists(st.integers(), max_size=1).filter(
            lambda items: all(-(2**63) <= i < 2**63 for i in items)
        ),
    ),
    st.tuples(st.just("Account"), st.just("u"), st.integers(-3, 3)),
    st.tuples(st.just("queue"), st.just("m"), st.just([])),
    st.tuples(st.just("lock"), st.just("l"), st.just(("acquire", "me", 1.0))),
    st.tuples(st.just("lock"), st.just("l"), st.tuples(st.just("release"), st.integers(0, 9))),
    st.tuples(
        st.just("lock"),
        st.just("l"),
        st.tuples(st.just("expire"), st.integers(0, 9), st.integers(0, 9)),
    ),
)


@st.composite
def records(draw: st.DrawFn) -> list[bytes]:
    """A log of a space: writes and transactions, also with ids that come again."""
    found = []
    for position in range(draw(st.integers(1, 12))):
        if draw(st.booleans()):
            found.append(encode_write(draw(st.lists(OPS, min_size=1, max_size=3))))
        else:
            reads = draw(
                st.lists(st.tuples(st.just("m"), KEYS, st.integers(-1, position)), max_size=2)
            )
            ranges = draw(
                st.lists(
                    st.tuples(st.just("m"), KEYS, st.none() | KEYS, st.integers(0, 3)), max_size=1
                )
            )
            op = draw(OPS)
            name = draw(st.sampled_from(["x", "y", "z"]))
            snapshot = draw(st.integers(0, position))
            attempt = draw(st.integers(1, 3))
            found.append(encode_commit([op], name, attempt, snapshot, reads, ranges))
    return found


def played(machine: Machine, log: list[bytes], start: int) -> list[Any]:
    """Apply a log from a position on; returns what became of transactions."""
    outcomes = []
    for position in range(start, len(log)):
        outcome = machine.apply(position, decode_record(log[position]))
        outcomes.append(outcome and (*outcome[:3], str(outcome.error), *outcome[4:]))
    return outcomes


def state(machine: Machine) -> bytes:
    return b"".join(Frozen(machine.position, machine).chunks())


def copied(machine: Machine) -> Machine:
    copy = Machine(TYPES, machine.position)
    for chunk in Frozen(machine.position, machine).chunks():
        copy.load(chunk)
    return copy


def test_newest_results_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decided_module, "RESULTS_BYTES", 30)
    decided = Decided()
    assert decided.results() == ""
    results: list[Any] = ["too old", [1.0, None], True, {"not": {"JSON"}}, "the newest"]
    for i, result in enumerate(results):
        decided.add(f"{i}", Decision(1, i, "committed"))
        decided.keep_result(f"{i}", result)
    loaded = Decided.load(decided.results(), msgspec.Raw(encode(decided.rows())))
    for each in (decided, loaded, loaded.copy()):
        found = [each.again(f"{i}", 2) for i in range(len(results))]
        assert [outcome and outcome.results for outcome in found] == [
            (),
            ([1.0, None],),
            (True,),
            (),
            ("the newest",),
        ]
    loaded.keep_result("large", "v" * 100)
    assert loaded.results() == f'{{"large":"{"v" * 100}"}}'


@settings(max_examples=150, deadline=None)
@given(
    log=records(), cut=st.integers(0, 12), ranged=st.booleans(), kept=st.sampled_from([1, 2, 99])
)
def test_replicas_agree_from_any_start(log: list[bytes], cut: int, ranged: bool, kept: int) -> None:
    """One that began at a checkpoint, and one that has looked at ranges before, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decided_module, "DECIDED_MAX", kept)
        cut = min(cut, len(log))
        whole, first = Machine(TYPES, 0), Machine(TYPES, 0)
        outcomes = played(whole, log, 0)
        before = played(first, log[:cut], 0)
        first.position = cut
        second = copied(first)
        assert state(second) == state(first)
        held = second.objects.get("m")
        if ranged and isinstance(held, MapState):
            assert [*held.keys("", None)] == sorted(held.cells)
        assert before + played(second, log, cut) == outcomes
        assert state(second) == state(whole)
        held = second.objects.get("m")
        if isinstance(held, MapState):
            assert [*held.keys("", None)] == sorted(held.cells)
            assert [*held.keys("ab", "ba")] == [k for k in sorted(held.cells) if "ab" <= k < "ba"]


@given(
    before=st.dictionaries(KEYS, st.integers(0, 1), max_size=5),
    changes=st.lists(st.tuples(KEYS, st.booleans()), max_size=5),
    bounds=st.tuples(KEYS, st.none() | KEYS),
)
@example(before={"a": 0}, changes=[("a", True)], bounds=("a", None))  # by the very next entry
def test_range_read_is_valid_only_if_unchanged(
    before: dict[str, int], changes: list[tuple[str, bool]], bounds: tuple[str, str | None]
) -> None:
    machine = Machine({}, 0)
    for key in before:
        machine.apply(machine.position, decode_record(encode_write([("map", "m", (key, 0))])))
    snapshot = machine.position

    def read() -> list[tuple[str, Any]]:
        held = machine.objects.get("m")
        if not isinstance(held, MapState):
            return []
        return [(key, held.cells[key]) for key in held.keys(*bounds)]

    seen = read()
    for key, puts in changes:
        op = ("map", "m", (key, 0) if puts else (key,))
        machine.apply(machine.position, decode_record(encode_write([op])))
    holds = not machine.invalid([], [("m", *bounds, len(seen))], snapshot)
    assert holds == (read() == seen)


@given(st.lists(st.tuples(st.booleans(), st.text("abc", min_size=1, max_size=3)), max_size=60))
def test_sorted_keys_match_model(changes: list[tuple[bool, str]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("zlog.objects._sorted._LENGTH", 2)
        keys, expected = SortedKeys(["b"]), {"b"}
        for adds, key in changes:
            if adds and key not in expected:
                keys.add(key)
                expected.add(key)
            elif not adds and key in expected:
                keys.remove(key)
                expected.remove(key)
        for start in ("", "a", "abc", "c"):
            for end in (None, "", "b", "bc", "cc"):
                found = [k for k in sorted(expected) if k >= start and (end is None or k < end)]
                assert [*keys.between(start, end)] == found


@given(st.text(min_size=1), st.text())
def test_after_prefix_bounds_prefix_range(prefix: str, other: str) -> None:
    end = after_prefix(prefix)
    for text in (prefix, prefix + other, other):
        assert text.startswith(prefix) == (text >= prefix and (end is None or text < end))


def test_after_prefix_skips_surrogates() -> None:
    assert after_prefix("a\ud7ff") == "a\ue000"
    assert after_prefix("a\U0010ffff") == "b"
    assert after_prefix("\U0010ffff") is None


def apply(machine: Machine, data: bytes) -> Any:
    return machine.apply(machine.position, decode_record(data))


def test_newer_class_stops_machine() -> None:
    machine = Machine(TYPES, 7)
    apply(machine, encode_write([("Account", "u", 1, 1)]))
    with pytest.raises(NewerRecord, match="version 2"):
        apply(machine, encode_write([("Account", "u", 1, 2)]))
    with pytest.raises(NewerRecord, match="checkpoint"):
        Machine(TYPES, 0).load(encode(("u", "Account", 2, 0, 0)))


@pytest.mark.parametrize(
    "op",
    [
        ("map", "o", (1, 2)),
        ("map", "o", 5),
        ("counter", "o", "1"),
        ("queue", "o", [1, 2]),
        ("lock", "o", ["steal", 1]),
        ("Account", "o", "text"),
    ],
)
def test_exception_in_apply_stops_machine(op: Any) -> None:
    machine = Machine(TYPES, 7)
    with pytest.raises(ApplyFailed, match="'o' can't apply the entry at 7"):
        apply(machine, encode_write([op]))


def test_partly_rejected_transaction_stops_machine() -> None:
    machine = Machine(TYPES, 0)
    outcome = apply(
        machine, encode_commit([("Account", "u", -1), ("map", "m", ("a", 1))], "x", 1, 0)
    )
    assert outcome.code == "rejected"
    assert "m" not in machine.objects or not machine.objects["m"].cells  # type: ignore[attr-defined]
    with pytest.raises(ApplyFailed, match="part of the transaction"):
        apply(machine, encode_commit([("map", "m", ("a", 1)), ("Account", "u", -1)], "y", 1, 0))


def test_write_to_wrong_type_refuses_whole_record() -> None:
    machine = Machine(TYPES, 0)
    apply(machine, encode_write([("map", "m", ("a", 1))]))
    apply(machine, encode_write([("map", "m", ("b", 1)), ("queue", "m", [])]))
    assert [*machine.objects["m"].cells] == ["a"]  # type: ignore[attr-defined]


def test_states_of_different_class_versions_are_not_compared() -> None:
    class Later(Account):
        version = 2

        def snapshot(self) -> Any:
            return [self.balance]

    old, new = Machine(TYPES, 0), Machine({"Account": Later}, 0)
    for machine in (old, new):
        apply(machine, encode_write([("Account", "u", 5)]))
        apply(machine, encode((2, 1, "mark")))
    for machine, other in ((old, new), (new, old)):
        apply(machine, encode((3, 1, "mark", 2, [], 0, "", other.digests())))
    apply(new, encode((2, 1, "again")))
    with pytest.raises(Diverged, match="object 'u' had a different state"):
        apply(new, encode((3, 1, "again", 5, [], 0, "", dict.fromkeys(new.digests(), "else"))))


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", UnknownRecord),
        (b"\xc1", UnknownRecord),
        (encode({"a": 1}), UnknownRecord),
        (encode([0, 1]), UnknownRecord),
        (encode([0, 1, [["map", "m", ["a"], 1, 5]]]), UnknownRecord),
        (encode([0, 1, [], "more"]), UnknownRecord),
        (encode([0, 2, []]), NewerRecord),
        (encode([0, 2, {}, "more"]), NewerRecord),
        (encode([4, 1, []]), NewerRecord),
    ],
)
def test_invalid_records_are_refused(data: bytes, error: type[Exception]) -> None:
    with pytest.raises(msgspec.DecodeError) as caught:
        decode_record(data)
    assert isinstance(refusal(data, 3, caught.value), error)
