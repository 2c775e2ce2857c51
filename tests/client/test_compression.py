"""Logs whose data is compressed: the option, what readers get, and what meets it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zlog
from zlog._base.codes import Code, State
from zlog._base.io import Reply
from zlog._native import messages, replies
from zlog._native.replies import decode_read
from zlog._native.writes import encode_write

from ..conformance import zstd
from ..conformance.messages import encode
from ..conformance.stored import MemoryDoor
from ..conformance.wire import crc32c, entry_crc, frame, u8, u32, u64, with_same_checksum
from ..support.logs import data_without_gap
from .faulty import Died, FaultyStore, dies_in
from .transfers import mirrored

LINES = [b"%06d nova[%d]: GET /v2/servers/detail status: 200" % (i, i * 7) for i in range(3000)]
NOISE = b"".join(replies.crc32c(b"%d" % i).to_bytes(4, "little") for i in range(40_000))
ALGORITHMS = pytest.mark.parametrize("compression", ["zstd", "lz4"])


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with zlog.connect(f"file://{tmp_path}/store") as opened:
        yield opened


@ALGORITHMS
def test_readers_get_decompressed_entries(store: zlog.Store, compression: str) -> None:
    with zlog.Log.create(store, "log", width=3, compression=compression) as log:
        log.append_many(LINES)
        position = log.append(b"y" * 5000)
        assert data_without_gap(log) == [*LINES, b"y" * 5000]
        assert data_without_gap(log, 1234) == [*LINES[1234:], b"y" * 5000]
        assert log.read(position).data == b"y" * 5000
        assert log.read(77).data == LINES[77]
        columns = b"".join(bytes(each.data) for each in log.read_columns(0, log.tail()))
        assert columns == b"".join([*LINES, b"y" * 5000])
        stat = log.stat()
        assert stat.bytes == len(columns) > 2.5 * stat.stored_bytes
        assert not list(log.check())


def test_incompressible_data_is_stored_as_it_is(store: zlog.Store) -> None:
    with zlog.Log.create(store, "log", width=1, compression="zstd") as log:
        log.append_many([b"short", b"x" * 100])
        log.append(NOISE)
        stat = log.stat()
        assert stat.stored_bytes == stat.bytes == 105 + len(NOISE)
        log.append_many([NOISE[:100_000], b"z" * 200_000, NOISE])
        assert data_without_gap(log)[3:] == [NOISE[:100_000], b"z" * 200_000, NOISE]


def test_large_entry_is_one_block(store: zlog.Store) -> None:
    large = [b"", b"", b"a" * 600_000, b"b" * 10, b"", b"c" * 300_000]
    with zlog.Log.create(store, "log", width=1, compression="zstd") as log:
        log.append_many(large)
        assert data_without_gap(log) == large
        assert log.stat().stored_bytes < 1000


def test_reconfiguration_starts_compression(store: zlog.Store) -> None:
    with zlog.Log.create(store, "log", width=2) as log:
        log.append_many(LINES)
        plain = log.stat()
        assert plain.stored_bytes == plain.bytes
        for compression in ("zstd", "lz4", "none"):
            log.reconfigure(compression=compression)
            log.append_many(LINES)
        assert data_without_gap(log) == LINES * 4
        log.trim(3005)
        log.trim_to(3003)
        found = list(log.read_range(3000, 3010))
        assert [item.position for item in found if isinstance(item, zlog.Gap)] == [3000, 3005]
        assert log.stat().stored_bytes < 2.5 * plain.bytes
        with pytest.raises(ValueError, match="none, zstd, lz4"):
            log.reconfigure(compression="gzip")


def test_repeated_write_at_reserved_position_succeeds(store: zlog.Store) -> None:
    entry = b"reserved " * 500
    with zlog.Log.create(store, "log", width=1, compression="zstd") as log:
        (position,) = log.reserve(1)
        log.write(position, entry)
        log.write(position, entry)
        log.reconfigure(compression="none")
        log.write(position, entry)  # known by its data, which is read and compared
        assert log.read(position).data == entry
        with pytest.raises(zlog.AlreadyWritten):
            log.write(position, entry[:-1])


def read_reply(plain: bytes, block: bytes, plain_bytes: int, *runs: tuple[int, int]) -> bytes:
    """One entry at position 0; a block for each run of entries, from the first on, how many."""
    columns = u8(0) + u64(0) + u32(len(plain)) + u32(entry_crc(0, plain))
    rows = [encode("ReadBlock", *run, 1, plain_bytes, 0, len(block)) for run in runs]
    fields = u8(0) + u64(0) + u32(1) + u8(0) + columns + u32(len(rows)) + b"".join(rows)
    return frame(fields, version=2, compat=2) + block


@pytest.mark.parametrize(
    ("block", "plain_bytes"),
    [
        (zstd.pack(b"sound"), 5),
        (zstd.pack(b"sound"), 6),
        (zstd.pack(b"\0" * (1 << 25)), 5),  # more than it says
        (zstd.pack(b"\0" * 5), 1 << 25),  # less
        (b"no frame", 5),
        (b"", 5),
    ],
)
def test_block_with_wrong_size_is_lost(block: bytes, plain_bytes: int) -> None:
    reply = read_reply(b"sound", block, plain_bytes, (0, 1))
    if not block:  # it would be the block before
        with pytest.raises(zlog.CorruptEntry):
            decode_read(reply, [0], None)
        return
    found = decode_read(reply, [0], None)
    sound = block == zstd.pack(b"sound") and plain_bytes == 5
    assert found.state(0) == (State.WRITTEN if sound else State.LOST)
    assert found.data(0) == (b"sound" if sound else b"")


@pytest.mark.parametrize("runs", [[(1, 1)], [(0, 2)], [(0, 1), (0, 1)]])
def test_block_of_wrong_entries_is_refused(runs: list[tuple[int, int]]) -> None:
    block = zstd.pack(b"sound")
    reply = read_reply(b"sound", block, 5, *runs) + block[5:] * (len(runs) - 1)
    with pytest.raises(zlog.CorruptEntry):
        decode_read(reply, [0], None)


def test_decompression_is_limited_per_reply() -> None:
    """Three blocks of 32 MiB, each of some bytes, of which one byte each was asked for."""
    block = zstd.pack(b"\0" * (1 << 25))
    columns = b"\0" * 3 + u64(0) * 3 + b"".join(map(u32, (1, 2, 3))) + u32(0) * 3
    rows = [encode("ReadBlock", i, 1, 1, 1 << 25, 0, len(block)) for i in range(3)]
    fields = u8(0) + u64(0) + u32(3) + u8(0) + columns + u32(3) + b"".join(rows)
    reply = frame(fields, version=2, compat=2) + block * 3
    with pytest.raises(zlog.CorruptEntry):
        decode_read(reply, [0, 1, 2], None)


def test_decompression_is_limited_per_block() -> None:
    """Entries of 16 MiB that are all the same one of a block, over and over."""
    block, size = zstd.pack(b"\0" * (1 << 24)), 1 << 24
    for count in (2, 3):
        columns = b"\0" * count + u64(0) * count
        columns += b"".join(u32(size * (i + 1)) for i in range(count)) + u32(0) * count
        stored = [len(block), 0, 0][:count]
        rows = [encode("ReadBlock", i, 1, 1, size, 0, each) for i, each in enumerate(stored)]
        fields = u8(0) + u64(0) + u32(count) + u8(0) + columns + u32(count) + b"".join(rows)
        reply = frame(fields, version=2, compat=2) + block
        if count == 2:
            assert len(decode_read(reply, [0, 1], None)) == 2
            continue
        with pytest.raises(zlog.CorruptEntry):
            decode_read(reply, [0, 1, 2], None)


@settings(max_examples=300, deadline=None)
@given(compression=st.sampled_from(["none", "zstd", "lz4"]), with_ids=st.booleans(), data=st.data())
def test_damaged_reply_never_yields_wrong_data(
    compression: str, with_ids: bool, data: st.DataObject
) -> None:
    entries = LINES[:40]
    with zlog.connect("mem://") as store:
        store.execute("object", "seal", messages.seal(1, 1, 0, True))
        first = encode_write(1, 1, b"w" * 16, 1, range(40), range(40), entries, compression)
        assert store.execute("object", "write", first)[0] == Code.OK
        store.execute("object", "trim", messages.trim(1, 1, [7, 20]))
        asked = range(3, 40)
        request = messages.read(1, with_ids, 1 << 20, 1, asked, blocks=True)
        _, payload = store.execute("object", "read", request)
    reply = bytearray(payload)
    for _ in range(data.draw(st.integers(0, 3))):
        reply[data.draw(st.integers(0, len(reply) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = decode_read(bytes(reply), asked, None)
    except (zlog.CorruptEntry, zlog.UnsupportedVersion):
        assert reply != payload
        return
    for i in range(len(found)):
        if found.state(i) == State.WRITTEN:
            crc = entry_crc(asked[i], found.data(i)).to_bytes(4, "little")
            assert crc in reply
            assert reply != payload or found.data(i) == entries[asked[i]]
        else:
            assert found.data(i) == b""


@pytest.mark.parametrize("kind", ["same", "forged", "wrong"])
def test_a_forged_append_is_not_taken_for_the_writers_own(store: zlog.Store, kind: str) -> None:
    """A untrusted stores a block under the ids that the writer uses next, with its checksums."""
    entry = b"an entry that can be guessed " * 60
    with zlog.Log.create(store, "log", width=1, compression="zstd") as log:
        position = log.append(b"first") + 1
        writer, number = log._client.appender.writer, log._client.appender._number
        data = {"same": entry, "forged": with_same_checksum(entry), "wrong": entry[::-1]}[kind]
        stored = zstd.pack(data)
        request = encode(
            "WriteRequest",
            log.view.epoch,
            0,
            writer,
            number,
            (1, [position]),
            [len(entry)],
            [entry_crc(position, entry)],
            [0],
            1,
            [(1, len(stored), crc32c(stored))],
            compat=2,
        )
        assert (
            store.execute(log.view.object_of(position).name, "write", request + stored, 30)[0]
            == Code.OK
        )
        if kind != "wrong":
            expected = position + (kind == "forged")
            assert log.append(entry) == expected
            assert data_without_gap(log, position)[-1] == entry
            return
        with pytest.raises(zlog.StoreTimeout, match="may be this entry"):
            log.append(entry)


def test_an_append_whose_comparison_fails_raises(
    store: zlog.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it has all the time there is."""
    entry = b"compressed the first time " * 60
    with zlog.Log.create(store, "log", width=1, timeout=None) as log:
        writer, number = log._client.appender.writer, log._client.appender._number
        position = log.tail()
        head = (log.view.epoch, 0, writer, log.view.live_stripe.striping.packed)
        request = encode_write(*head, [position], [number], [entry], "zstd")
        assert store.execute(log.view.object_of(position).name, "write", request, 30)[0] == Code.OK
        execute = log._client.io.execute

        async def damaged(calls: Any, deadline: Any) -> Any:
            reads = [call for call in calls if call.method == "read"]
            return [Reply(-5, b"")] if reads else await execute(calls, deadline)

        with monkeypatch.context() as patch:
            patch.setattr(log._client.io, "execute", damaged)
            with pytest.raises(zlog.ZlogError, match="EIO"):
                log.append(entry)
        assert log.read(position).data == entry


@pytest.mark.parametrize("damaged", [False, True])
def test_a_mirror_continues_a_round_with_other_compression(
    memory: zlog.Store, target: zlog.Store, damaged: bool
) -> None:
    entries = [line * 20 for line in LINES]
    with zlog.Log.create(memory, "log", width=2) as log:
        log.append_many(entries)
        dying = FaultyStore(target, dies_in("tail_raise", 1))
        with pytest.raises(Died):
            mirrored(log, dying, "copy")
        with zlog.Log.open(target, "copy") as copy:
            copy.reconfigure(compression="zstd")
            name = copy.view.object_of(0).name
        if damaged:
            door = MemoryDoor(target)
            content = door.load(name)
            door.save(name, type(content)(content.attrs, content.omap, bytes(99)))
            with pytest.raises(zlog.CorruptEntry, match=r"position 0 of log 'copy' .* is lost"):
                mirrored(log, target, "copy")
            return
        mirrored(log, target, "copy")
    with zlog.Log.open(target, "copy") as copy:
        assert data_without_gap(copy) == entries
        assert copy.stat().stored_bytes > copy.stat().bytes // 8  # that round's stay plain
