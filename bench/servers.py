"""Servers in Python that run next to a benchmark, mainly sequencers."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading

import zlog
from zlog.seqr.election.lease import LEASE_SECONDS_DEFAULT


class ServerProcess:
    """A server on a free port of this machine, as a context manager.

    Args:
        code: the code that runs it. It must print ``listening`` with its ``address=`` on stderr.

    Attributes:
        pid: the id of its process.
        address: its address, ``tcp://HOST:PORT``.

    Raises:
        SequencerUnavailable: it did not start.
    """

    def __init__(self, code: str) -> None:
        # It uses the modules of this Python: `python -c` searches the current directory first.
        code = f"import sys; sys.path[:] = {sys.path!r}; {code}"
        self._process = subprocess.Popen(  # our own program, without a shell
            [sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        self.pid = self._process.pid
        self.address = self._wait_until_it_listens()

    def _wait_until_it_listens(self) -> str:
        assert self._process.stderr is not None
        said = []
        for line in self._process.stderr:
            said.append(line)
            if found := re.search(r"listening .*address=(\S+)", line):
                # Later output must not fill the pipe.
                self._rest = threading.Thread(target=self._process.communicate, daemon=True)
                self._rest.start()
                return found[1]
        self._process.communicate()
        raise zlog.SequencerUnavailable("a server did not start: " + "".join(said).strip())

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def end(self) -> None:
        """If it is still running, stop it cleanly and wait for its end."""
        if self._process.poll() is None:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
        self._process.wait()
        self._rest.join()

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()


def start_sequencer(url: str, lease: float = LEASE_SECONDS_DEFAULT) -> ServerProcess:
    """Start a sequencer of a store as ``zlog seqr`` does, with a lease in seconds.

    Raises:
        SequencerUnavailable: it did not start.
    """
    # The command line would refuse a store that needs no sequencer.
    return ServerProcess(
        "from zlog.seqr import service;"
        f" service.run('127.0.0.1:0', store={url!r}, lease_seconds={lease!r})"
    )
