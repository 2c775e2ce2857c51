"""What releases have stored (`freeze`): read, and written on, on every kind of store."""

from __future__ import annotations

import hashlib
import lzma
from pathlib import Path

import pytest

import zlog

from ..client.transfers import exported, imported
from ..conformance.stored import STORES_WITH_DOORS, damage_file, door_to, fields_of
from ..support.logs import by_position
from .freeze import EXPORT, OBJECTS, STORE, TESTDATA, freeze, objects_of, unpack
from .part import Part, sound
from .parts import ORDERS, PARTS

FORMAT_1 = "format-1.tar.xz"

FROZEN = {
    "0.1/objects.json.xz": "011e88065842202884ac94a9f044ed9435f0dd6593164d60852b97b674b583c0",
    "0.1/orders.zlog.xz": "2c3c1db55d4f60589e2328bead706ee313037e1832c2d15600ddb8a0ebd3eb63",
    "0.1/store.tar.xz": "df10c86725d9f16c1f150817d4b9c69d58e9f06d2cc72ebc6e8cb0c525283e8a",
    "format-1.tar.xz": "b26ce4467729bff14935e874c173a90f03e0da7a9b4d42c8db791eee05e3691c",
}
"""Checksums of all that is frozen. A release adds its own, and no other is ever replaced: a later
version that can't read what is there is wrong, not the data."""

RELEASES = sorted({name.partition("/")[0] for name in FROZEN if "/" in name})


@pytest.fixture(params=RELEASES)
def frozen(request: pytest.FixtureRequest) -> Path:
    """The folder of a release."""
    return TESTDATA / request.param


def test_frozen_files_match_checksums() -> None:
    files = [path for path in TESTDATA.rglob("*") if path.is_file()]
    found = {
        str(path.relative_to(TESTDATA)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }
    assert found == FROZEN


def test_release_can_be_frozen_only_once(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    freeze(folder)
    made = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert {*made} == {STORE, OBJECTS, EXPORT}
    with pytest.raises(FileExistsError):
        freeze(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == made
    with unpack(folder / STORE, tmp_path) as store:
        for part in PARTS:
            part.reads(store)


def test_frozen_release_covers_every_stored_kind(frozen: Path) -> None:
    """But for a lost record, which damage alone makes, and hints of a sequencer."""
    records, keys = set(), set()
    for name, content in objects_of(frozen).items():
        kind = name.rpartition(".")[2] if "/" not in name else "directory"
        kind = kind if kind in {"head", "directory"} else "stripe"
        for key, value in content.omap.items():
            keys.add((kind, key.partition(b".")[0].decode()))
            if kind == "stripe" and key.startswith(b"e."):
                records.add(fields_of(value)[0][0])
    assert records == {1, 2, 3, 4, 6, 7, 8}
    assert keys == {
        *(("stripe", each) for each in "ect"),
        *(("head", each) for each in "vctlrsp"),
        ("directory", "n"),
    }


CASES = [
    pytest.param(TESTDATA / release, part, id=f"{release}-{type(part).__name__}")
    for release in RELEASES
    for part in PARTS
    if part.since <= tuple(map(int, release.split(".")))
]
each_part = pytest.mark.parametrize(("frozen", "part"), CASES)


@each_part
def test_frozen_embedded_store_is_usable(frozen: Path, part: Part, tmp_path: Path) -> None:
    with unpack(frozen / STORE, tmp_path) as store:
        part.reads(store)
        part.goes_on(store)


@each_part
@pytest.mark.parametrize("store_url", STORES_WITH_DOORS, indirect=True)
def test_frozen_objects_are_usable(frozen: Path, part: Part, store: zlog.Store) -> None:
    with door_to(store) as door:
        for name, content in objects_of(frozen).items():
            door.save(name, content)
    part.reads(store)
    part.goes_on(store)


@pytest.mark.parametrize("store_url", ["mem", "embedded"], indirect=True)
def test_frozen_export_can_be_imported(frozen: Path, store: zlog.Store) -> None:
    export = lzma.decompress((frozen / EXPORT).read_bytes())
    imported(store, "orders", export)
    with zlog.Log.open(store, "orders") as log:
        assert by_position(log.read_range(0)) == ORDERS
        assert exported(log, cursors=True) == export
        assert log.append(b"goes on") == log.tail() - 1


def test_format_1_store_is_usable(tmp_path: Path) -> None:
    """Of a version before the first release."""
    with unpack(TESTDATA / FORMAT_1, tmp_path) as store, zlog.Log.open(store, "orders") as log:
        assert zlog.Log.list(store) == ["empty", "orders"]
        large = [bytes([65 + i]) * 12_000 for i in range(4)]
        assert by_position(log.read_range(0)) == {
            **{p: each for p, each in ORDERS.items() if p < 10},
            **dict(enumerate(large, 10)),
            **dict.fromkeys(range(14, 18), zlog.GapKind.FILLED),
            18: b"delivered",
            19: b"in the second stripe",
        }
        assert [(c.name, c.position) for c in log.cursors()] == [("reader", 5)]
        assert [(s.name, s.parts) for s in log.producers()] == [("query", 1)]
        sound(log)
        assert log.append(b"now") == 20
        assert log.append_once([b"delivered", b"more"], producer="query", sequence=1, part=0) == 1
        log.trim_to(5)
        log.reconfigure(width=1)
        assert log.read(log.append(b"on")).data == b"on"
        assert log.read(10).data == large[0]
        sound(log)
        log.store.compact()
    assert b"zlog-embedded 1" in (tmp_path / "data.mdb").read_bytes()


def test_store_of_later_format_is_refused(tmp_path: Path) -> None:
    unpack(TESTDATA / RELEASES[-1] / STORE, tmp_path).close()
    assert damage_file(tmp_path, b"zlog-embedded 2", b"zlog-embedded 3")
    before = (tmp_path / "data.mdb").read_bytes()
    with pytest.raises(zlog.StoreUnavailable, match="a store of this version of zlog"):
        zlog.connect(tmp_path.as_uri())
    assert (tmp_path / "data.mdb").read_bytes() == before
