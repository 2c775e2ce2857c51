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

_FOLLOWER = """
import signal, sys, zlog
url, name, report = sys.argv[1:]
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append("to end"))
with zlog.connect(url) as store, zlog.Log.open(store, name, timeout=120) as log, \\
        open(report, "w") as out:
    position = 0
    while True:
        last = bool(told)
        for item in log.read_range(position):
            shown = item.kind.value if isinstance(item, zlog.Gap) else item.data.decode()
            for position in range(item.position, item.end):
                print(position, shown, file=out)
            position = item.end
        if last:
            break
"""

_STOPPER = """
import sys, time, zlog
url, name, width, number = sys.argv[1:]

class Stopping:
    def __init__(self, inner):
        self.inner, self.left = inner, int(number)
        self.url, self.pool, self.namespace = inner.url, inner.pool, inner.namespace
        self.read_only = False

    def count(self, method):
        if self.left == 0:
            print(method, flush=True)
            time.sleep(1000)
        self.left -= 1

    def execute(self, object, method, payload, timeout=None):
        self.count(method)
        return self.inner.execute(object, method, payload, timeout)

    def submit(self, queue, token, calls):
        for at, call in enumerate(calls, token):
            self.count(call[1])
            self.inner.submit(queue, at, [call])

    def sequencer(self):
        return self.inner.sequencer()

with zlog.connect(url) as store:
    log = zlog.Log.open(Stopping(store), name)
    log.reconfigure(width=int(width))
print("done", flush=True)
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


class Reader:
    """A process that reads a log from its beginning, and reports what it meets, in its order."""

    def __init__(self, url: str, log: str, number: int, folder: Path) -> None:
        self._report = folder / f"r{number}.txt"
        self.process = subprocess.Popen(
            [sys.executable, "-c", _FOLLOWER, url, log, str(self._report)], cwd=folder
        )

    def finish(self) -> list[tuple[int, bytes]]:
        """Have it read to the tail as it is now, and end; returns positions and entries."""
        self.process.terminate()
        assert self.process.wait(300) == 0
        lines = (line.split() for line in self._report.read_text().splitlines())
        return [(int(position), entry.encode()) for position, entry in lines]


def kill_changing_the_width(url: str, log: str, width: int, number: int, folder: Path) -> str:
    """Run a process that changes a log's width, and SIGKILL it before an operation of its store.

    Returns the method that it would have called; "done" when it has fewer operations to do.
    """
    words = [sys.executable, "-c", _STOPPER, url, log, str(width), str(number)]
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        method = process.stdout.readline().strip()
        process.kill()
    assert method
    return method


def merge(appenders: list[Appender]) -> dict[int, bytes]:
    """Put the reports of several appenders together; no position may be in two of them."""
    merged: dict[int, bytes] = {}
    for appender in appenders:
        found = appender.acknowledged()
        assert not merged.keys() & found.keys()
        merged.update(found)
    return merged
