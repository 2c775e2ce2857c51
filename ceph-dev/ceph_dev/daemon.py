"""A Ceph daemon as a plain process, which can be started, found, signalled and waited for."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from . import ClusterError
from .settings import Folder

_LOG_LINES_SHOWN = 30
_CRASH_DUMP = "--- begin dump of recent events ---"  # thousands of lines, after the backtrace
_PACKAGES = "apt-get install --no-install-recommends ceph-mon ceph-osd ceph-mgr radosgw"


class State(str, Enum):
    """The state of a daemon's process."""

    RUNNING = "running"
    FROZEN = "frozen"
    STOPPED = "stopped"


def program(name: str) -> str:
    """The path of a Ceph program. Raises ClusterError, naming the packages, if it is missing."""
    # On Debian, the PATH of ordinary users has no sbin.
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/local/sbin")
    if path is None:
        raise ClusterError(f"{name} is not installed: {_PACKAGES}")
    return path


def run(arguments: Sequence[str], what: str) -> str:
    """Run a command and return its output. Raises ClusterError with its error message."""
    done = subprocess.run(
        arguments, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        words = (done.stderr.strip() or done.stdout.strip()).splitlines()[-_LOG_LINES_SHOWN:]
        raise ClusterError(f"{what} failed (status {done.returncode}):\n" + "\n".join(words))
    return done.stdout


@dataclass(frozen=True)
class Daemon:
    """A monitor, manager, OSD or gateway of one cluster.

    Call mkfs once, then start and stop (or kill) any number of times. Between two commands, only
    the pid file identifies the process, and pids are reused: a process counts as this daemon only
    if its command line names the program, the daemon and this cluster's conf.
    """

    folder: Folder
    kind: str
    id: str

    @property
    def name(self) -> str:
        """Ceph's name for it, like `osd.0`."""
        return f"{self.kind}.{self.id}"

    def command(self, *arguments: str) -> list[str]:
        """The command line that every process of this daemon begins with."""
        name, *words = self._begin
        return [program(name), *words, *arguments]

    @property
    def _begin(self) -> list[str]:
        """The program's name and the words that identify this daemon."""
        return [f"ceph-{self.kind}", "-i", self.id, "-c", str(self.folder.conf)]

    def mkfs(self, *arguments: str) -> None:
        """Create the daemon's data directory."""
        data = self.folder.data(self.name)
        data.mkdir(parents=True, exist_ok=True)
        run(self.command("--mkfs", *arguments), f"mkfs of {self.name}")

    def start(self) -> None:
        """Start the daemon unless it runs. Raises ClusterError if it dies before it serves."""
        if self.state() is not State.STOPPED:
            return
        self.folder.pid(self.name).unlink(missing_ok=True)
        try:
            # The daemon forks; its parent exits when the child is ready, with the child's verdict.
            run(self.command(), f"start of {self.name}")
        except ClusterError as error:
            raise ClusterError(f"{error}\n{self.log_tail()}") from None

    def state(self) -> State:
        """Return whether the daemon's process runs, is frozen by SIGSTOP, or does not exist."""
        with self._process() as process:
            if process is None:
                return State.STOPPED
            return State.FROZEN if _is_frozen(process.pid) else State.RUNNING

    def pid(self) -> int | None:
        """The pid of the daemon's process, or None if there is none."""
        with self._process() as process:
            return None if process is None else process.pid

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal. Returns False if the daemon does not run."""
        with self._process() as process:
            return process is not None and process.send(number)

    def kill(self) -> None:
        """Kill the process, as a crash would, and wait for its end."""
        with self._process() as process:
            if process is not None and process.send(signal.SIGKILL):
                process.wait(None)

    def stop(self, timeout: float) -> None:
        """End the process, or kill it after `timeout` seconds. A frozen one is resumed first."""
        stop_all([self], timeout)

    def log_tail(self) -> str:
        """Return the end of the daemon's log for error messages: after a crash, its backtrace."""
        path = self.folder.log(self.name)
        try:
            said = path.read_text(errors="replace").partition(_CRASH_DUMP)[0]
        except FileNotFoundError:
            return ""
        return "\n".join([f"{path} ends with:", *said.splitlines()[-_LOG_LINES_SHOWN:]])

    @contextlib.contextmanager
    def _process(self) -> Iterator[_Process | None]:
        """Open the daemon's process, so that its pid cannot pass to another process meanwhile."""
        try:
            pid = int(self.folder.pid(self.name).read_text())
            handle = os.pidfd_open(pid)
        except (FileNotFoundError, ValueError, ProcessLookupError):
            yield None
            return
        try:
            yield _Process(pid, handle) if self._is_ours(pid) else None
        finally:
            os.close(handle)

    def _is_ours(self, pid: int) -> bool:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        except (FileNotFoundError, ProcessLookupError):
            return False
        return [Path(words[0]).name, *words[1:5]] == self._begin


@dataclass(frozen=True)
class _Process:
    """A process held by a pidfd."""

    pid: int
    handle: int

    def send(self, number: signal.Signals) -> bool:
        try:
            signal.pidfd_send_signal(self.handle, number)
        except ProcessLookupError:
            return False
        return True

    def wait(self, timeout: float | None) -> bool:
        """Wait for the end of the process. Returns False after `timeout` seconds, unless None."""
        poll = select.poll()
        poll.register(self.handle, select.POLLIN)
        return bool(poll.poll(None if timeout is None else timeout * 1000))


def stop_all(daemons: Sequence[Daemon], timeout: float) -> None:
    """End several daemons at once. Those that still run after `timeout` seconds are killed.

    Each gets SIGTERM once: after a second one, an OSD discards what it was about to save.
    """
    deadline = time.monotonic() + timeout
    with contextlib.ExitStack() as stack:
        asked = []
        for daemon in daemons:
            process = stack.enter_context(daemon._process())
            if process is not None and process.send(signal.SIGTERM):
                process.send(signal.SIGCONT)
                asked.append(process)
        for process in asked:
            if not process.wait(max(0.0, deadline - time.monotonic())):
                process.send(signal.SIGKILL)
                process.wait(None)


def _is_frozen(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    # The name in brackets may contain any text. The state is the first word after it.
    return status.rpartition(")")[2].split()[0] in ("T", "t")
