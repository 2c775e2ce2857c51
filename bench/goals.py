"""The runs of `make bench`, and the ratios that are expected of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CEPH = ("memstore", "bluestore")
EMBEDDED = ("embedded",)
STORES = (*CEPH, *EMBEDDED)


@dataclass(frozen=True)
class Goal:
    """A number that is expected of a run.

    Attributes:
        what: a description of the load.
        limit: the name that the benchmark gives to the limit of the comparison.
        ratio: the expectation: ``≥`` or ``≤`` and a number. If it is empty, the ratio is only
            shown.
        subject: the beginning of the load's name, if a run measures several loads.
    """

    what: str
    limit: str
    ratio: str
    subject: str = ""

    def met_by(self, ratio: float) -> bool:
        """Return whether a ratio meets the goal."""
        if not self.ratio:
            return False
        wanted = float(self.ratio[1:])
        return ratio <= wanted if self.ratio.startswith("≤") else ratio >= wanted


@dataclass(frozen=True)
class Run:
    """One run of a benchmark.

    Attributes:
        stores: the kinds of stores to measure.
        command: the command line, which begins with ``python``.
        goals: the goals of the run.
    """

    stores: tuple[str, ...]
    command: str
    goals: tuple[Goal, ...]


@dataclass(frozen=True)
class Outcome:
    """The result of one run on one store: the JSON objects that it printed."""

    store: str
    run: Run
    reports: list[dict[str, Any]]


def _run(stores: tuple[str, ...], words: str, what: str, ratios: Mapping[str, str]) -> Run:
    goals = tuple(Goal(what, limit, ratio) for limit, ratio in ratios.items())
    return Run(stores, f"python -m bench {words}", goals)


def _without_class(words: str, what: str, ratio: str) -> Run:
    ratios = {"with the class": ratio}
    return _run(("bluestore",), f"{words} --class never", f"{what}, without the class", ratios)


def _growth(stores: tuple[str, ...], entries: int, name: str) -> Run:
    goals = (
        Goal(f"{name} entries against 10 K: {what}", f"{subject}, 10000", ratio, subject)
        for what, subject, ratio in (
            ("append", "append", "≥ 0.9"),
            ("opening takes", "open", "≤ 1.1"),
            ("a sequencer's start takes", "take over", "≤ 1.1"),
        )
    )
    return Run(stores, f"python -m bench growth --small 10000 --large {entries}", tuple(goals))


_BATCHES = "append, 100 B, batches of 1024"
_SINGLE = "append, 100 B, one at a time"
_TAIL = "follower, from acknowledgement to the entry in hand"

_BATCHED = {"one by one": "≥ 60", "class writes": "≥ 0.6"}
_CONCURRENT = {"one by one": "≥ 25", "class writes": "≥ 0.6"}
_LMDB = {"LMDB, entries": "≥ 0.6"}
_LARGE = {"plain librados": "≥ 0.85", "class writes": ""}

RUNS = (
    _run(CEPH, "append --batch 1024", f"{_BATCHES}, one after the other", _BATCHED),
    _run(CEPH, "append --batch 1024 --depth 4", f"{_BATCHES}, 4 in flight", _BATCHED),
    _run(CEPH, "append --depth 4096", "append, 100 B, 4096 concurrent", _CONCURRENT),
    _run(
        CEPH,
        "append --size 16K --batch 1024 --depth 2",
        "append, 16 KiB, batches of 1024, 2 in flight",
        _LARGE,
    ),
    _run(CEPH, "append", _SINGLE, {"position + write": "≥ 0.85"}),
    _run(
        CEPH,
        "read --size 100 --entries 1048576",
        "range read, 100 B",
        {"plain librados": "≥ 0.7"},
    ),
    _run(
        CEPH,
        "read --size 16K --entries 16384",
        "range read, 16 KiB",
        {"plain librados": "≥ 0.9"},
    ),
    _run(CEPH, "tail", _TAIL, {"plain librados": "≤ 3"}),
    _without_class("append --batch 1024", _BATCHES, "≥ 0.6"),
    _without_class("append --batch 1024 --writers 4", f"{_BATCHES}, 4 writers", "≥ 0.35"),
    _run(EMBEDDED, "append --size 100 --batch 1024", _BATCHES, _LMDB),
    _run(EMBEDDED, "append --size 100 --depth 256", "append, 100 B, 256 concurrent", _LMDB),
    _run(
        EMBEDDED,
        "append --depth 64 --through threads",
        "append, 100 B, 64 threads",
        {"tasks": "≥ 0.8"},
    ),
    _run(
        ("bluestore", *EMBEDDED),
        "append --depth 4096 --through submit",
        "append, 100 B, 4096 by submit",
        {"tasks": "≥ 1.2"},
    ),
    _run(EMBEDDED, "append --size 1K --batch 1024", "append, 1 KiB, batches of 1024", _LMDB),
    _run(EMBEDDED, "read --entries 1048576", "range read, 100 B", {"LMDB": ""}),
    _run(
        EMBEDDED,
        "sequencer --connections 8 --depth 16",
        "sequencer, 8 connections × 16",
        {"echo": "≥ 0.8"},
    ),
    _growth(("memstore",), 1_000_000, "1 M"),
    _growth(("bluestore", *EMBEDDED), 10_000_000, "10 M"),
)
