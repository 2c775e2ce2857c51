"""Ports for monitors that are free now, and probably again when the monitor is restarted."""

from __future__ import annotations

import random
import socket

from . import ClusterError

# The ports are below the range that kernels use for outgoing connections, so a monitor's port is
# still free when it is started again, and above the OSDs' own range (6800 to 7568).
_PORTS = range(20000, 32000)
_TRIES = 100


def free_ports(address: str, count: int) -> list[int]:
    """Return free ports at `address`. Raises ClusterError if there are too few."""
    found = [port for port in random.sample(_PORTS, _TRIES) if is_free(address, port)][:count]
    if len(found) < count:
        raise ClusterError(
            f"found {len(found)} of {count} free ports on {address} between {_PORTS[0]} and"
            f" {_PORTS[-1]}"
        )
    return found


def is_free(address: str, port: int) -> bool:
    """Whether no process listens on `port` at `address`."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True
