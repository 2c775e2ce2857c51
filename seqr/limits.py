"""Every limit of the sequencer, with its unit. Nothing a client sends makes it exceed one."""

from __future__ import annotations

from dataclasses import dataclass

from zlog.limits import GRANT_COUNT_MAX


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what connections, logs and the store can cost the sequencer.

    How many positions one grant may have is part of the protocol: ``GRANT_COUNT_MAX`` in
    ``zlog.limits``.
    """

    connections_max: int = 1024
    """Connections; one more is answered LIMIT and closed."""

    connections_per_address_max: int = 512
    """Connections from one IP address; one more is answered LIMIT and closed."""

    greeting_max: int = 256
    """Connections that are not through with TLS, HELLO and token; one more is answered LIMIT. So
    strangers can't take the place of clients."""

    logs_max: int = 65536
    """Logs known at once. The one that no connection has open makes room first."""

    logs_per_connection_max: int = 16384
    """Handles on one connection, which is all that a process has; a quarter of ``logs_max``. The
    frame has 16 bits for them."""

    positions_burst: int = 4 * GRANT_COUNT_MAX
    """Positions that one connection may take at once; more is answered LIMIT. Those that it takes
    one by one don't count: each of them costs it a frame, while a grant of many costs readers an
    operation for each if nothing is written there."""

    positions_per_s: int = 64 * GRANT_COUNT_MAX
    """By how many, in a second, what a connection may take grows again: 4.2 million, three times
    what one process was seen to append (docs/performance.md)."""

    outstanding_per_connection_max: int = 16384
    """OPENs and WAITs of one connection that wait for their answer: a WAIT for each follower of a
    process. A quarter of ``outstanding_max``."""

    outstanding_max: int = 65536
    """OPENs and WAITs of all connections that wait for their answer."""

    open_bytes_max: int = 1024
    """Payload of an OPEN; the longest address takes 657."""

    wait_ms_max: int = 60_000
    """The longest WAIT; one that asks for more is answered TIMEOUT after this."""

    status_logs_max: int = 1000
    """Logs that STATUS lists."""

    activations_max: int = 16
    """Logs being taken over at once; others queue, so that the store isn't flooded."""

    sweep_max: int = 8
    """Logs of a former leader that are looked at or taken over at once, unasked; fewer than
    ``activations_max``, so that those that clients ask for don't wait behind them."""

    look_s: float = 0.1
    """Between two looks whether a log's epoch is over because a client says so, in seconds. They
    cost the store an operation on each stripe object."""

    activation_s_max: float = 30.0
    """One take-over, in seconds."""

    scrub_bytes_s_max: int = 4 << 20
    """Stored data that a leader audits in the background, in bytes per second; 0: none."""

    stores_max: int = 64
    """Pools and namespaces that the sequencer keeps a store open for."""

    hello_s_max: float = 5.0
    """Between a connection and the end of its greeting (TLS, HELLO, token), in seconds."""

    idle_s_max: float = 3600.0
    """How long a connection may ask nothing and wait for nothing, in seconds, before it is closed.
    Its client connects again when it has something to ask."""

    stall_s_max: float = 60.0
    """How long a peer may leave its answers unread, in seconds, before it is cut off."""

    write_buffer_bytes_max: int = 1 << 20
    """Answers that a peer has not read; above this nothing more is read from it."""

    complaint_s: float = 10.0
    """Between two lines in the log about connections refused or closed for the same reason."""

    stop_s_max: float = 10.0
    """A clean stop, in seconds; what could not be released by then is left to the clients."""
