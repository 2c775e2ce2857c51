"""What is killed: ``zlog spark tail``, with all processes that came of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

_PROC = Path("/proc")
_LOOK_SECONDS = 0.02
_START_SECONDS = 240.0
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_SETTINGS = (
    "spark.ui.enabled=false",
    "spark.driver.host=127.0.0.1",
    f"spark.driver.extraJavaOptions={_JAVA}",
)


class Victim:
    """A run of the query.

    Args:
        url: of the store.
        log: to be copied.
        table: the copy.
        entries_max: of a batch.
        words: further arguments of the command.
    """

    def __init__(
        self, url: str, log: str, table: Path, entries_max: int, words: Sequence[str] = ()
    ) -> None:
        self._offsets = table.with_name(f"{table.name}.checkpoint") / "offsets"
        self._batches = self.batches()
        command = [str(Path(sys.executable).with_name("zlog")), "--store", url, "spark", "tail"]
        command += [log, "--to", str(table), "--max-entries", str(entries_max)]
        command += ["--master", "local[2]", "--trigger", "0.2s", *words]
        for each in _SETTINGS:
            command += ["--spark-conf", each]
        self._process = subprocess.Popen(  # noqa: S603  # our own program, no shell
            command,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        )

    def batches(self) -> int:
        """Return how many batches were planned so far, by this run and those before."""
        try:
            return sum(1 for each in self._offsets.iterdir() if each.name.isdecimal())
        except FileNotFoundError:
            return 0

    def wait_for_batch(self) -> None:
        """Wait until this run has planned a batch.

        Raises:
            RuntimeError: it ended before, or takes longer than can be.
        """
        end = time.monotonic() + _START_SECONDS
        while self.batches() == self._batches:
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("zlog spark tail does not work here: run it by hand")
            time.sleep(_LOOK_SECONDS)

    def kill(self) -> int:
        """Kill it and all that came of it; returns how many processes that were."""
        killed: set[int] = set()
        while pids := self._processes():
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
                killed.add(pid)
            self._process.poll()
        self._process.wait()
        return len(killed)

    def wait(self) -> int:
        """Wait for its own end; returns the exit code."""
        return self._process.wait()

    def _processes(self) -> list[int]:
        """Return the processes of its session, which Spark's workers don't leave."""
        found = []
        for entry in _PROC.iterdir():
            if not entry.name.isdecimal():
                continue
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == self._process.pid and fields[0] != "Z":
                found.append(int(entry.name))
        return found
