"""`zlog append --spool` and `zlog forward`, and spools in `zlog doctor` and `zlog exporter`."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

import zlog
import zlog.metrics
from zlog import Spool
from zlog.testing import Fate, FaultyStore

from ..support.logs import data_of
from .conftest import Cli, Inside
from .test_metrics import exporting, scrape


@pytest.fixture
def spooled(orders: zlog.Log, tmp_path: Path) -> str:
    """A directory in which two entries for the log wait."""

    def open_store(url: str) -> zlog.Store:
        down = Fate(effect=None, error=errno.EHOSTUNREACH)
        return FaultyStore(zlog.connect(url), lambda _: down)

    folder = str(tmp_path / "a spool")
    with Spool(folder, orders.store.url, orders.name, open_store=open_store) as spool:
        spool.append_many([b"0", b"1"])
    return folder


def test_append_and_forward(spooled: str, url: str, orders: zlog.Log) -> None:
    cli = Cli(url)
    done = cli("doctor", "--spool", spooled, "--json")
    first = json.loads(done.out.splitlines()[0])
    assert (done.code, first["level"], first["part"]) == (0, "warning", f"spool {spooled}")
    assert "2 entries" in first["text"]
    assert "EHOSTUNREACH" in first["text"]
    result = json.loads(cli.ok("forward", spooled, "--json"))
    assert (result["delivered"], result["entries"], result["state"]) == (2, 0, "empty")
    cli.ok("append", "orders", "--spool", spooled, "--tag", "t", stdin=b"2\n3\n")
    cli.ok("append", "orders", "--spool", spooled, "--spool-always", "-m", "4")
    assert data_of(orders.read_range()) == [b"%d" % number for number in range(5)]
    assert data_of(orders.read_range(tags=["t"])) == [b"2", b"3"]
    assert cli("append", "none", "--spool", spooled, "-m", "x").code == 1
    assert "there is no spool" in cli("forward", f"{spooled}/none").err


@pytest.mark.parametrize(
    "words",
    [
        ("--spool-always",),
        ("--spool", "d", "--positions"),
        ("--spool", "d", "--spool-bytes", "1M"),
        ("--spool", "d", "--max-bytes", "16M"),
    ],
    ids=" ".join,
)
def test_options_that_do_not_fit_are_refused(url: str, words: tuple[str, ...]) -> None:
    assert Inside(url)("append", "orders", *words, "-m", "x").code == 2


def test_waiting_entries_are_reported(spooled: str, url: str, orders: zlog.Log) -> None:
    orders.read_only()
    cli = Inside(url)
    done = cli("append", "orders", "--spool", spooled, "-m", "2")
    assert (done.code, done.out) == (8, b"")  # refused, because the spool is blocked
    assert "no entry of the input is in the log or in the spool" in done.err
    done = cli("forward", spooled, "--json")
    assert done.code == 8
    result = json.loads(done.out)
    assert (result["delivered"], result["entries"], result["state"]) == (0, 2, "blocked")
    done = cli("doctor", "--spool", spooled)
    assert done.code == 1
    assert "read-only" in done.out.decode().splitlines()[0]


def test_append_reports_waiting_entries(
    spooled: str, url: str, orders: zlog.Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zlog.cli.commands.append._FLUSH_SECONDS", 0.0)
    with Spool(spooled) as other:  # this process forwards, and not the command
        other._mode.acquire()
        done = Inside(url)("append", "orders", "--spool", spooled, "-m", "2")
        other._mode.release()
        other.flush()
    assert done.code == 0
    assert done.err.endswith(f"`zlog forward '{spooled}'` delivers them\n")
    assert data_of(orders.read_range()) == [b"0", b"1", b"2"]


def test_metrics(spooled: str, url: str) -> None:
    where = ("directory", spooled)
    with exporting(Cli(url), "--spool", spooled) as address:
        values = scrape(address)[1]
    assert values["zlog_spool_entries", (where,)] == 2
    assert values["zlog_spool_failed", (where,)] == 1
    assert values["zlog_spool_dropped_entries_total", (where,)] == 0
    with Spool(spooled) as spool:
        spool.flush()
        [family] = [f for f in zlog.metrics.spool_metrics() if f.name == "zlog_spool_entries"]
        assert [(s.labels["directory"], s.value) for s in family.samples] == [(spooled, 0)]
