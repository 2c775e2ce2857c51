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
        self._placed = 0
        self._origins: Counter[str] = Counter()
        self._greeting = 0
        self.outstanding = 0

    def __len__(self) -> int:
        return len(self._connections)

    @property
    def has_room(self) -> bool:
        """Whether one more connection may begin its greeting."""
        return self._greeting < self._limits.greeting_max

    def enter(self, connection: Connection, origin: str) -> None:
        """Count a new connection."""
        connection.origin = origin
        self._connections.add(connection)
        self._greeting += 1

    def take_place(self, connection: Connection) -> bool:
        """Give a connection that says HELLO one of the places for clients, if one is left.

        Not sooner: with TLS it could not be told that there is none.
        """
        limits, origin = self._limits, connection.origin
        if connection.placed:
            return True
        if (
            self._placed >= limits.connections_max
            or self._origins.get(origin, 0) >= limits.connections_per_address_max
        ):
            return False
        connection.placed = True
        self._placed += 1
        self._origins[origin] += 1
        return True

    def let_in(self, connection: Connection) -> None:
        """Note that a connection is through with its greeting."""
        connection.greeted = connection.expects_requests = True
        self._greeting -= 1

    def leave(self, connection: Connection) -> None:
        """Forget a connection that waits for nothing any more. Can be called again."""
        if connection not in self._connections:
            return
        self._connections.discard(connection)
        if connection.placed:
            self._placed -= 1
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
