"""Making the stores, and running ``zlog bench`` on them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from standard.goals import Run

CLUSTER = Path(__file__).resolve().parents[2] / "ceph-dev" / "cluster"

_MEMSTORE_BYTES = "1T"
"""Room that memstore is told to have: it counts what was removed as still there, and stops."""


class BenchFailed(Exception):
    """A program that the table needs has failed."""


@dataclass(frozen=True)
class Outcome:
    """What came of one run on one store: the JSON objects that ``zlog bench`` printed."""

    store: str
    run: Run
    reports: list[dict[str, Any]]


@contextmanager
def store_of_kind(kind: str, folder: Path) -> Iterator[str]:
    """Make a store for the length of a ``with`` block; gives its URL.

    Args:
        kind: ``memstore`` or ``bluestore``, one OSD each, or ``embedded``.
        folder: to make it in.

    Raises:
        BenchFailed: it can't be made.
    """
    if kind == "embedded":
        yield (folder / kind).as_uri()
        return
    where = ("--dir", str(folder / kind))
    room = ("--osd-bytes", _MEMSTORE_BYTES) if kind == "memstore" else ()
    url = _said(str(CLUSTER), "up", *where, "--store", kind, *room).strip()
    try:
        yield url
    finally:
        _said(str(CLUSTER), "down", *where)


def run_on(zlog: str, url: str, kind: str, run: Run, seconds: float) -> Outcome:
    """Run one benchmark on a store.

    Raises:
        BenchFailed: it failed.
    """
    words = (*run.words, "--seconds", str(seconds), "--json")
    lines = _said(zlog, "--store", url, "bench", *words).splitlines()
    return Outcome(kind, run, [json.loads(line) for line in lines])


def _said(*words: str) -> str:
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise BenchFailed(f"{' '.join(words)}: exit code {done.returncode}")
    return done.stdout


def say(text: str) -> None:
    """Tell the user how it is going."""
    sys.stderr.write(text + "\n")
