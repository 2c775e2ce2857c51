"""Hides the JVM's output during its start, unless the start fails."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

_STDERR = 2
_STARTED = b"\0started\0"
_CHUNK_BYTES = 1 << 16


class _Keeper:
    """Passes on what a JVM writes to stderr, except for the messages of a successful start.

    The JVM and its Python workers write to the pipe as long as they run.
    """

    def __init__(self, pipe: int, stderr: int) -> None:
        self._pipe = pipe
        self._stderr = stderr
        self._started = threading.Event()
        self.failed = False

    def run(self) -> None:
        """Read until no process has the pipe open."""
        held = b""
        while chunk := os.read(self._pipe, _CHUNK_BYTES):
            if self._started.is_set():
                self._pass_on(chunk)
                continue
            held += chunk
            if _STARTED in held:
                said, _, more = held.partition(_STARTED)
                self._pass_on(said + more if self.failed else more)
                self._started.set()

    def end(self, pipe: int) -> None:
        """Show or drop the output so far, and wait until that is done."""
        os.write(pipe, _STARTED)
        self._started.wait()

    def _pass_on(self, data: bytes) -> None:
        with contextlib.suppress(OSError):  # stderr is closed; the JVM must not wait for that
            while data:
                data = data[os.write(self._stderr, data) :]


@contextlib.contextmanager
def quiet_startup() -> Iterator[None]:
    """Start a JVM in a ``with`` block, and show its stderr only if the start fails.

    This also hides what the process itself writes to stderr in the block.
    """
    if sys.stderr is None:  # closed when the process began: another file may have its number
        yield
        return
    stderr = os.dup(_STDERR)
    source, sink = os.pipe()
    keeper = _Keeper(source, stderr)
    threading.Thread(target=keeper.run, name="zlog-jvm-stderr", daemon=True).start()
    os.dup2(sink, _STDERR)
    try:
        yield
    except Exception:
        keeper.failed = True
        raise
    finally:
        os.dup2(stderr, _STDERR)
        keeper.end(sink)
        os.close(sink)
