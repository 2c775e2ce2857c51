"""The raw limits of a store: measured by a program in C++, without Python and without a log.

``zlog-limits`` is part of the package. It speaks librados, LMDB and TCP itself, and sends the
object class's operations from C++; ``cli/verbs/bench/native`` is its source.
"""

from __future__ import annotations

import json
import subprocess
from array import array
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import zlog
from zlog.cli.verbs.bench.measure import Contender, Ratio, Slice
from zlog.cli.verbs.bench.usage import Processes

PROGRAM = Path(__file__).with_name("zlog-limits")

_END_SECONDS = 60.0


class Limits:
    """The program, running: it measures one thing after the other. Use it as a context manager.

    Args:
        store: what it is to measure, in its own words: see ``native/main.cc``.

    Raises:
        StoreUnavailable: the program is not there, or can't reach the store.
    """

    def __init__(self, store: Sequence[str]) -> None:
        try:
            # In a session of its own: at Ctrl-C it must live on until it has tidied up.
            self._process = subprocess.Popen(  # noqa: S603  # our own program, no shell
                [str(PROGRAM), *store],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise zlog.StoreUnavailable(
                f"can't run {PROGRAM}, which measures the limits: {error.strerror}",
                hint="Install zlog anew, from source or as a wheel of this platform.",
            ) from error
        self.osds = Processes(())
        try:
            self._answer()
        except BaseException:
            self.close()
            raise

    def measure(self, kind: str, entries_per_call: float = 1, **options: object) -> Slice:
        """Measure one thing, for as long as the option ``seconds`` says.

        Args:
            kind: what, see ``native/``.
            entries_per_call: how many entries one call stands for.
            options: its options.

        Raises:
            ZlogError: it failed.
        """
        words = [kind, *(f"{name}={value}" for name, value in options.items())]
        before = self.osds.cpu_seconds()
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(" ".join(words).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise zlog.ZlogError(f"{PROGRAM.name} has died") from None
        found = self._answer()
        latencies = array("f")
        latencies.frombytes(self._read(int(found["latencies"]) * latencies.itemsize))
        calls = int(found["calls"])
        cpu = {"client": found["cpu_seconds"]}
        if self.osds:
            cpu["osd"] = self.osds.cpu_seconds() - before
        return Slice(
            calls,
            calls * entries_per_call,
            found["seconds"],
            array("d", latencies),
            cpu,
            int(found["memory_peak_bytes"]),
        )

    def contender(
        self,
        name: str,
        how: str,
        kind: str,
        entries_per_call: float = 1,
        compare: Ratio = Ratio.RATE,
        **options: object,
    ) -> Contender:
        """Return a limit that is measured in turns with a load; see :meth:`measure`."""

        def run(seconds: float) -> Slice:
            return self.measure(kind, entries_per_call, seconds=seconds, **options)

        return Contender(name, how, run, compare)

    def close(self) -> None:
        """Let the program tidy up and end. Safe to call twice."""
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):  # the rest of a line for a program that has died
                if pipe is not None:
                    pipe.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Limits:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _answer(self) -> dict[str, float]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise zlog.ZlogError(f"{PROGRAM.name} has died")
        found: dict[str, float] = json.loads(line)
        if "error" in found:
            raise zlog.StoreUnavailable(f"measuring a limit: {found['error']}")
        return found

    def _read(self, count: int) -> bytes:
        assert self._process.stdout is not None
        data = self._process.stdout.read(count)
        if len(data) < count:
            raise zlog.ZlogError(f"{PROGRAM.name} has died")
        return data
