"""zlog bench: each load runs, prints what it did, and removes its log."""

from __future__ import annotations

import json
import signal
from contextlib import suppress

import pytest

import zlog

from ..support.waiting import wait_until
from .conftest import Cli

QUICK = ("--seconds", "0.1", "--json")


@pytest.mark.parametrize("store_url", ["embedded", "ceph-memstore"], indirect=True)
@pytest.mark.parametrize(
    "words",
    [
        ["append"],
        ["append", "--depth", "4", "--batch", "16", "--exclusive"],
        ["read", "--entries", "3000"],
        ["read", "--entries", "100", "--random"],
        ["tail"],
    ],
)
def test_bench_measures_load_and_removes_log(store_url: str, words: list[str]) -> None:
    cli = Cli(store_url)
    done = json.loads(cli("bench", *words, *QUICK).out)
    assert done["entries"] >= done["calls"] > 0
    assert done["bytes_per_second"] == pytest.approx(100 * done["entries_per_second"], rel=0.01)
    assert 0 < done["latency_ms"]["p50"] <= done["latency_ms"]["p99"] <= done["latency_ms"]["max"]
    assert cli.ok("ls") == b""


def test_rate_counts_entries_instead_of_calls(cli: Cli) -> None:
    done = json.loads(cli.ok("bench", "append", "--batch", "64", *QUICK))
    assert done["entries"] == 64 * done["calls"]
    shown = cli.ok("bench", "append", "--seconds", "0.1").decode()
    assert [line.split("  ")[0] for line in shown.splitlines()][1] == "entries/s"


def test_oversized_entry_leaves_no_log(cli: Cli) -> None:
    result = cli("bench", "append", *QUICK, "--size", "2M")
    assert result.code == 1
    assert "2097152" in result.err
    assert cli.ok("ls") == b"orders\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_leaves_no_log(cli: Cli, number: signal.Signals, code: int) -> None:
    with cli.start("bench", "tail", "--seconds", "60") as process:
        with zlog.connect(cli.url) as store:
            wait_until(lambda: {*zlog.Log.list(store)} - {"orders"})
            (name,) = {*zlog.Log.list(store)} - {"orders"}

            def begun() -> bool:
                with suppress(zlog.LogNotFound), zlog.Log.open(store, name) as log:  # listed first
                    return log.tail() > 0
                return False

            wait_until(begun)
        process.send_signal(number)
        assert process.wait(40) == code
    assert cli.ok("ls") == b"orders\n"
