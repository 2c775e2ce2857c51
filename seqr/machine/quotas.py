"""Counts of connections and outstanding requests, which ``Limits`` bounds."""

from __future__ import annotations

from collections import Counter

from zlog.seqr.limits import Limits
from zlog.seqr.machine.state import Connection


class Quotas:
    """Counts connections and waiting requests, and enforces their limits.

    Attributes:
        outstanding: the number of OPENs and WAITs that are not answered yet.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._connections: set[Connection] = set()
        self._clients: Counter[str] = Counter()  # by IP address, since HELLO
        self._greeting = 0
        self.outstanding = 0

    def __len__(self) -> int:
        return len(self._connections)

    def add(self, connection: Connection) -> bool:
        """Add a new connection. Returns False if too many have not completed their greeting."""
        if self._greeting >= self._limits.greeting_max:
            return False
        self._connections.add(connection)
        self._greeting += 1
        return True

    def say_hello(self, connection: Connection) -> bool:
        """Count a client that has sent its HELLO. Returns False if there are too many clients."""
        if not connection.counted:
            limits, clients = self._limits, self._clients
            connection.counted = (
                clients.total() < limits.connections_max
                and clients[connection.origin] < limits.connections_per_address_max
            )
            if connection.counted:
                clients[connection.origin] += 1
        return connection.counted

    def admit(self, connection: Connection) -> None:
        """Note that a connection has completed its greeting."""
        connection.greeted = connection.expects_requests = True
        self._greeting -= 1

    def remove(self, connection: Connection) -> None:
        """Remove a connection without outstanding requests. Can be called again."""
        if connection not in self._connections:
            return
        self._connections.discard(connection)
        self._greeting -= not connection.greeted
        if connection.counted:
            self._clients -= Counter([connection.origin])  # which drops a count of zero

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
        """Count a request as answered or abandoned."""
        connection.outstanding -= 1
        self.outstanding -= 1
