"""Making the stores, and running ``zlog bench`` on them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from programs import said
from stores import ceph_store

from standard.goals import Run


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
        ProgramFailed: it can't be made.
    """
    if kind == "embedded":
        yield (folder / kind).as_uri()
        return
    with ceph_store(kind, folder / kind) as url:
        yield url


def run_on(zlog: str, url: str, kind: str, run: Run, seconds: float) -> Outcome:
    """Run one benchmark on a store.

    Raises:
        ProgramFailed: it failed.
    """
    words = (*run.words, "--seconds", str(seconds), "--json")
    lines = said(zlog, "--store", url, "bench", *words).splitlines()
    return Outcome(kind, run, [json.loads(line) for line in lines])
