"""Power that fails: what was written and not synced is lost, or some of it is; see ``power.c``."""

from __future__ import annotations

import os
import random
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

LMDB = "/data.mdb"
BLUESTORE = "/block"
"""How the paths of the files end that hold what is stored."""

_PAGE = 4096
"""What a disk writes whole or not at all."""

_RECORD = struct.Struct("=QQQ")
_SYNCED = (1 << 64) - 1
_JOURNALS = "POWER_JOURNALS"


@contextmanager
def that_may_fail(folder: Path, *endings: str) -> Iterator[None]:
    """Have the processes that a ``with`` block starts, and theirs, lose what they do not sync.

    Args:
        folder: for what they might lose.
        endings: of the paths of the files.
    """
    journals, library = folder / "journals", folder / "power.so"
    journals.mkdir(parents=True)
    source = Path(__file__).with_suffix(".c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"], check=True)
    variables = {
        "LD_PRELOAD": str(library),
        "POWER_FILES": ":".join(endings),
        _JOURNALS: str(journals),
    }
    with mock.patch.dict(os.environ, variables):
        yield


def fail(chance: random.Random) -> int:
    """Have all processes lose what they did not sync, all of it or half; none of them may run.

    Returns how many pages were lost.
    """
    lost = 0
    for journal in Path(os.environ[_JOURNALS]).iterdir():
        share = chance.choice((1.0, 0.5))
        with Path(journal.name.replace("%", "/")).open("r+b") as file:
            for page, former in _former_pages(journal.read_bytes(), file.fileno()).items():
                if chance.random() < share:
                    os.pwrite(file.fileno(), former, page * _PAGE)
                    lost += 1
        journal.unlink()
    return lost


def _former_pages(journal: bytes, file: int) -> dict[int, bytes]:
    """Return what the pages that were written since the last sync held then, by their numbers."""
    pages: dict[int, bytearray] = {}
    for offset, count, former in reversed(list(_unsynced(journal))):
        for number in range(offset // _PAGE, (offset + count - 1) // _PAGE + 1):
            if number not in pages:
                held = os.pread(file, _PAGE, number * _PAGE)
                pages[number] = bytearray(held.ljust(_PAGE, b"\0"))
            start, end = max(offset, number * _PAGE), min(offset + count, (number + 1) * _PAGE)
            held = former[start - offset : end - offset].ljust(end - start, b"\0")
            pages[number][start % _PAGE : start % _PAGE + len(held)] = held
    return {number: bytes(page) for number, page in pages.items()}


def _unsynced(journal: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Go through the writes since the last sync: where, how many bytes, and what stood there."""
    (end,) = struct.unpack_from("=Q", journal)
    writes, at, synced = [], struct.calcsize("=Q"), 0
    while at < end:
        offset, count, found = _RECORD.unpack_from(journal, at)
        if count == _SYNCED:
            synced = offset
        else:
            start = at + _RECORD.size
            writes.append((at, offset, count, journal[start : start + found]))
        at += _RECORD.size + found
    for place, offset, count, former in writes:
        if place >= synced and count:
            yield offset, count, former
