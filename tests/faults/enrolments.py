"""Enrollers: processes that enrol students in courses with few places, by conditional appends.

New courses are offered all the time, so that there is always one that fills up.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import zlog
import zlog.aio

from .role import PATIENCE, SEQUENCER_TIMEOUT, Client

LOG = "courses"

PLACES = 7
COURSES_MAX = 2
"""Places of a course, and courses of a student."""

_STUDENTS = 20
"""Who want a place in the same courses."""

_OFFER_SECONDS = 2
_HANDLE_SECONDS = 4.0


class Enroller(Client):
    """Enrols students, in one course or in two at once, and notes what was acknowledged."""

    async def begin(self) -> None:
        self._noted = _noted(self.over).open("a")
        await self._try(self.log.tail())  # its journal shows that it works

    async def next(self) -> None:
        settings = {"hole_timeout": 1.0, "sequencer_timeout": SEQUENCER_TIMEOUT}
        timeout = self.timeout() or PATIENCE
        async with zlog.aio.Log.open(self.store, LOG, timeout=timeout, **settings) as log:
            end = time.monotonic() + self.chance.uniform(0, _HANDLE_SECONDS)
            while time.monotonic() < end and not self.told.done:
                await self.pause()
                await self._try(self._enrol(log))

    async def _enrol(self, log: zlog.aio.Log) -> None:
        term = int(time.monotonic() / _OFFER_SECONDS)
        courses = [f"course.{term}.{n}" for n in self.chance.sample(range(3), 2)]
        courses = courses[: self.chance.randint(1, 2)]
        student = f"student.{term}.{self.chance.randrange(_STUDENTS)}"
        entry = self.entry()

        def decide(found: list[zlog.Entry]) -> list[tuple[bytes, list[str]]]:
            taken = Counter(tag for each in found for tag in each.tags)
            full = any(taken[course] >= PLACES for course in courses)
            if full or taken[student] + len(courses) > COURSES_MAX:
                return []
            return [(entry, [course, student, f"of.{len(courses)}"]) for course in courses]

        sets = [(course,) for course in courses] + [(student,)]
        with contextlib.suppress(zlog.Conflict):
            positions = await log.decide(sets, decide, attempts=20, timeout=self.timeout())
            if positions:
                print(json.dumps([positions, entry.hex()]), file=self._noted, flush=True)


def _noted(path: Path) -> Path:
    return path.with_suffix(".enrolments")


def check_enrolments(url: str, journals: Iterable[Path]) -> tuple[int, list[str]]:
    """Return how many enrolments there are, and what is wrong with them.

    No course and no student has too many, an enrolment in two courses is there as a whole, and each
    acknowledged one is where the log said. Nothing was ever filled or lost.
    """
    with zlog.connect(url) as store, zlog.Log.open(store, LOG) as log:
        items = [*log.read_range()]
    entries = {item.position: item for item in items if isinstance(item, zlog.Entry)}
    return len(entries), [*_wrong(items, entries, journals)]


def _wrong(
    items: list[zlog.Entry | zlog.Gap], entries: dict[int, zlog.Entry], journals: Iterable[Path]
) -> Iterator[str]:
    for item in items:
        if isinstance(item, zlog.Gap):
            yield f"enrolments: a gap at {item.position}: {item.kind}"
    tags = Counter(tag for entry in entries.values() for tag in entry.tags)
    for tag, count in tags.items():
        most = PLACES if tag.startswith("course.") else COURSES_MAX
        if not tag.startswith("of.") and count > most:
            yield f"enrolments: {tag} has {count}, not {most} at most"
    copies: dict[bytes, list[zlog.Entry]] = defaultdict(list)
    for entry in entries.values():
        copies[entry.data].append(entry)
    for data, found in copies.items():
        first = found[0]
        whole = f"of.{len(found)}" in first.tags and found[-1].position == first.position + (
            len(found) - 1
        )
        if not whole:
            yield f"enrolments: {data[:20]!r} is at {[each.position for each in found]}"
    for path in map(_noted, journals):
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        for line in filter(lambda line: line.endswith("\n"), lines):  # the last one may be cut off
            positions, data = json.loads(line)
            held = [entries[p].data.hex() if p in entries else None for p in positions]
            if held != [data] * len(positions):
                yield f"enrolments: {positions} were acknowledged, and hold something else"
