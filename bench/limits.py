"""The raw limits of a store, measured by a C++ program without Python and without a log.

``zlog-limits`` uses librados, LMDB and TCP directly, and sends the operations of the object class
from C++. Its source is in ``bench/native``; `make bench` builds it.
"""

from __future__ import annotations

import subprocess
from array import array
from collections.abc import Mapping
from contextlib import suppress
from tempfile import TemporaryFile

import zlog
from bench import REPOSITORY
from bench.measure import Slice

PROGRAM = REPOSITORY / "build" / "package" / "bench" / "native" / "zlog-limits"

_END_SECONDS = 60.0


class Limit:
    """The running program, which has prepared a limit and measures it. It is a context manager.

    Args:
        kind: the kind of limit; see ``native/limits.h``.
        options: the options of the store and the limit; see ``native/main.cc``.

    Raises:
        StoreUnavailable: the program is not installed, can't reach the store, or refuses an option.
    """

    def __init__(self, kind: str, options: Mapping[str, object]) -> None:
        self._messages = TemporaryFile()  # noqa: SIM115  # close() does
        try:
            # It has its own session, so that it survives Ctrl-C until it has cleaned up.
            self._process = subprocess.Popen(  # our own program, without a shell
                [str(PROGRAM), kind, *(f"{name}={value}" for name, value in options.items())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._messages,
                start_new_session=True,
            )
        except OSError as error:
            self._messages.close()
            raise zlog.StoreUnavailable(
                f"can't run {PROGRAM}, which measures the limits: {error.strerror}",
                hint="Run `make limits`, which builds it.",
            ) from error
        try:
            self._line()
        except BaseException:
            self.close()
            raise

    def measure(self, seconds: float, entries_per_call: float = 1) -> Slice:
        """Measure the limit for a while.

        Raises:
            StoreUnavailable: the program failed.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):  # without this, there is no answer either
            self._process.stdin.write(f"{seconds}\n".encode())
            self._process.stdin.flush()
        calls, took, cpu, memory, told = map(float, self._line().split())
        latencies = array("f")
        latencies.frombytes(self._process.stdout.read(int(told) * latencies.itemsize))
        entries = calls * entries_per_call
        used = {"client": cpu}
        return Slice(int(calls), entries, took, array("d", latencies), used, int(memory))

    def close(self) -> None:
        """Let the program clean up and end. The method can be called twice."""
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):  # the rest of a line for a program that has died
                if pipe is not None:
                    pipe.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._messages.close()

    def __enter__(self) -> Limit:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._messages.seek(0)
            said = self._messages.read().decode(errors="replace").strip()
            raise zlog.StoreUnavailable(f"measuring a limit: {said or f'{PROGRAM.name} has died'}")
        return line
