"""How full the sequencer is: connections, where they come from, and what waits for an answer."""

from __future__ import annotations

from collections import Counter

from zlog.seqr.limits import Limits
from zlog.seqr.machine.state import Connection


class Occupancy:
    """Counts what ``Limits`` bounds over all connections.

    Attributes:
        outstanding: OPENs and WAITs that wait for an answer.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._connections: set[Connection] = set()
        self._origins: Counter[str] = Counter()
        self._greeting = 0
        self.outstanding = 0

    def __len__(self) -> int:
        return len(self._connections)

    def has_room(self, origin: str) -> bool:
        """Whether one more connection may come from an IP address."""
        limits = self._limits
        return (
            len(self._connections) < limits.connections_max
            and self._greeting < limits.greeting_max
            and self._origins.get(origin, 0) < limits.connections_per_address_max
        )

    def enter(self, connection: Connection, origin: str) -> None:
        """Count a new connection."""
        connection.origin = origin
        self._connections.add(connection)
        self._origins[connection.origin] += 1
        self._greeting += 1

    def let_in(self, connection: Connection) -> None:
        """Note that a connection is through with its greeting."""
        connection.greeted = connection.expects_requests = True
        self._greeting -= 1

    def leave(self, connection: Connection) -> None:
        """Forget a connection that waits for nothing any more. Can be called again."""
        if connection not in self._connections:
            return
        self._connections.discard(connection)
        self._origins[connection.origin] -= 1
        if not self._origins[connection.origin]:
            del self._origins[connection.origin]
        if not connection.greeted:
            self._greeting -= 1

    def may_wait(self, connection: Connection) -> bool:
        """Whether one more request of a connection may wait for its answer."""
        return (
            connection.outstanding < self._limits.outstanding_per_connection_max
            and self.outstanding < self._limits.outstanding_max
        )

    def begin_wait(self, connection: Connection) -> None:
        """Count a request that waits."""
        connection.outstanding += 1
        self.outstanding += 1

    def end_wait(self, connection: Connection) -> None:
        """Count a request as answered, or as abandoned by its client."""
        connection.outstanding -= 1
        self.outstanding -= 1
