"""What processes use of this machine, as Linux tells in /proc: CPU time and memory."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterable
from pathlib import Path

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_OSD = "ceph-osd"


def own_cpu_seconds() -> float:
    """Return the CPU time of this process so far, all threads."""
    return time.process_time()


def own_memory_peak() -> int:
    """Return the bytes of memory that this process had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Processes:
    """Other processes of this machine, whose CPU time can be seen while they live."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._pids = tuple(pids)

    def __bool__(self) -> bool:
        return bool(self._pids)

    def cpu_seconds(self) -> float:
        """Return the CPU time of all of them so far."""
        return sum(map(_cpu_seconds, self._pids))


def _cpu_seconds(pid: int) -> float:
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return 0.0
    fields = text.rpartition(")")[2].split()  # the name before may hold anything
    return (int(fields[11]) + int(fields[12])) / _TICKS


def connected_osds() -> Processes:
    """Return the OSDs of this machine to which this process has a connection.

    Other clusters' OSDs on the same machine are none of ours; those of other machines, and those
    that this user may not look at are not seen.
    """
    ends = {(local, remote) for local, remote, inode in _connections() if inode in _sockets("self")}
    theirs = {inode for local, remote, inode in _connections() if (remote, local) in ends}
    return Processes(pid for pid in _pids_of(_OSD) if theirs & _sockets(str(pid)))


def _connections() -> list[tuple[str, str, str]]:
    """Return local address, remote address and inode of every TCP connection."""
    found = []
    for name in ("tcp", "tcp6"):
        try:
            lines = (_PROC / "net" / name).read_text().splitlines()[1:]
        except OSError:
            continue
        found += [(words[1], words[2], words[9]) for words in map(str.split, lines)]
    return found


def _sockets(process: str) -> set[str]:
    """Return the inodes of a process's sockets."""
    found = set()
    try:
        for descriptor in (_PROC / process / "fd").iterdir():
            target = str(descriptor.readlink())
            if target.startswith("socket:["):
                found.add(target[len("socket:[") : -1])
    except OSError:  # it has ended, is another user's, or has just closed one
        pass
    return found


def _pids_of(name: str) -> list[int]:
    pids = []
    for process in _PROC.iterdir():
        if not process.name.isdecimal():
            continue
        try:
            if (process / "comm").read_text().strip() == name:
                pids.append(int(process.name))
        except OSError:
            continue
    return pids
