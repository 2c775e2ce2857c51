"""What commands show of a log with an offloaded stripe."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

import zlog
from zlog.cli.commands.exporter import Exporter
from zlog.cli.commands.top.rows import HEAD, Row
from zlog.cli.watch import Watch

from .conftest import Inside


def path_of(file: zlog.StripeFile) -> Path:
    return Path(file.url.removeprefix("file://"))


def test_sizes_are_divided_by_place(inside: Inside, offloaded: zlog.StripeFile) -> None:
    found = json.loads(inside.ok("info", "orders", "--json"))
    sizes = {"stripes": 1, "entries": 10, "bytes": 10, "file_bytes": offloaded.size}
    assert found["offloaded"] == sizes
    assert found["offload_folders"] == [path_of(offloaded).parent.as_uri()]
    lines = inside.ok("info", "orders").decode().splitlines()
    shown = {line[:12].strip(): line[12:].strip() for line in lines}
    assert shown["in objects"] == "4 entries, 16 B"
    assert shown["offloaded"] == "10 entries, 10 B, 1 stripe"
    assert shown["files"].endswith(f" in {offloaded.folder}")
    assert "stored" not in shown
    assert b"(10 B offloaded)" in inside.ok("info", "--match", "*")
    assert b" 26 B  10 B  store:" in inside.ok("ls", "--long")
    assert inside.ok("views", "orders").decode().endswith(" 0:10×2* 10:×2\n")
    view = json.loads(inside.ok("views", "orders", "--json").splitlines()[-1])
    assert [stripe["file"] for stripe in view["stripes"]] == [offloaded.url, None]


def test_top_and_metrics_count_files(orders: zlog.Log, offloaded: zlog.StripeFile) -> None:
    orders.roll()
    watch = Watch(orders.store, "*", 9, 9, None)
    seen = asyncio.run(watch.look())
    assert Row(seen.logs["orders"]).cells()[HEAD.index("OFFLOADED")] == "10 B"
    samples = {s.name: s.value for family in Exporter(watch).collect() for s in family.samples}
    values = {"entries": 14, "bytes": 26, "objects": 4, "ended_bytes": 16, "offloaded_stripes": 1}
    values |= {"offloaded_entries": 10, "offloaded_bytes": 10}
    values |= {"offloaded_file_bytes": offloaded.size}
    assert {name: samples[f"zlog_log_{name}"] for name in values} == values


def of_doctor(inside: Inside) -> tuple[str, str, str]:
    """The level, the text and the fix of what the doctor says about offloading."""
    lines = map(json.loads, inside("doctor", "--json").out.splitlines())
    (found,) = [each for each in lines if each["part"] == "offload"]
    return found["level"], found["text"], found["fix"]


@pytest.mark.parametrize(
    ("how", "why"), [("missing", "the file does not exist"), ("damaged", "the file is damaged: ")]
)
def test_check_and_doctor_report_file(
    inside: Inside, offloaded: zlog.StripeFile, how: str, why: str
) -> None:
    path = path_of(offloaded)
    if how == "missing":
        path.unlink()
    else:  # the footer's JSON, which has no checksum
        path.write_bytes(path.read_bytes().replace(b'"version"', b'"versio\xff"'))
    result = inside("check", "orders")
    assert (result.code, result.out.count(b"\n")) == (1, 1)
    assert result.out.decode().startswith(f"lost: positions 0 to 9 in {offloaded.url}: {why}")
    summary = json.loads(inside("check", "orders", "--json").out.splitlines()[-1])["summary"]
    values = {"entries": 4, "lost": 10, "objects": 2, "offloaded": 10, "files": 1}
    assert {key: summary[key] for key in values} == values
    level, text, _ = of_doctor(inside)
    assert (level, text.partition(": ")[0]) == ("failure", "log orders has lost entries")


def test_outage_is_not_reported_as_loss(inside: Inside, offloaded: zlog.StripeFile) -> None:
    folder = path_of(offloaded).parent
    folder.rename(folder.with_name("elsewhere"))
    result = inside("--timeout", "1", "check", "orders")
    assert (result.code, result.out) == (6, b"")
    assert f"can't use the offloaded stripe in {offloaded.url}" in result.err
    level, text, _ = of_doctor(inside)
    assert (level, text.partition(": ")[0]) == ("warning", "the folder of log orders can't be used")


def test_doctor_notices_missing_extra_and_offloader(
    inside: Inside,
    orders: zlog.Log,
    offloaded: zlog.StripeFile,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = str(path_of(offloaded).parent.parent)
    with pytest.raises(ValueError, match="a URL or an absolute path"):
        orders.reconfigure(options={"offload_to": "archive"})
    orders.reconfigure(options={"offload_to": root, "offload_after": "1h"})
    orders.roll()
    assert of_doctor(inside) == ("ok", "log orders: the folder can be reached", "")
    orders.reconfigure(options={"offload_after": "0s"})
    text = "log orders has a stripe to offload, from position 10"
    assert of_doctor(inside) == ("note", text, "zlog offload orders --follow")
    monkeypatch.setitem(sys.modules, "zlog.offload", None)
    level, text, fix = of_doctor(inside)
    assert (level, text) == ("warning", "this machine can't read offloaded stripes of log orders")
    assert "pyarrow" in fix
