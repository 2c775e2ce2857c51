"""What the standard table holds: the runs, and what is expected of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

CEPH = ("memstore", "bluestore")
EMBEDDED = ("embedded",)


@dataclass(frozen=True)
class Goal:
    """One number that is expected of a run.

    Attributes:
        what: of which load, in words.
        limit: the limit that it is compared with, by the name that ``zlog bench`` gives it.
        ratio: what is expected; None where the number is shown for its own sake.
        at_most: the ratio is to be no more than that, instead of no less.
        subject: the beginning of the load's name, where a run measures several.
    """

    what: str
    limit: str
    ratio: float | None
    at_most: bool = False
    subject: str = ""


@dataclass(frozen=True)
class Run:
    """One run of ``zlog bench``.

    Attributes:
        stores: the kinds of stores that it is run on.
        words: its command line.
        goals: what is expected.
    """

    stores: tuple[str, ...]
    words: tuple[str, ...]
    goals: tuple[Goal, ...]


def _run(stores: tuple[str, ...], words: str, *goals: Goal) -> Run:
    return Run(stores, tuple(words.split()), goals)


_BATCHES = "append, 100 B, batches of 1024, one after the other"
_PIPELINED = "append, 100 B, batches of 1024, 4 in flight"
_CONCURRENT = "append, 100 B, 4096 concurrent"
_LARGE = "append, 16 KiB, batches of 1024, 2 in flight"
_SINGLE = "append, 100 B, one at a time"
_TAIL = "follower, from acknowledgement to the entry in hand"


def _ceph_runs() -> Iterator[Run]:
    yield _run(
        CEPH,
        "append --batch 1024",
        Goal(_BATCHES, "one by one", 60),
        Goal(_BATCHES, "class writes", 0.6),
    )
    yield _run(
        CEPH,
        "append --batch 1024 --depth 4",
        Goal(_PIPELINED, "one by one", 60),
        Goal(_PIPELINED, "class writes", 0.6),
    )
    yield _run(
        CEPH,
        "append --depth 4096",
        Goal(_CONCURRENT, "one by one", 25),
        Goal(_CONCURRENT, "class writes", 0.6),
    )
    yield _run(
        CEPH,
        "append --size 16K --batch 1024 --depth 2",
        Goal(_LARGE, "plain librados", 0.85),
        Goal(_LARGE, "class writes", None),
    )
    yield _run(CEPH, "append", Goal(_SINGLE, "position + write", 0.85))
    for size, entries, ratio in (("100", 1 << 20, 0.7), ("16K", 16384, 0.9)):
        what = f"range read, {size.replace('K', ' Ki').strip()}{'' if 'K' in size else ' '}B"
        yield _run(
            CEPH,
            f"read --size {size} --entries {entries}",
            Goal(what, "plain librados", ratio),
            Goal(what, "class reads", None),
        )
    yield _run(
        CEPH, "read --order random", Goal("read, 100 B, one at a time", "plain librados", None)
    )
    yield _run(CEPH, "tail", Goal(_TAIL, "plain librados", 3, at_most=True))


def _embedded_runs() -> Iterator[Run]:
    for size, name in (("100", "100 B"), ("1K", "1 KiB")):
        for words, load in (("--batch 1024", "batches of 1024"), ("--depth 256", "256 concurrent")):
            what = f"append, {name}, {load}"
            yield _run(
                EMBEDDED,
                f"append --size {size} {words}",
                Goal(what, "LMDB, entries", 0.6),
                Goal(what, "LMDB, records", None),
            )
    yield _run(EMBEDDED, "append", Goal(_SINGLE, "LMDB, entries", None))
    yield _run(EMBEDDED, "read --entries 1048576", Goal("range read, 100 B", "LMDB", None))
    yield _run(EMBEDDED, "tail", Goal(_TAIL, "class reads", None))


def _growth_runs() -> Iterator[Run]:
    for stores, large, words in (
        (("memstore",), "1 M", "--large 1000000"),
        (("bluestore", *EMBEDDED), "10 M", "--large 10000000"),
    ):
        what = f"{large} entries against 10 K"
        yield _run(
            stores,
            f"open --small 10000 {words}",
            Goal(f"{what}: append", "append, 10000", 0.9, subject="append"),
            Goal(f"{what}: range read", "read, 10000", 0.9, subject="read"),
            Goal(f"{what}: opening takes", "open, 10000", 1.1, at_most=True, subject="open"),
            Goal(
                f"{what}: a sequencer's start takes",
                "take over, 10000",
                1.1,
                at_most=True,
                subject="take over",
            ),
        )


def _sequencer_runs() -> Iterator[Run]:
    for depth in (16, 256):
        what = f"sequencer, 8 connections × {depth}"
        yield _run(
            EMBEDDED,
            f"sequencer --connections 8 --depth {depth}",
            Goal(what, "echo", 0.8),
            Goal(what, "parsed echo", None),
        )


RUNS = (*_ceph_runs(), *_embedded_runs(), *_sequencer_runs(), *_growth_runs())
