"""Processes that append, and say that they have done."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_APPENDER = """
import itertools, signal, sys, time, zlog
url, name, writer, report = sys.argv[1:]
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append("to end"))
with zlog.connect(url) as store, zlog.Log.open(store, name, timeout=120) as log, \\
        open(report, "w", buffering=1) as out:
    for number in itertools.takewhile(lambda _: not told, itertools.count()):
        entry = f"{writer}.{number}"
        print(log.append(entry.encode()), entry, time.monotonic(), file=out)
"""


class Appender:
    """A process that appends entries ``WRITER.NUMBER``, and reports the position of each."""

    def __init__(self, url: str, log: str, writer: str, folder: Path) -> None:
        self.report = folder / f"{writer}.txt"
        self.report.touch()
        words = [url, log, writer, str(self.report)]
        # In another directory, or Python would import the sources instead of the package.
        self.process = subprocess.Popen([sys.executable, "-c", _APPENDER, *words], cwd=folder)

    def finish(self) -> None:
        """Have it end after the append that is under way, and wait for that."""
        self.process.terminate()
        assert self.process.wait(300) == 0

    @property
    def failed(self) -> bool:
        """Whether it ended although it was not told to."""
        return bool(self.process.poll())

    def acknowledged(self) -> dict[int, bytes]:
        """Return what was acknowledged so far: entries by position, no position twice."""
        found: dict[int, bytes] = {}
        for position, entry, _ in self._lines():
            assert int(position) not in found
            found[int(position)] = entry.encode()
        return found

    def times(self) -> list[float]:
        """Return when, on ``time.monotonic``, entries were acknowledged."""
        return [float(when) for _, _, when in self._lines()]

    def _lines(self) -> list[list[str]]:
        lines = self.report.read_text().splitlines(keepends=True)
        return [line.split() for line in lines if line.endswith("\n")]
