"""The limits of the sequencer, with their units. No client can make it exceed a limit."""

from __future__ import annotations

from dataclasses import dataclass

from zlog.limits import GRANT_COUNT_MAX


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on a sequencer's connections and logs, and on its load on the store."""

    connections_max: int = 1024
    """Number of connections. Another connection is answered LIMIT and closed."""

    connections_per_address_max: int = 512
    """Number of connections from one IP address. Another one is answered LIMIT and closed."""

    greeting_max: int = 256
    """Number of connections that have not completed TLS, HELLO and token. Another one is answered
    LIMIT, so unauthenticated peers cannot use up ``connections_max``."""

    logs_max: int = 65536
    """Number of known logs. To add another log, the sequencer forgets one that is not open."""

    logs_per_connection_max: int = 16384
    """Number of handles on one connection, which all handles of a process share: a quarter of
    ``logs_max``. A frame has 16 bits for a handle."""

    positions_burst: int = 4 * GRANT_COUNT_MAX
    """Number of positions that one connection may take at once. If it requests more, the answer is
    LIMIT. Grants of one position do not count, because each costs the client a frame. A large grant
    also costs only a frame, but readers need an operation for each of its unwritten positions."""

    positions_per_s: int = 64 * GRANT_COUNT_MAX
    """Positions by which a connection's allowance grows per second: three times as many as the
    fastest appends of one process (docs/performance.md)."""

    outstanding_per_connection_max: int = 16384
    """Number of unanswered OPENs and WAITs of one connection: a quarter of ``outstanding_max``.
    Each follower of a process has a WAIT."""

    outstanding_max: int = 65536
    """Number of unanswered OPENs and WAITs of all connections together."""

    open_bytes_max: int = 1024
    """Size of an OPEN's payload in bytes. The longest address takes 657 bytes."""

    wait_ms_max: int = 60_000
    """Duration of a WAIT. A longer WAIT is answered TIMEOUT after this time."""

    status_logs_max: int = 1000
    """Number of logs in the answer to STATUS."""

    activations_max: int = 16
    """Number of logs that are taken over at once. Others queue, to limit the load on the store."""

    sweep_max: int = 8
    """Number of a former leader's logs that are taken over at once. It is below
    ``activations_max``, so logs that clients request need not wait for these."""

    look_s: float = 0.1
    """Seconds between two checks of a log's epoch that clients request. Each check costs an
    operation on every stripe object."""

    activation_s_max: float = 30.0
    """Seconds that a takeover may take."""

    scrub_bytes_s_max: int = 4 << 20
    """Bytes per second that a leader audits in the background. 0 disables the audit."""

    stores_max: int = 64
    """Number of pools and namespaces whose stores are open."""

    hello_s_max: float = 5.0
    """Seconds from the start of a connection to the end of its greeting: TLS, HELLO and token."""

    idle_s_max: float = 3600.0
    """Seconds after which a connection without requests is closed. Its client connects again for
    the next request."""

    stall_s_max: float = 60.0
    """Seconds after which a peer that does not read its answers is disconnected."""

    write_buffer_bytes_max: int = 1 << 20
    """Bytes of unread answers to a peer. Above this, its requests are not read."""

    complaint_s: float = 10.0
    """Seconds between two log lines about connections that are closed for the same reason."""

    stop_s_max: float = 10.0
    """Seconds that a clean stop may take. If a log is not released in time, its clients notice."""
