"""Sequencers as processes of their own, for tests that kill them."""

from __future__ import annotations

import re
import signal
import subprocess
import threading

from zlog._base.deadline import Deadline
from zlog._catalog.directory import Directory
from zlog._io import BlockingIo, drive
from zlog.admin import sequencer_status
from zlog.store import Store

from .programs import ZLOG

_START_SECONDS = 30
_STATUS_SECONDS = 10


class SequencerProcess:
    """``zlog seqr`` for one store, on a free port."""

    def __init__(self, url: str, *options: str) -> None:
        command = [*self.command(url, "127.0.0.1:0"), *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.log: list[str] = []
        self.address = ""
        self._listening = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self._listening.wait(_START_SECONDS) or not self.address:
            self.kill()
            raise AssertionError("zlog seqr did not start:\n" + "".join(self.log))

    def __enter__(self) -> SequencerProcess:
        """Itself; it is killed in the end, if it still runs."""
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def command(self, url: str, listen: str) -> list[str]:
        """Return the words that start it."""
        return [ZLOG, "--store", url, "seqr", "--listen", listen]

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self.address.rpartition(":")[2])

    def announce(self, store: Store) -> None:
        """Offer it to the clients of another pool or namespace of its cluster."""
        drive(Directory(BlockingIo(store)).announce(self.address, Deadline(10)))

    def role(self) -> str:
        """What it says it is where it was started for: leader, standby or in doubt."""
        return str(sequencer_status(self.address, timeout=_STATUS_SECONDS)["role"])

    def others(self) -> list[str]:
        """The other sequencers that it knows of there."""
        namespace = sequencer_status(self.address, timeout=_STATUS_SECONDS)["namespaces"][0]
        return [str(address) for address in namespace["others"]]

    def freeze(self) -> None:
        """Pause it with SIGSTOP."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on, with SIGCONT."""
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it with SIGKILL, as a crash."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """End it with SIGTERM; returns its exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, number: int) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(60)
        self._reader.join()
        if self.process.stderr is not None:
            self.process.stderr.close()
        return code

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line)
            if found := re.search(r"listening .*address=(\S+)", line):
                self.address = found[1]
                self._listening.set()
        self._listening.set()
