"""docs/pipelines.md: its code runs, and its program loses and repeats no row when it is killed.

``ZLOG_SPARK_KILLS=5`` has the program killed five times.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import runpy
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

import zlog

from ..docs.pages import DOCS, blocks
from ..support.logs import data_of
from .conftest import SECONDS
from .test_killed import KILLS, forget_commit, kill

PAGE = blocks(DOCS / "pipelines.md")
(PROGRAM,) = [block for block in PAGE if block.file_name]

EVENTS, LATE = 1_000, 10
START = 1_769_860_800
SPLIT = ("late", "queries.on-time", "clicks.on-time")


@pytest.fixture
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: zlog.Store) -> None:
    monkeypatch.setenv("ZLOG_STORE", store.url)
    monkeypatch.chdir(tmp_path)
    Path(str(PROGRAM.file_name)).write_text(PROGRAM.text)


@pytest.mark.long
@pytest.mark.usefixtures("spark", "_in_folder")
def test_documented_pipeline_has_documented_results(monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, Any] = {}
    for block in PAGE:
        if block.language == "sh":
            _, *words = shlex.split(block.text)
            monkeypatch.setattr(sys, "argv", words)
            runpy.run_path(words[0], run_name="__main__")
        elif block.language == "python" and block is not PROGRAM:
            exec(compile("\n" * block.line + block.text, str(block.page), "exec"), names)
    for log in names["logs"].values():
        log.close()
    names["store"].close()


def event(number: int, at: int, **more: object) -> bytes:
    moment = datetime.fromtimestamp(START + at, timezone.utc).isoformat()
    return json.dumps({"query": number, "time": moment, **more}).encode()


def seconds_of(data: bytes) -> float:
    return datetime.fromisoformat(json.loads(data)["time"]).timestamp()


def none_is_late(times: Sequence[float], delay: float) -> bool:
    """Whether no division of an on-time log into batches lets Spark drop one of its entries."""
    newest = itertools.accumulate(times, max)
    return all(at > before - delay for at, before in zip(times, newest, strict=True))


@pytest.mark.long
@pytest.mark.usefixtures("_in_folder")
def test_killed_pipeline_joins_each_row_once_and_keeps_late_rows(store: zlog.Store) -> None:
    chance = random.Random(5)
    names = ("queries", "clicks", *SPLIT, "joined")
    logs = {name: zlog.Log.create(store, name, width=2) for name in names}
    share = EVENTS // (2 * KILLS)
    late: list[bytes] = []

    def append(number: int) -> None:
        for log, after, more in (("queries", 0, {"text": "zebra"}), ("clicks", 9, {"url": "/"})):
            some = range(number * share, (number + 1) * share)
            events = [event(each, each + after, **more) for each in some]
            events += chance.sample(events, len(events) // 20)
            if number % 2:
                late.extend(old := [event(each, each - 86_400, **more) for each in some[:LATE]])
                events += old
            chance.shuffle(events)
            logs[log].append_many(events)

    def start(*words: str) -> subprocess.Popen[bytes]:
        arguments = "--master local[2] --conf spark.ui.enabled=false pyspark-shell"
        own = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_SUBMIT_ARGS": arguments}
        program = [sys.executable, str(PROGRAM.file_name), *words]
        with Path("output").open("wb") as output:
            return subprocess.Popen(
                program, env={**os.environ, **own}, stderr=output, start_new_session=True
            )

    def run_until(reached: Callable[[], bool]) -> subprocess.Popen[bytes]:
        """Start the program again if Spark fails, as it may with several queries in a session."""
        process, end = start(), time.monotonic() + SECONDS
        while not reached():
            assert time.monotonic() < end, Path("output").read_text()
            if process.poll() is not None:
                process = start()
            time.sleep(0.05)
        return process

    for number in range(KILLS):
        append(2 * number)
        sent = sum(logs[name].tail() for name in ("queries", "clicks")) - len(late)
        process = run_until(lambda: sum(logs[name].tail() for name in SPLIT[1:]) >= sent)  # noqa: B023
        append(2 * number + 1)
        time.sleep(chance.uniform(0, 4))
        kill(process)
        for name in ("queries", "clicks", "joined"):
            if chance.random() < 0.5:
                forget_commit(Path(name))
    assert start("--once").wait(3 * SECONDS) == 0, Path("output").read_text()
    joined = [json.loads(data)["query"] for data in data_of(logs["joined"].read_range())]
    assert sorted(map(int, joined)) == list(range(EVENTS))
    assert sorted(data_of(logs["late"].read_range())) == sorted(late)
    for name in SPLIT[1:]:
        assert none_is_late([seconds_of(data) for data in data_of(logs[name].read_range())], 600)
