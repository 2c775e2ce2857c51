"""What the processes of the system tests do, and say that they have done."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_APPENDER = """
import signal, sys, time, zlog
url, name, writer, count, batch, report = sys.argv[1:]
count, batch = int(count), int(batch)
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append("to end"))
with zlog.connect(url) as store, zlog.Log.open(store, name, timeout=120) as log, \\
        open(report, "w", buffering=1) as out:
    for start in range(0, count, batch):
        if told:
            break
        data = [f"{writer}.{i}".encode() for i in range(start, min(start + batch, count))]
        for position, entry in zip(log.append_many(data), data):
            print(position, entry.decode(), time.monotonic(), file=out)
"""


class Appender:
    """A process that appends ``count`` entries ``WRITER.NUMBER`` and reports each position.

    Without ``count`` it does so until it is told to finish.
    """

    def __init__(
        self, url: str, log: str, writer: str, count: int | None, folder: Path, batch: int = 1
    ) -> None:
        self.report = folder / f"{writer}.txt"
        self.report.touch()
        words = [url, log, writer, str(count or sys.maxsize), str(batch), str(self.report)]
        # In another directory, or Python would import the sources instead of the package.
        self.process = subprocess.Popen([sys.executable, "-c", _APPENDER, *words], cwd=folder)

    def wait(self, seconds: float = 300) -> None:
        """Wait for the end, which must be a success."""
        assert self.process.wait(seconds) == 0

    def finish(self) -> None:
        """Have it end after the append that is under way, and wait for that."""
        self.process.terminate()
        self.wait()

    @property
    def failed(self) -> bool:
        """Whether it ended before its work was done."""
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


def merge(appenders: list[Appender]) -> dict[int, bytes]:
    """Put the reports of several appenders together; no position may be in two of them."""
    merged: dict[int, bytes] = {}
    for appender in appenders:
        found = appender.acknowledged()
        assert not merged.keys() & found.keys()
        merged.update(found)
    return merged
