"""Starting Python again, for servers beside a benchmark: sequencers above all."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import zlog
from zlog.seqr.election.lease import LEASE_SECONDS_DEFAULT


def python(code: str) -> list[str]:
    """Return the command that runs some code with the modules of this very Python.

    Plain ``python -c`` would look for modules in the current directory first.
    """
    return [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"]


class SequencerProcess:
    """A sequencer of a store, as ``zlog seqr`` runs it, on a free port of this machine.

    Args:
        url: of the store.
        lease: in seconds.

    Attributes:
        pid: of the process.
        address: where it listens, ``tcp://HOST:PORT``.

    Raises:
        SequencerUnavailable: it did not start.
    """

    def __init__(self, url: str, lease: float = LEASE_SECONDS_DEFAULT) -> None:
        # Not through the command line, which refuses a store that needs none.
        code = (
            "from zlog.seqr import service;"
            f" service.run('127.0.0.1:0', store={url!r}, lease_seconds={lease!r})"
        )
        self._process = subprocess.Popen(  # noqa: S603  # our own program, no shell
            python(code), stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        self.pid = self._process.pid
        self.address = self._wait_until_it_listens()

    def _wait_until_it_listens(self) -> str:
        assert self._process.stderr is not None
        said = []
        for line in self._process.stderr:
            said.append(line)
            if found := re.search(r"listening .*address=(\S+)", line):
                # What it says from now on must not fill the pipe.
                threading.Thread(target=self._process.stderr.read, daemon=True).start()
                return found[1]
        self._process.wait()
        raise zlog.SequencerUnavailable("zlog seqr did not start: " + "".join(said).strip())

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def end(self) -> None:
        """Stop it cleanly, if it still runs, and wait for its end."""
        if self._process.poll() is None:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
        self._process.wait()


@contextmanager
def running_sequencer(url: str) -> Iterator[SequencerProcess]:
    """Run a sequencer of a store, for the length of a ``with`` block.

    Raises:
        SequencerUnavailable: it did not start.
    """
    process = SequencerProcess(url)
    try:
        yield process
    finally:
        process.end()
