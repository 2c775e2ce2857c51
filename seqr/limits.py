"""The limits of the sequencer, with their units. No client can make it exceed one."""

from __future__ import annotations

from dataclasses import dataclass

from zlog.limits import GRANT_COUNT_MAX


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on the costs of connections, logs and the store.

    The size of a grant is limited by the protocol: ``GRANT_COUNT_MAX`` in ``zlog.limits``.
    """

    connections_max: int = 1024
    """Connections; one more is answered LIMIT and closed."""

    connections_per_address_max: int = 512
    """Connections from one IP address; one more is answered LIMIT and closed."""

    greeting_max: int = 256
    """Connections that have not completed TLS, HELLO and token; one more is answered LIMIT. So
    unauthenticated peers cannot use up ``connections_max``."""

    logs_max: int = 65536
    """Logs known at once. A log that no connection has open is forgotten to add another."""

    logs_per_connection_max: int = 16384
    """Handles on one connection, which a process shares; a quarter of ``logs_max``. A frame has 16
    bits for them."""

    positions_burst: int = 4 * GRANT_COUNT_MAX
    """Positions that one connection may take at once; more is answered LIMIT. Grants of one
    position do not count, since each costs the client a frame. A large grant costs a frame too, but
    readers need an operation for each of its positions that is not written."""

    positions_per_s: int = 64 * GRANT_COUNT_MAX
    """Growth of a connection's allowance per second: 4.2 million positions, three times the fastest
    appends of one process (docs/performance.md)."""

    outstanding_per_connection_max: int = 16384
    """Unanswered OPENs and WAITs of one connection, which has a WAIT for each follower of a
    process. A quarter of ``outstanding_max``."""

    outstanding_max: int = 65536
    """Unanswered OPENs and WAITs of all connections."""

    open_bytes_max: int = 1024
    """Payload of an OPEN; the longest address takes 657."""

    wait_ms_max: int = 60_000
    """The longest WAIT; a longer one is answered TIMEOUT after this time."""

    status_logs_max: int = 1000
    """Logs that STATUS lists."""

    activations_max: int = 16
    """Logs taken over at once; others queue, to limit the load on the store."""

    sweep_max: int = 8
    """Logs of a former leader taken over at once; fewer than ``activations_max``, so that logs that
    clients ask for need not wait for them."""

    look_s: float = 0.1
    """Between two checks of a log's epoch that clients ask for, in seconds. A check costs an
    operation on each stripe object."""

    activation_s_max: float = 30.0
    """One take-over, in seconds."""

    scrub_bytes_s_max: int = 4 << 20
    """Stored data that a leader audits in the background, in bytes per second; 0 disables it."""

    stores_max: int = 64
    """Pools and namespaces whose stores are open."""

    hello_s_max: float = 5.0
    """From accepting a connection to the end of its greeting (TLS, HELLO, token), in seconds."""

    idle_s_max: float = 3600.0
    """A connection without requests is closed after this many seconds. Its client connects again
    for its next request."""

    stall_s_max: float = 60.0
    """A peer that does not read its answers is disconnected after this many seconds."""

    write_buffer_bytes_max: int = 1 << 20
    """Unread answers to a peer; above this, its requests are not read."""

    complaint_s: float = 10.0
    """Between two log lines about connections closed for the same reason, in seconds."""

    stop_s_max: float = 10.0
    """A clean stop, in seconds. Clients notice for themselves if their log was not released."""
