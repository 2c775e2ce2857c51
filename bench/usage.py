"""CPU time and memory of processes on this machine, from Linux's /proc."""

from __future__ import annotations

import contextlib
import os
import resource
import time
from collections.abc import Iterable
from pathlib import Path

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")


def own_cpu_seconds() -> float:
    """Return the CPU time of all threads of this process so far."""
    return time.process_time()


def own_memory_peak() -> int:
    """Return the maximum memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Processes:
    """Other processes of this machine, whose CPU time can be read while they run."""

    def __init__(self, pids: Iterable[int]) -> None:
        self.pids = tuple(pids)

    def __bool__(self) -> bool:
        return bool(self.pids)

    def cpu_seconds(self) -> float:
        """Return the CPU time of all these processes so far."""
        return sum(map(_cpu_seconds, self.pids))


def _cpu_seconds(pid: int) -> float:
    fields = _read(_PROC / str(pid) / "stat").rpartition(")")[2].split()  # the name has any text
    return (int(fields[11]) + int(fields[12])) / _TICKS if fields else 0.0


def connected_osds() -> Processes:
    """Return the OSDs of this machine to which this process has a connection.

    OSDs of other clusters are not included, nor are OSDs on other machines or of another user.
    """
    # Local address, remote address and inode of every TCP connection.
    connections = [
        (words[1], words[2], words[9])
        for name in ("tcp", "tcp6")
        for words in map(str.split, _read(_PROC / "net" / name).splitlines()[1:])
    ]
    own = _sockets(_PROC / "self")
    ends = {(local, remote) for local, remote, inode in connections if inode in own}
    theirs = {inode for local, remote, inode in connections if (remote, local) in ends}
    return Processes(
        int(process.name)
        for process in _PROC.iterdir()
        if _read(process / "comm").strip() == "ceph-osd" and theirs & _sockets(process)
    )


def _sockets(process: Path) -> set[str]:
    """Return the inodes of a process's sockets."""
    found = set()
    with contextlib.suppress(OSError):  # it has ended, or belongs to another user
        for descriptor in (process / "fd").iterdir():
            with contextlib.suppress(OSError):  # closed since, like the descriptor of this listing
                target = str(descriptor.readlink())
                if target.startswith("socket:["):
                    found.add(target[len("socket:[") : -1])
    return found


def _read(path: Path) -> str:
    """Return a file's text, or an empty text if it does not exist or can't be read."""
    try:
        return path.read_text()
    except OSError:
        return ""
