"""Entries with tags: every way in and out, their limits, and what meets them on the way."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from typing import Any

import pytest

import zlog
from zlog import aio
from zlog._base.codes import TAG_NAMES_BYTES_MAX, Code
from zlog._base.io import Reply
from zlog._io import BlockingIo
from zlog._native import messages
from zlog._native.new_entries import Tagged, tagged, tags_bytes
from zlog._native.replies import crc32c
from zlog._native.writes import encode_write
from zlog._transfer.export_file import MAGIC, ExportReader

from ..conformance.wire import frame, u64
from ..support.threads import at_once
from .faulty import Died, FaultyStore, dies_in, loses_first
from .transfers import exported, mirrored

FULL = [tuple(f"{entry}.{tag}".ljust(128, "x") for tag in range(64)) for entry in range(300)]
"""As many tags as entries may have, as long as they may be, for more than one write of them."""


@pytest.fixture
def store(memory: zlog.Store) -> zlog.Store:
    return memory


@pytest.fixture
def log(store: zlog.Store) -> zlog.Log:
    return zlog.Log.create(store, "orders", width=2, stripe_unit=4)


def tags_of(log: zlog.Log, start: int = 0) -> list[tuple[bytes, set[str]]]:
    items = log.read_range(start, log.tail())
    return [(item.data, set(item.tags)) for item in items if isinstance(item, zlog.Entry)]


def test_all_append_methods_store_tags(log: zlog.Log) -> None:
    log.append(b"alone", tags=["a", "b", "a"])
    log.append(b"with a budget", tags={"ü"}, timeout=9)
    log.append_many([b"both", b"of them"], tags=("a",))
    log.append_many([b"own", b"none", bytearray(b"others")], tags_each=[["a"], (), iter("bc")])
    (position,) = log.reserve()
    for _ in range(2):  # it finds that it is there
        log.write(position, b"reserved", tags=("z", "a"))
        log.write(position, b"reserved", tags=("a", "z"))
    for other in ((), ("a",), ("a", "z", "b")):
        with pytest.raises(zlog.AlreadyWritten):
            log.write(position, b"reserved", tags=other)
    log.append_once(iter([b"delivered"]), producer="crm", sequence=0, tags=["a"])
    with log.writer() as writer:
        writer.append(b"w1", tags=["a"])
        writer.append_many([b"w2", b"w3"], tags_each=[["b"], ["c"]])
        futures = [writer.submit(b"w4", tags=["d"]), writer.submit_many([b"w5"], tags=["e"])]
        assert [each.result() for each in futures]
        writer.release()
    expected = [
        (b"alone", {"a", "b"}),
        (b"with a budget", {"ü"}),
        (b"both", {"a"}),
        (b"of them", {"a"}),
        (b"own", {"a"}),
        (b"none", set()),
        (b"others", {"b", "c"}),
        (b"reserved", {"a", "z"}),
        (b"delivered", {"a"}),
        *((b"w%d" % i, {tag}) for i, tag in enumerate("abcde", 1)),
    ]
    assert tags_of(log) == expected
    columns = [tags for each in log.read_columns(with_tags=True) for tags in each.tags or ()]
    assert [*map(set, columns)] == [tags for _, tags in expected]
    assert {each.tags for each in log.read_columns()} == {None}
    assert set(log.read(0).tags) == {"a", "b"}
    assert log.read(0) == log.read(0)._replace(tags=("b", "a"))
    assert log.read(0) != log.read(0)._replace(tags=())


@pytest.mark.parametrize(
    ("tags", "error", "told"),
    [
        ("orders", TypeError, r"write \('orders',\)"),
        ("", TypeError, "not a string"),
        (b"orders", TypeError, "not a string"),
        (7, TypeError, "a collection of strings"),
        (["a", 7], TypeError, "a string, not 7"),
        ((["a"],), TypeError, "a string, not"),
        ([""], zlog.InvalidTag, "0 bytes"),
        (["é" * 65], zlog.InvalidTag, "130 bytes in UTF-8"),
        (["\ud800"], zlog.InvalidTag, "unpaired surrogate"),
        ([str(i) for i in range(65)], zlog.InvalidTag, "at most 64"),
    ],
)
def test_invalid_tag_is_refused_before_sending(
    store: zlog.Store, log: zlog.Log, tags: Any, error: type[Exception], told: str
) -> None:
    tail = log.tail()
    calls: list[Callable[[], object]] = [
        lambda: log.append(b"x", tags=tags),
        lambda: log.append_many([b"x", b"y"], tags=tags),
        lambda: log.append_many([b"x", b"y"], tags_each=[["fine"], tags]),
        lambda: log.write(tail, b"x", tags=tags),
        lambda: log.append_once([b"x"], producer="crm", sequence=0, tags=tags),
        lambda: log.append_once([b"x"], producer="crm", sequence=0, tags_each=[tags]),
    ]
    for call in calls:
        with pytest.raises(error, match=told):
            call()

    async def run() -> None:
        async with aio.Log.open(store, "orders") as opened:
            await opened.append(b"x", tags=tags)

    with pytest.raises(error, match=told):
        asyncio.run(run())
    assert log.tail() == tail


def test_tags_each_must_match_entry_count(log: zlog.Log) -> None:
    with pytest.raises(ValueError, match="1 items for 2 entries"):
        log.append_many([b"x", b"y"], tags_each=[["a"]])
    with pytest.raises(ValueError, match="either tags"):
        log.append_many([b"x"], tags=["a"], tags_each=[["b"]])
    with pytest.raises(TypeError, match="not a string"):
        log.append_many([b"x"], tags_each="a")
    with pytest.raises(ValueError, match="zip"):
        log.append_once([b"x", b"y"], producer="crm", sequence=0, tags_each=[["a"]])


def test_rounds_are_split_by_tag_limit(store: zlog.Store, log: zlog.Log) -> None:
    """All entries of a round may go to one object: its stripe unit is larger than the round."""
    log.reconfigure(width=1, stripe_unit=4096)
    assert tags_bytes([Tagged(b"", tags) for tags in FULL]) > 2 * TAG_NAMES_BYTES_MAX
    start = log.tail()
    entries = [b"%d" % i for i in range(len(FULL))]
    log.append_many(entries, tags_each=FULL)
    log.append_once(entries, producer="crm", sequence=0, tags_each=FULL)
    with log.writer() as writer:
        writer.append_many(entries, tags_each=FULL)
        for future in [writer.submit(b"s", tags=tags) for tags in FULL]:
            future.result()
        writer.release()
    at_once(lambda i: log.append(b"t", tags=FULL[i]), len(FULL))

    async def run() -> None:
        async with aio.Log.open(store, "orders") as opened:
            await asyncio.gather(*(opened.append(b"a", tags=tags) for tags in FULL))
            writer = await opened.writer()
            await asyncio.gather(*(writer.append(b"w", tags=tags) for tags in FULL))
            await asyncio.gather(*[await writer.submit(b"s", tags=tags) for tags in FULL])
            await writer.release()

    asyncio.run(run())
    found = tags_of(log, start)
    assert len(found) == 8 * len(FULL)
    assert sorted(map(sorted, (tags for _, tags in found))) == sorted(map(sorted, 8 * FULL))
    mirrored(log, store, "copy")
    assert tags_of(zlog.Log.open(store, "copy"), start) == found


def test_resent_round_matches_only_with_same_tags(log: zlog.Log) -> None:
    losing = FaultyStore(log.store, loses_first("write"))
    with zlog.Log.open(losing, "orders") as opened:
        with pytest.raises(zlog.StoreTimeout):
            opened.append(b"x", tags=["a"], timeout=0.3)
        writer, number = opened._client.appender.writer, opened._client.appender._number - 1
    head = (log.view.epoch, 0, writer, log.view.live_stripe.striping.packed, [0], [number])
    name = log.view.object_of(0).name
    for tags, expected in (({"a"}, Code.OK), ({"b"}, Code.READ_ONLY), (set(), Code.READ_ONLY)):
        (entry,) = tagged([b"x"], tags)
        assert log.store.execute(name, "write", encode_write(*head, [entry]))[0] == expected


@pytest.mark.parametrize("tags", [("a",), ("b",), ()])
def test_append_comparison_includes_tags(store: zlog.Store, tags: tuple[str, ...]) -> None:
    """Data that is compressed once and plain the next time is compared by the client."""
    entry = b"compressed the first time " * 60
    with zlog.Log.create(store, "log", width=1) as log:
        writer, number = log._client.appender.writer, log._client.appender._number
        head = (log.view.epoch, 0, writer, log.view.live_stripe.striping.packed)
        sent = tagged([entry], tags)
        request = encode_write(*head, [0], [number], sent, "zstd")
        assert store.execute(log.view.object_of(0).name, "write", request)[0] == Code.OK
        assert log.append(entry, tags=("a",)) == (0 if tags == ("a",) else 1)


def test_append_once_matches_data_and_tags(store: zlog.Store, log: zlog.Log) -> None:
    lots = [["a"], ["b"], [], ["a", "b"]]
    opened = zlog.Log.open(FaultyStore(store, dies_in("write", 2)), "orders")
    opened.append(b"before")
    with pytest.raises(Died):
        opened.append_once([b"x"] * 4, producer="crm", sequence=1, tags_each=lots)
    log.append_once([b"x"] * 4, producer="crm", sequence=1, tags_each=[each[::-1] for each in lots])
    found = [tags for data, tags in tags_of(log) if data == b"x"]
    assert sorted(map(sorted, found)) == sorted(map(sorted, lots))
    with pytest.raises(zlog.SequenceDiffers):
        log.append_once([b"x"] * 4, producer="crm", sequence=1, tags=["a"])


def test_damaged_export_never_yields_wrong_tags(log: zlog.Log) -> None:
    log.append_many([b"1", b"2"], tags_each=[["a", "b"], ["b"]])
    export = exported(log)
    whole = [*ExportReader(io.BytesIO(export)).pieces()]
    for at in range(len(export)):
        damaged = bytearray(export)
        damaged[at] ^= 1
        with pytest.raises(zlog.ExportDamaged):
            assert [*ExportReader(io.BytesIO(damaged)).pieces()] == whole
    kind = export.index(b"\x07", len(MAGIC))
    head, length, rest = export[: kind + 1], export[kind + 1 : kind + 5], export[kind + 9 :]
    body = rest[: int.from_bytes(length, "little")]
    for wrong in (b"\2\0\0\0\1b", b"\1\0\0\0\1a", b"\2\0\0\0\0\1b", b"\xff\xff\xff\xff\1b"):
        other = body.replace(b"\2\0\0\0\1a", wrong)
        assert other != body
        crc = crc32c(b"\x07" + len(other).to_bytes(4, "little") + other)
        sizes = len(other).to_bytes(4, "little") + crc.to_bytes(4, "little")
        with pytest.raises(zlog.ExportDamaged):
            assert [*ExportReader(io.BytesIO(head + sizes + other)).pieces()]


def test_wrong_tag_index_is_found_and_rebuilt(
    store: zlog.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zlog.Log.create(store, "log", width=2, stripe_unit=64) as log:
        for _ in range(5):
            log.append_many(
                [b"x"] * 1_000,
                tags_each=[[f"t{i % 7}", *map(str, range(20))] for i in range(1_000)],
            )
        assert list(log.check()) == []
        name = log.view.object_of(0).name
        request = messages.tags_check(log.view.epoch, 0, log.tail())
        told = messages.tags_check_reply(store.execute(name, "tags_check", request)[1])
        assert (told.tags > 0, told.wrong) == (True, [])
        execute = BlockingIo.execute
        rebuilt = []

        async def wrong(self: BlockingIo, calls: Any, deadline: Any) -> Any:
            replies = [*await execute(self, calls, deadline)]
            for i, call in enumerate(calls):
                if call.method == "tags_rebuild":
                    rebuilt.append(call.object)
                if call.method == "tags_check" and call.object == name and not rebuilt:
                    fields = u64(log.tail()) + u64(5) + (1).to_bytes(4, "little")
                    replies[i] = Reply(Code.OK, frame(fields + frame(u64(3) + u64(9))))
            return replies

        monkeypatch.setattr(BlockingIo, "execute", wrong)
        (finding,) = log.check()
        assert (finding.kind, finding.object) == (zlog.FindingKind.WRONG_INDEX, name)
        assert (finding.serious, finding.positions) == (True, range(3, 10))
        (finding,) = log.check(rebuild_index=True)
        assert (finding.kind, finding.serious) == (zlog.FindingKind.REBUILT, False)
        assert set(rebuilt) == {name}
        assert list(log.check()) == []
        assert messages.tags_check_reply(store.execute(name, "tags_check", request)[1]) == told
