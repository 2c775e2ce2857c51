"""Logs whose entries have MACs: what is appended and read, and what their store's owner changes."""

from __future__ import annotations

import hmac
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

import zlog
from zlog._append.same_id import AppendId, compare
from zlog._base.io import deadline_of
from zlog._base.mac import Key
from zlog._io import drive
from zlog._native.writes import encode_write

from ..support.logs import after_first_grant, by_position, data_of, fill_at, new_epoch
from . import planted
from .transfers import exported, imported, mirrored

KEY = bytes(range(32))
OTHER_KEY = bytes(32)
MAC_BYTES = 16
FORGED = zlog.GapKind.FORGED


@pytest.fixture
def log(store: zlog.Store) -> Iterator[zlog.Log]:
    """A log of width 2 with MACs, on every host."""
    with zlog.Log.create(store, "orders", width=2, hole_timeout=0.05, mac_key=KEY) as opened:
        yield opened


@pytest.fixture
def one(memory: zlog.Store) -> Iterator[zlog.Log]:
    """A log of one object with MACs, in memory."""
    with zlog.Log.create(memory, "orders", width=1, hole_timeout=0.05, mac_key=KEY) as opened:
        yield opened


def stored(log: zlog.Log, position: int) -> bytes:
    """Return what is stored as the data of an entry, as the store's owner sees it."""
    return planted.stored_at(log, position).data(0)


def put_instead(log: zlog.Log, changed: dict[int, bytes]) -> None:
    """Store other data at some positions of one object, as its owner can: with sound checksums.

    The object is made anew, with all that it had but for these.
    """
    ref = log.view.object_of(min(changed))
    places = [*ref.positions(0, log.tail())]
    data = {p: stored(log, p) for p in places} | changed
    planted.remake(log, ref, epoch=log.view.epoch)
    for position in places:
        planted.write(log, position, b"the store's own.", position, data[position])


def kinds(items: Sequence[zlog.Entry | zlog.Gap]) -> list[object]:
    """Return the data of entries and the kinds of gaps, position by position."""
    return [*by_position(items).values()]


def documented_mac(key: bytes, log: zlog.Log, position: int, data: bytes) -> bytes:
    """Return a MAC as docs/formats/mac.md says."""
    log_id = log.view.log_id.to_bytes(8, "little")
    of_log = hmac.digest(key, b"zlog log key 1" + log_id + log.name.encode(), "sha256")
    field = b"\x01" + len(data).to_bytes(4, "little") + data
    what = b"\x01" + position.to_bytes(8, "little") + field
    return hmac.digest(of_log, what, "sha256")[:MAC_BYTES]


def test_entries_are_stored_with_macs(log: zlog.Log) -> None:
    assert log.append(b"first") == 0
    assert [*log.append_many([b"", b"x" * 5000, *(b"%d" % i for i in range(40))])][-1] == 42
    for appended in (3, 0):
        assert log.append_once([b"delivered"] * 3, producer="crm", sequence=0) == appended
    expected = [b"first", b"", b"x" * 5000, *(b"%d" % i for i in range(40))]
    expected += [b"delivered"] * 3
    assert data_of(log.read_range()) == expected
    assert data_of(islice(log.follow(), len(expected))) == expected
    assert [log.read(p).data for p in range(4)] == expected[:4]
    columns = [*log.read_columns()]
    assert b"".join(bytes(each.data) for each in columns) == b"".join(expected)
    assert sum(map(len, columns)) == len(expected)
    for position, data in enumerate(expected):
        assert stored(log, position) == data + documented_mac(KEY, log, position, data)
    log.trim(1)
    log.trim_to(1)
    assert kinds([*log.read_range(0, 3)]) == [zlog.GapKind.TRIMMED] * 2 + [expected[2]]
    audit = log.check()
    assert [*audit] == []
    assert audit.summary.forged == 0
    new_epoch(log)
    assert log.append(b"later") == len(expected)
    stat = log.stat()
    assert stat.bytes == audit.summary.bytes + 5 == sum(map(len, expected[2:])) + 5
    assert stat.stored_bytes == stat.bytes + MAC_BYTES * stat.entries
    assert log.view.mac == zlog.EntryMac(hmac.digest(KEY, b"zlog key id 1", "sha256")[:16].hex())


def test_reserved_write_recognizes_own_entry(one: zlog.Log) -> None:
    (position,) = one.reserve(1)
    for _ in range(2):  # whatever handle writes it
        with zlog.Log.open(one.store, "orders", mac_key=KEY) as other:
            other.write(position, b"reserved", tags=["b", "a"])
    with pytest.raises(zlog.AlreadyWritten):
        one.write(position, b"another")
    assert one.read(position).data == b"reserved"
    assert set(one.read(position).tags) == {"a", "b"}
    put_instead(one, {position: b"R" + stored(one, position)[1:]})
    with pytest.raises(zlog.ForgedEntry):
        one.write(position, b"reserved")


def test_exclusive_writer_writes_and_recovers_macs(log: zlog.Log) -> None:
    log.append_many([b"shared"] * 3)
    with log.writer("ann") as writer:
        writer.append_many([b"%d" % i for i in range(100)])
        log.reconfigure(width=3)  # it goes on in another view
        writer.append(b"on")
    with log.writer("bob") as writer:
        assert data_of(writer.recover()) == [b"shared"] * 3 + [b"%d" % i for i in range(100)] + [
            b"on"
        ]
    with (
        zlog.Log.open(log.store, "orders") as keyless,
        log.writer("cid", capacity=10_000) as writer,
    ):
        held = writer.held_bytes
        writer.append(b"x" * 10)
        assert held is not None
        assert writer.held_bytes == held + 10 == log.stat().bytes
        with pytest.raises(zlog.KeyNeeded):
            keyless.writer("dan")
        writer.append(b"not fenced")


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_macs_work_with_compression(memory: zlog.Store, compression: str) -> None:
    lines = [b"%06d GET /v2/servers/detail status: 200" % i for i in range(2000)]
    with zlog.Log.create(memory, "log", width=1, compression=compression, mac_key=KEY) as log:
        log.append_many(lines)
        assert data_of(log.read_range()) == lines
        assert log.stat().bytes == sum(map(len, lines))
        assert log.stat().stored_bytes < log.stat().bytes
        put_instead(log, {7: stored(log, 8)})
        assert kinds([*log.read_range(6, 9)]) == [lines[6], FORGED, lines[8]]


def test_moved_entry_gets_new_mac(log: zlog.Log) -> None:
    after_first_grant(log, lambda position: fill_at(log, [position]))
    position = log.append(b"moved")
    assert position > 0
    assert log.read(position).data == b"moved"
    assert stored(log, position)[5:] == documented_mac(KEY, log, position, b"moved")


def test_wrong_or_missing_key_is_reported(log: zlog.Log) -> None:
    log.append(b"entry")
    store = log.store
    with pytest.raises(zlog.WrongKey, match=f"{Key(OTHER_KEY).id}.*{Key(KEY).id}"):
        zlog.Log.open(store, "orders", mac_key=OTHER_KEY)
    with zlog.Log.create(store, "plain", width=1):
        with pytest.raises(zlog.MacsMissing):
            zlog.Log.open(store, "plain", mac_key=KEY)
        with pytest.raises(zlog.MacsMissing):
            zlog.Log.open(store, "plain", create=True, mac_key=KEY)
    with zlog.Log.open(store, "orders", hole_timeout=0.05) as log:
        calls: list[Callable[[], object]] = [
            lambda: log.read(0),
            lambda: [*log.read_range()],
            lambda: [*log.read_range(tags=("a",))],
            lambda: [*log.read_columns()],
            lambda: next(log.follow()),
            lambda: log.append(b"x"),
            lambda: log.append_many([b"x"]),
            lambda: log.reserve(),
            lambda: log.write(0, b"entry"),
            lambda: log.append_once([b"x"], producer="crm", sequence=0),
            lambda: exported(log),
            lambda: mirrored(log, store, "copy"),
        ]
        for call in calls:
            with pytest.raises(zlog.KeyNeeded, match=Key(KEY).id) as failure:
                call()
            assert "mac_key" in failure.value.hint
        with pytest.raises(zlog.AlreadyWritten):
            log.fill(0)
        assert log.tail() == 1
        assert log.stat().entries == 1
        audit = log.check()
        assert [*audit] == []
        assert audit.summary.forged is None
        log.trim_to(1)
        assert log.earliest() == 1


def test_internal_reads_without_key_withhold_data(one: zlog.Log) -> None:
    one.append(b"secret")
    with zlog.Log.open(one.store, "orders") as keyless:
        client = keyless._client
        found = drive(client.reader.read([0], deadline_of(client.io, 10)))[0]
        assert isinstance(found, zlog.Entry)
        assert found.data == b""
        with pytest.raises(ValueError, match="key"):
            encode_write(1, 1, b"w" * 16, 1, [0], [0], [b"x"], mac=client.layout.macs.key)


FORGERIES = ("altered", "mac altered", "cut", "moved", "of another log", "without", "made up")


@pytest.mark.parametrize("forgery", FORGERIES)
def test_entry_forged_in_store_is_rejected(log: zlog.Log, forgery: str) -> None:
    entries = [b"entry %d" % i for i in range(12)]
    log.append_many(entries)
    with zlog.Log.create(log.store, "other", width=1, mac_key=KEY) as other:
        other.append_many(entries)
        of_other = stored(other, 4)
    own = stored(log, 4)
    put_instead(
        log,
        {
            4: {
                "altered": b"ENTRY 4" + own[7:],
                "mac altered": own[:-1] + bytes([own[-1] ^ 1]),
                "cut": own[1:],
                "moved": stored(log, 5),
                "of another log": of_other,
                "without": b"entry 4",
                "made up": b"entry 4" + documented_mac(OTHER_KEY, log, 4, b"entry 4"),
            }[forgery]
        },
    )
    expected: list[object] = [*entries]
    expected[4] = FORGED
    assert kinds([*log.read_range()]) == expected
    assert kinds([*islice(log.follow(), 12)]) == expected
    with pytest.raises(zlog.ForgedEntry, match="position 4 of log 'orders'") as failure:
        log.read(4)
    assert failure.value.gap == zlog.Gap(4, 5, FORGED)
    gaps = [gap for columns in log.read_columns() for gap in columns.gaps]
    assert gaps == [zlog.Gap(4, 5, FORGED)]
    data = b"".join(bytes(columns.data) for columns in log.read_columns())
    assert data == b"".join(entries[:4] + entries[5:])
    audit = log.check()
    (finding,) = [*audit]
    assert (finding.kind, finding.positions) == (zlog.FindingKind.FORGED, range(4, 5))
    assert finding.serious
    assert audit.summary.forged == 1
    with pytest.raises(zlog.ForgedEntry, match="position 4"):
        exported(log)
    with pytest.raises(zlog.ForgedEntry, match="position 4"):
        mirrored(log, log.store, "copy")
    log.trim(4)  # and the log goes on without it
    expected[4] = zlog.GapKind.TRIMMED
    assert kinds([*log.read_range()]) == expected


def test_append_once_rejects_forged_entry(one: zlog.Log) -> None:
    one.append_once([b"a", b"b"], producer="crm", sequence=0)
    put_instead(one, {0: b"A" + stored(one, 0)[1:]})
    with pytest.raises(zlog.CorruptEntry, match=r"position 0 .* is forged"):
        one.append_once([b"a", b"b"], producer="crm", sequence=0)


def test_forged_entry_with_same_id_does_not_match(one: zlog.Log) -> None:
    position = one.append(b"entry")
    put_instead(one, {position: b"ENTRY" + stored(one, position)[5:]})
    client, ref = one._client, one.view.object_of(position)
    wanted = {position: AppendId(b"the store's own.", position, b"entry")}
    deadline = deadline_of(client.io, 10)
    assert drive(compare(client.layout, ref, wanted, deadline)) == {position: False}


def downgrade(store: zlog.Store, mac: zlog.EntryMac | None) -> None:
    """Change the view as the store's owner can."""
    with zlog.Log.open(store, "orders") as owner:
        layout = owner._client.layout
        deadline = deadline_of(owner._client.io, 10)
        drive(layout.change(lambda view: replace(view, mac=mac), deadline))


def test_view_without_macs_is_refused(log: zlog.Log) -> None:
    log.append(b"entry")
    downgrade(log.store, None)
    for call in (lambda: log.append(b"x"), lambda: log.tail(), lambda: [*log.read_range()]):
        with pytest.raises(zlog.MacsMissing, match="orders"):
            call()
    with pytest.raises(zlog.MacsMissing):
        zlog.Log.open(log.store, "orders", mac_key=KEY)
    downgrade(log.store, zlog.EntryMac(Key(OTHER_KEY).id))
    with pytest.raises(zlog.WrongKey):
        zlog.Log.open(log.store, "orders", mac_key=KEY)
    downgrade(log.store, zlog.EntryMac(Key(KEY).id, algorithm=2))
    with pytest.raises(zlog.UnsupportedVersion):
        zlog.Log.open(log.store, "orders", mac_key=KEY)


def test_copies_are_verified_and_get_own_macs(one: zlog.Log, tmp_path: Path) -> None:
    store = one.store
    one.append_many([b"a", b"", b"c" * 1000])
    path = tmp_path / "key"
    path.write_bytes(OTHER_KEY)
    export = exported(one)
    assert documented_mac(KEY, one, 0, b"a") not in export
    imported(store, "imported", export, mac_key=path)
    mirrored(one, store, "mirrored", mac_key=OTHER_KEY)
    one.append(b"d")
    with pytest.raises(zlog.KeyNeeded):
        mirrored(one, store, "mirrored")
    mirrored(one, store, "mirrored", mac_key=OTHER_KEY)
    mirrored(one, store, "plain")
    for name, count in (("imported", 3), ("mirrored", 4)):
        with zlog.Log.open(store, name, mac_key=OTHER_KEY) as copy:
            assert data_of(copy.read_range()) == [b"a", b"", b"c" * 1000, b"d"][:count]
            assert stored(copy, 0) == b"a" + documented_mac(OTHER_KEY, copy, 0, b"a")
    with zlog.Log.open(store, "plain") as copy:
        assert stored(copy, 0) == b"a"


def test_entry_size_limit_excludes_mac(memory: zlog.Store) -> None:
    most = zlog.limits.ENTRY_BYTES_MAX - MAC_BYTES
    how = {"width": 1, "entry_bytes_max": zlog.limits.ENTRY_BYTES_MAX, "mac_key": KEY}
    with zlog.Log.create(memory, "log", **how) as log:  # type: ignore[arg-type]
        log.append(bytes(most))
        assert len(log.read(0).data) == most
        with pytest.raises(zlog.EntryTooLarge, match=str(most)):
            log.append(bytes(most + 1))
    with zlog.Log.open(memory, "log", entry_bytes_max=100, mac_key=KEY) as log:
        log.append(bytes(100))


def test_key_comes_from_bytes_file_or_function(one: zlog.Log, tmp_path: Path) -> None:
    one.append(b"entry")
    path = tmp_path / "key"
    path.write_bytes(KEY)
    for key in (KEY, bytearray(KEY), path, lambda: KEY):
        with zlog.Log.open(one.store, "orders", mac_key=key) as log:  # type: ignore[arg-type]
            assert log.read(0).data == b"entry"
    for key, error in (
        (b"x" * 15, ValueError),
        (b"x" * 4097, ValueError),
        (lambda: b"", ValueError),
        (lambda: "text" * 8, TypeError),
        ("text" * 8, TypeError),
        (tmp_path / "missing", OSError),
    ):
        with pytest.raises(error) as failure:
            zlog.Log.open(one.store, "orders", mac_key=key)  # type: ignore[arg-type]
        assert "text" not in str(failure.value)
        assert "xxxx" not in str(failure.value)


def test_key_is_never_shown(one: zlog.Log) -> None:
    text = b"not to be seen, whatever happens"
    with zlog.Log.create(one.store, "hidden", mac_key=text) as log:
        client = log._client
        key, mac = client.options.key, client.layout.macs.key
        assert key is not None
        shown = [repr(each) for each in (log, key, mac, client.options, log.view, vars(client))]
        assert "not to be seen" not in "".join(shown)
        for secret in (key, mac, client.options):
            with pytest.raises(TypeError, match="pickled"):
                pickle.dumps(secret)
        assert text not in log.view.encode()


def test_missing_openssl_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: bytes) -> None:
        raise RuntimeError("there is no libcrypto.so.3 of OpenSSL")

    monkeypatch.setattr("zlog._base.mac.MacKey", missing)
    with pytest.raises(zlog.ZlogError, match="libcrypto") as failure:
        Key(os.urandom(32)).of_log("orders", 1)
    assert "OpenSSL" in failure.value.hint
