"""Deliveries: each entry is in the log once, however often it is delivered."""

from __future__ import annotations

import errno
from array import array
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import cast

import pytest

import zlog
from zlog import SequenceDiffers, SequenceSuperseded
from zlog._append.exactly_once import _writer_id
from zlog._append.producer_records import SequenceKey
from zlog._base.codes import Code
from zlog._native.new_entries import EntryColumn
from zlog.testing import Fate

from ..conformance import wire
from ..support.logs import data_of
from .appending_once import ROWS, deliver, entries_in
from .faulty import Died, FaultyStore, Refusing, dies_in
from .planted import remove

pytestmark = pytest.mark.usefixtures("small_rounds")


def limit(number: int) -> Fate:
    """What becomes of a call at a limit."""
    return Fate(effect=None, answer=(Code.LIMIT_REACHED, wire.frame(wire.u64(number))))


def test_repeated_sequence_is_appended_once_in_order(log: zlog.Log) -> None:
    assert log.append_once(iter(ROWS), producer="query", sequence=1) == len(ROWS)
    assert [item.data for item in log.read_range()] == ROWS  # type: ignore[union-attr]
    assert log.append_once(ROWS[::-1], producer="query", sequence=1) == 0
    assert log.append_once(ROWS, producer="query", sequence=1, part=1) == len(ROWS)
    assert log.append_once(ROWS, producer="query", sequence=2) == len(ROWS)
    assert log.append_once(ROWS, producer="other", sequence=1) == len(ROWS)
    assert log.tail() == 4 * len(ROWS)
    assert list(log.check()) == []


def test_columns_are_appended_once_in_rounds(log: zlog.Log) -> None:
    column = EntryColumn(array("i", range(21)), bytes(range(20)))
    entries = [b"first", *column, b"last"]
    given = cast("list[bytes]", [b"first", column, b"last"])
    assert log.append_once(entries[3:9], producer="copy", sequence=0) == 6
    assert log.append_once(given, producer="copy", sequence=0) == len(entries) - 6
    assert sorted(data_of(log.read_range())) == sorted(entries)


def test_equal_entries_are_all_appended(memory: zlog.Store) -> None:
    zlog.Log.create(memory, "orders", width=2)
    rows = [b"a", b"b", b"a", b"", b"a", b""]
    assert deliver(memory, rows) == 6
    assert deliver(memory, sorted(rows)) == 0
    assert Counter(entries_in(memory)) == Counter(rows)


def test_a_repetition_with_other_entries_is_refused(memory: zlog.Store) -> None:
    zlog.Log.create(memory, "orders", width=3)
    deliver(memory)
    with pytest.raises(
        SequenceDiffers, match=r"appended 2 entries that this attempt does not contain"
    ):
        deliver(memory, [b"0'", *ROWS[2:]])
    assert Counter(entries_in(memory)) == Counter([*ROWS, b"0'"])


def test_trimmed_entries_are_appended_again(memory: zlog.Store) -> None:
    """What is gone can't be told from what never came."""
    log = zlog.Log.create(memory, "orders", width=3)
    deliver(memory)
    log.trim_to(5)
    log.trim(9)
    assert deliver(memory) == 6
    assert Counter(entries_in(memory)) == Counter(ROWS)


def test_lost_entry_is_an_error(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders", width=3)
    deliver(memory)
    remove(log, next(iter(log.view.objects())))
    with pytest.raises(zlog.CorruptEntry, match="is lost"):
        deliver(memory)


def test_recreated_log_has_no_producers(memory: zlog.Store) -> None:
    old = zlog.Log.create(memory, "orders", width=2)
    deliver(memory)
    zlog.Log.remove(memory, "orders")
    zlog.Log.create(memory, "orders", width=2)
    with pytest.raises(zlog.LogNotFound):
        old.append_once(ROWS, producer="query", sequence=1)
    with pytest.raises(zlog.LogNotFound):
        old.complete_sequences("query", before=9)
    with pytest.raises(zlog.LogNotFound):
        old.producers()
    assert deliver(memory) == len(ROWS)


def test_a_source_can_be_forgotten(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders", width=2)
    for part in range(300):
        log.append_once([b"x"], producer="query", sequence=part // 2, part=part)
    log.complete_sequences("query", before=7)
    with pytest.raises(SequenceSuperseded):
        log.append_once([b"x"], producer="query", sequence=6)
    log.forget_producer("query")
    assert log.append_once([b"x"], producer="query", sequence=6) == 1


def test_recreated_producer_gets_new_append_ids(log: zlog.Log) -> None:
    """Else its appends would look like those of the one before, at other positions."""
    for _ in range(3):
        assert log.append_once(ROWS, producer="query", sequence=1) == len(ROWS)
        log.forget_producer("query")
    assert list(log.check()) == []


@pytest.mark.parametrize(
    ("method", "refusal", "what", "hint"),
    [
        (
            "delivery_begin",
            limit(1 << 20),
            "has recorded a million attempts",
            "under a new sequence number",
        ),
        (
            "delivery_begin",
            limit(1 << 16),
            "already stores 65,536 unfinished parts of this producer",
            "before=n",
        ),
        (
            "delivery_grant",
            Fate(effect=None, error=errno.ERANGE),
            "has no position left",
            "--rescue",
        ),
        ("delivery_grant", limit(4096), "stores at most 4,096 grants", "into more parts"),
        ("delivery_done", limit(1024), "already has 1,024 producers", "zlog producer rm"),
    ],
)
def test_each_limit_error_has_hint(
    memory: zlog.Store, method: str, refusal: Fate, what: str, hint: str
) -> None:
    zlog.Log.create(memory, "orders", width=2)
    log = zlog.Log.open(Refusing(memory, method, refusal=refusal), "orders")

    def use() -> None:
        log.append_once(ROWS, producer="query", sequence=1)
        log.complete_sequences("query", before=1)

    with pytest.raises(zlog.ZlogError, match=f"log 'orders' {what}") as caught:
        use()
    assert hint in caught.value.hint


def test_positions_refused_by_a_limit_are_filled_at_once(memory: zlog.Store) -> None:
    zlog.Log.create(memory, "orders", width=2)
    refusing = Refusing(memory, "delivery_grant", first=1, refusal=limit(4096))
    with pytest.raises(zlog.ZlogError, match="4,096 grants"):
        deliver(refusing)
    log = zlog.Log.open(memory, "orders", hole_timeout=None)
    kinds = [item.kind if isinstance(item, zlog.Gap) else None for item in log.read_range()]
    assert kinds == [*[None] * 7, zlog.GapKind.FILLED]


def test_partly_forgotten_producer_error_has_hint(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders", width=2)
    for part in range(300):
        log.append_once([b"x"], producer="query", sequence=0, part=part)
    dies = FaultyStore(memory, dies_in("delivery_done", 3))
    with pytest.raises(Died):
        zlog.Log.open(dies, "orders").forget_producer("query")
    (producer,) = log.producers()
    assert producer.sequence == 2**64 - 1
    with pytest.raises(SequenceSuperseded, match="'query' is not finished") as caught:
        log.append_once([b"x"], producer="query", sequence=9)
    assert "`forget_producer('query')`" in caught.value.hint
    assert "`zlog producer rm orders query`" in caught.value.hint
    log.forget_producer("query")
    assert log.append_once([b"x"], producer="query", sequence=9) == 1


def test_producers_are_listed(log: zlog.Log) -> None:
    """More than one page of them, with what the log keeps of each."""
    assert log.producers() == []
    before = datetime.now(timezone.utc)
    for number in range(300):
        log.complete_sequences(f"query-{number}", before=number)
    log.append_once(ROWS, producer="crm", sequence=3)
    log.append_once(ROWS, producer="crm", sequence=4, part=7)
    found = log.producers()
    assert [each.name for each in found] == sorted(["crm", *(f"query-{n}" for n in range(300))])
    crm = found[0]
    assert isinstance(crm, zlog.Producer)
    assert (crm.sequence, crm.parts) == (0, 2)
    assert before <= crm.created < crm.updated <= datetime.now(timezone.utc)
    log.complete_sequences("crm", before=4)
    again = log.producers()[0]
    assert (again.sequence, again.parts, again.created) == (4, 1, crm.created)
    assert again.updated > crm.updated
    log.forget_producer("crm")
    assert log.producers() == found[1:]


def test_invalid_deliveries_are_refused(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders", width=2)
    with pytest.raises(ValueError, match="is not a valid name for a producer"):
        log.append_once([], producer="a/b", sequence=0)
    with pytest.raises(ValueError, match="a sequence number must be"):
        log.append_once([], producer="a", sequence=-1)
    with pytest.raises(ValueError, match="a part number must be"):
        log.append_once([], producer="a", sequence=0, part=2**32)
    with pytest.raises(TypeError, match="a sequence number must be"):
        log.append_once([], producer="a", sequence="0")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="append_once takes a list of bytes objects"):
        log.append_once(b"abc", producer="a", sequence=0)  # type: ignore[arg-type]
    with pytest.raises(zlog.EntryTooLarge):
        log.append_once([bytes(2 << 20)], producer="a", sequence=0)
    assert log.append_once([], producer="a", sequence=0) == 0


def test_each_attempt_has_its_writer_id() -> None:
    key = SequenceKey("query", 1, 2)
    assert len(_writer_id(7, key, 1)) == 16
    others = [key._replace(producer="q"), key._replace(sequence=2), key._replace(part=1)]
    ids = {_writer_id(7, each, 1) for each in [key, *others]}
    assert len(ids | {_writer_id(8, key, 1), _writer_id(7, key, 2)}) == 6


def test_entries_may_share_one_buffer(memory: zlog.Store) -> None:
    def in_one_buffer() -> Iterator[memoryview]:
        buffer = bytearray(2)
        for row in ROWS:
            buffer[:] = row.rjust(2)
            yield memoryview(buffer)

    zlog.Log.create(memory, "orders", width=2)
    assert deliver(memory, in_one_buffer()) == len(ROWS)  # type: ignore[arg-type]
    assert entries_in(memory) == [row.rjust(2) for row in ROWS]
    assert deliver(memory, in_one_buffer()) == 0  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="an entry must be bytes, not str"):
        deliver(memory, ["text"], sequence=2)  # type: ignore[list-item]


def test_equal_integers_name_same_sequence_and_part(memory: zlog.Store) -> None:
    class Number(int):
        def __str__(self) -> str:
            return "a number"

    zlog.Log.create(memory, "orders", width=2)
    assert deliver(memory, sequence=1, part=0) == len(ROWS)
    assert deliver(memory, sequence=True, part=False) == 0
    assert deliver(memory, sequence=Number(1), part=Number(0)) == 0
