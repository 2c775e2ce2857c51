"""Partitions: a network namespace in which each OSD has an address that can be cut off.

All is on the loopback device of the namespace. A rule before the kernel's own sends what goes from
one address to another nowhere, in silence, as when a cable is cut, and what was under way comes
later.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

MONITOR = "127.0.0.1"
"""Its address, and that of all clients."""

_INSIDE = "ZLOG_OWN_NETWORK"
_RULE = "10"
_LOCAL = "100"


def address(osd: int) -> str:
    """Return the address of an OSD."""
    return f"127.0.1.{10 + osd}"


def options(osds: int) -> tuple[str, ...]:
    """Return what a cluster's ceph.conf needs for it."""
    own = (f"osd.{number}:public addr={address(number)}" for number in range(osds))
    return (*own, "osd:ms bind before connect=true")


def move_into_own_network() -> None:
    """Start this program again in a network namespace of its own; return where it is in one.

    Needs root, and the commands unshare and ip.
    """
    if os.environ.get(_INSIDE) != "1":
        os.environ[_INSIDE] = "1"
        os.execvp("unshare", ["unshare", "--net", sys.executable, *sys.orig_argv[1:]])
    _ip("link", "set", "lo", "up")
    _ip("rule", "add", "pref", _LOCAL, "lookup", "local")
    _ip("rule", "del", "pref", "0")


@contextmanager
def cut_off(osd: int, osds: int, chance: random.Random) -> Iterator[None]:
    """Cut an OSD off from all others, from another OSD, or from the monitor and all clients."""
    others = [address(number) for number in range(osds) if number != osd]
    far = chance.choice(([*others, MONITOR], [chance.choice(others)], [MONITOR]))
    ways = [(address(osd), other) for other in far] + [(other, address(osd)) for other in far]
    for source, target in ways:
        _ip("rule", "add", "pref", _RULE, "from", source, "to", target, "blackhole")
    yield
    for _ in ways:
        _ip("rule", "del", "pref", _RULE)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)
