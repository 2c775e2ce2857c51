"""A store that the first release's format made: read, and written on."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

import zlog

from .freeze import LARGE

ARCHIVE = Path(__file__).parent / "testdata" / "embedded-0.1.tar.xz"
ENTRIES = {
    2: b"entry 2",
    **{p: b"entry %d" % p for p in range(4, 10)},
    **{10 + i: data for i, data in enumerate(LARGE)},
    18: b"delivered",
    19: b"in the second stripe",
}


@pytest.fixture
def store(tmp_path: Path) -> zlog.Store:
    with tarfile.open(ARCHIVE) as archive:
        content = archive.extractfile("data.mdb")
        assert content is not None
        (tmp_path / "data.mdb").write_bytes(content.read())
    return zlog.connect(tmp_path.as_uri())


def test_what_the_first_release_stored_is_read(store: zlog.Store) -> None:
    assert zlog.Log.list(store) == ["empty", "orders"]
    with zlog.Log.open(store, "orders") as log:
        assert log.view.options["owner"] == "shop"
        assert [stripe.width for stripe in log.stripes()] == [2, 4]
        items = list(log.read_range(0, None))
        assert {i.position: i.data for i in items if isinstance(i, zlog.Entry)} == ENTRIES
        gaps = {i.position: i.kind for i in items if isinstance(i, zlog.Gap)}
        kinds = zlog.GapKind
        assert gaps == {0: kinds.TRIMMED, 3: kinds.TRIMMED, 14: kinds.FILLED}
        assert [(c.name, c.position) for c in log.cursors()] == [("reader", 5)]
        assert [(s.name, s.parts) for s in log.sources()] == [("query", 1)]
        assert [finding for finding in log.check() if finding.serious] == []


def test_a_store_of_the_first_release_is_written_on(store: zlog.Store) -> None:
    with zlog.Log.open(store, "orders") as log:
        assert log.append(b"now") == 20
        assert log.deliver([b"delivered", b"more"], source="query", batch=1, part=0) == 1
        log.trim_to(5)
        log.reconfigure(width=1)
        assert log.read(log.append(b"on")).data == b"on"
        assert log.read(10).data == LARGE[0]
        assert [finding for finding in log.check() if finding.serious] == []
