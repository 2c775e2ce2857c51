"""Exports and imports: the same log again, with positions, times and gaps; or a clear refusal."""

from __future__ import annotations

import io
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import zlog
from zlog import CopyDiffers, Entry, ExportDamaged
from zlog._transfer.export_file import ExportReader, ExportWriter, Info
from zlog._transfer.pieces import Batch, Filled, Mark, Trimmed, parts_without

from ..native.support import run
from ..support.logs import leave_hole
from ..support.programs import REPOSITORY
from .faulty import each_death
from .planted import make_lost
from .transfers import exported, imported, varied


@pytest.fixture
def source(memory: zlog.Store) -> Iterator[zlog.Log]:
    """A log that has all there is."""
    with varied(memory) as log:
        yield log


def test_import_restores_log_on_every_store(store: zlog.Store, tmp_path: Path) -> None:
    """Embedded, to the host, and back to an embedded store: equal exports."""
    with (
        zlog.connect(tmp_path / "here") as here,
        zlog.connect(tmp_path / "back") as back,
        varied(here) as log,
    ):
        export = exported(log, cursors=True)
        done = imported(store, "copy", export)
        assert (done.start, done.end) == (15, log.tail())
        with zlog.Log.open(store, "copy") as copy:
            assert exported(copy, cursors=True) == export
            assert list(copy.check()) == []
            imported(back, "orders", exported(copy, cursors=True), width=7)
        with zlog.Log.open(back, "orders") as again:
            assert [*again.read_range()] == [*log.read_range()]
            assert again.append(b"new") == done.end
            assert list(again.check()) == []


def test_cursors_are_exported_on_request(source: zlog.Log, target: zlog.Store) -> None:
    imported(target, "without", exported(source))
    assert zlog.Log.open(target, "without").cursors() == []
    imported(target, "with", exported(source, cursors=True))
    kept = zlog.Log.open(target, "with").cursors()
    assert {each.name: each.position for each in kept} == {
        "billing": 40,
        "nightly": source.tail(),
    }


@pytest.mark.parametrize("start", [0, 16, 51, 133])
@pytest.mark.parametrize("end", [51, 100, None, 10**9])
def test_range_of_log_is_exported(
    source: zlog.Log, target: zlog.Store, start: int, end: int | None
) -> None:
    tail = source.tail()
    stop = min(tail if end is None else end, tail)
    start = min(start, stop)
    done = imported(target, "part", exported(source, start=start, end=end))
    assert (done.start, done.end) == (start, stop)
    part = zlog.Log.open(target, "part")
    assert [*part.read_range(start)] == [*source.read_range(start, stop)]
    assert part.tail() == stop
    assert part.earliest() >= start
    assert list(part.check()) == []


def test_next_export_continues_last_export(source: zlog.Log, target: zlog.Store) -> None:
    first = exported(source)
    tail = source.tail()
    source.append_many([b"later"] * 100)
    imported(target, "copy", first, promote=False)
    done = imported(target, "copy", exported(source, start=tail), promote=False)
    assert (done.start, done.entries) == (tail, 100)
    source.append(b"last")
    done = imported(target, "copy", exported(source, start=tail - 20))
    assert (done.start, done.entries) == (tail + 100, 1)
    assert exported(zlog.Log.open(target, "copy")) == exported(source)


def test_import_refuses_missing_positions(source: zlog.Log, target: zlog.Store) -> None:
    imported(target, "copy", exported(source, end=50), promote=False)
    with pytest.raises(CopyDiffers, match="lacks positions 50 to 59") as caught:
        imported(target, "copy", exported(source, start=60))
    assert "zlog export SOURCE --from 50" in caught.value.hint


@pytest.mark.parametrize("start", [0, 40, 59, 60])
def test_import_refuses_export_of_other_log(
    memory: zlog.Store, target: zlog.Store, start: int
) -> None:
    logs = [zlog.Log.create(memory, name, width=2) for name in ("one", "other")]
    for log in logs:
        log.append_many([b"x"] * 100)
    imported(target, "copy", exported(logs[0], end=60), promote=False)
    with pytest.raises(CopyDiffers, match="differ at position 59"):
        imported(target, "copy", exported(logs[1], start=start))
    assert zlog.Log.open(target, "copy").tail() == 60


def test_export_file_matches_documentation() -> None:
    page = (REPOSITORY / "docs" / "formats" / "export.md").read_text()
    example = re.search(r"```text export\n(.*?)```", page, re.DOTALL)
    assert example is not None
    documented = bytes.fromhex("".join(line[:48] for line in example[1].splitlines()))
    file, writer = io.BytesIO(), b"writer-00000000a"
    export = ExportWriter(file, Info(40, 4, Mark(1, writer, 41), {"team": "a"}))
    pieces = [
        Batch(40, 1700000000000000, writer, 42, [b"hello", b"log"]),
        Filled(42, 43, 1700000000000001, writer, 1),
        Trimmed(43, 45),
    ]
    for piece in pieces:
        export.add(piece)
    export.end({"billing": 42})
    assert file.getvalue() == documented
    reader = ExportReader(io.BytesIO(documented))
    assert [*reader.pieces()] == pieces
    assert (reader.info.options, reader.cursors) == ({"team": "a"}, {"billing": 42})


def small_export(memory: zlog.Store) -> bytes:
    log = zlog.Log.create(memory, "small", width=2, hole_timeout=0.01, options={"k": "v"})
    log.append_many([b"a", b"bc"])
    leave_hole(log)
    log.append(b"d")
    log.trim(1)
    log.cursor("c", create=2)
    return exported(log, cursors=True)


DAMAGES: dict[str, Callable[[bytes, int], bytes]] = {
    "truncated": lambda export, at: export[:at],
    "flipped": lambda export, at: export[:at] + bytes((export[at] ^ 0x10,)) + export[at + 1 :],
    "cut out": lambda export, at: export[:at] + export[at + 1 :],
    "put in": lambda export, at: export[:at] + b"\0" + export[at:],
}


@pytest.mark.parametrize("how", DAMAGES)
def test_damaged_batch_is_not_imported(memory: zlog.Store, how: str) -> None:
    export = small_export(memory)
    with zlog.connect("mem://") as whole_store:
        imported(whole_store, "copy", export)
        whole = [*zlog.Log.open(whole_store, "copy").read_range()]
    for at in range(len(export)):
        data = DAMAGES[how](export, at)
        with zlog.connect("mem://") as target:
            with pytest.raises(ExportDamaged) as told:
                imported(target, "copy", data)
            if zlog.Log.list(target):
                log = zlog.Log.open(target, "copy")
                assert str(told.value).endswith(f" position {log.tail()}"), at
                assert [*log.read_range()] == whole[: len([*log.read_range()])], at
                with pytest.raises(zlog.AppendRefused):
                    log.append(b"x")
            imported(target, "copy", export)
            assert [*zlog.Log.open(target, "copy").read_range()] == whole


def test_next_import_finishes_interrupted_import(memory: zlog.Store) -> None:
    export = exported(varied(memory), cursors=True)
    for number, store in each_death(
        lambda _: None, lambda dying: imported(dying, "copy", export), step=3
    ):
        try:
            imported(store, "copy", export)
        except CopyDiffers:  # it died when all was there, and the log promoted or about to be
            zlog.Log.open(store, "copy").promote()
        copy = zlog.Log.open(store, "copy")
        assert exported(copy, cursors=True) == export, f"died at {number}"
        assert {finding.kind for finding in copy.check()} <= {zlog.FindingKind.LEFTOVER}


def test_import_handles_short_reads(source: zlog.Log, target: zlog.Store) -> None:
    """Pipes return less than was asked for."""

    class Pipe(io.BytesIO):
        def read(self, count: int | None = -1, /) -> bytes:
            return super().read(min(count or 0, chances.randint(1, 100)))

    chances = random.Random(7)
    export = exported(source)
    zlog.import_log(target, "copy", Pipe(export))
    assert exported(zlog.Log.open(target, "copy")) == export


def test_export_refuses_lost_position(source: zlog.Log) -> None:
    make_lost(source, source.append(b"lost"))
    with pytest.raises(zlog.CorruptEntry, match=r"is lost .*so it can") as told:
        exported(source)
    hint = told.value.hint
    assert hint.index("--repair") < hint.index("without the entry")


def test_export_refuses_unfillable_hole(tmp_path: Path) -> None:
    with zlog.connect(tmp_path) as store, zlog.Log.create(store, "orders") as log:
        log.append(b"a")
        leave_hole(log)
        log.append(b"b")
    with (
        zlog.connect(f"{tmp_path.as_uri()}?mode=ro") as store,
        zlog.Log.open(store, "orders", hole_timeout=0.05) as log,
    ):
        with pytest.raises(zlog.NotWritten, match=r"position 1 .* is a hole"):
            exported(log)
        assert exported(log, end=1)


def test_export_survives_layout_changes(source: zlog.Log, target: zlog.Store) -> None:
    file = io.BytesIO()

    def change(done: int, _: int) -> None:
        if done:
            source.reconfigure(width=source.view.live_stripe.width % 4 + 1)

    zlog.export_log(source, file, progress=change)
    imported(target, "copy", file.getvalue())
    copy = zlog.Log.open(target, "copy")
    assert [*copy.read_range()] == [*source.read_range()]


COPY = """
    import pathlib, sys, zlog
    anonymous = []
    def sample(*_):
        status = pathlib.Path("/proc/self/status").read_text()
        anonymous.append(int(status.partition("RssAnon:")[2].split()[0]))
    with zlog.connect(sys.argv[1]) as store, open(sys.argv[2], "w+b") as file:
        zlog.export_log(zlog.Log.open(store, "orders"), file, progress=sample)
        file.seek(0)
        zlog.import_log(store, "copy", file, progress=sample)
    print(max(anonymous))
"""


def test_copied_positions_are_cut_out_of_batch() -> None:
    batch = Batch(5, 1, bytes(16), 70, [b"a", b"b", b"c"])
    first, last = parts_without(batch, {6})
    assert first == batch._replace(entries=[b"a"])
    assert last == batch._replace(start=7, number=72, entries=[b"c"])


def test_export_and_import_bound_memory(tmp_path: Path) -> None:
    with zlog.connect(tmp_path / "store") as store, zlog.Log.create(store, "orders") as log:
        for _ in range(200):
            log.append(bytes(1 << 20))
    most = run(COPY, tmp_path / "store", tmp_path / "file")
    assert int(most) < 150 << 10, "in KiB"
    with zlog.connect(tmp_path / "store") as store, zlog.Log.open(store, "copy") as copy:
        assert sum(len(item.data) for item in copy.read_range() if isinstance(item, Entry)) == (
            200 << 20
        )
