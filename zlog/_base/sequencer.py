"""What sequencer clients take and give: addresses, options, grants, and the interface of all."""

from __future__ import annotations

import ipaddress
import socket
from typing import NamedTuple, Protocol

from zlog._base.deadline import Deadline
from zlog.errors import SequencerUnavailable
from zlog.names import check_log_name

POOL_BYTES_MAX = 255
NAMESPACE_BYTES_MAX = 255
IDENTITY_BYTES_MAX = 64

SHARED_ADDRESS = "store:"
"""The address of the sequencer that processes share through an embedded store."""

_TCP, _TLS = "tcp://", "tls://"

CREDENTIAL_OPTIONS = {
    "sequencer_ca": "ca",
    "sequencer_cert": "certificate",
    "sequencer_key": "key",
    "sequencer_token_file": "token_file",
}
"""Options of a ``ceph://`` URL. In upper case with ``ZLOG_`` before, they are the environment
variables that count where the URL does not say."""


class Endpoint(NamedTuple):
    """Where a sequencer listens, and whether it speaks TLS there."""

    host: str
    port: int
    tls: bool


class NotConnected(SequencerUnavailable):
    """No connection to the sequencer was made.

    Attributes:
        refused: whether its machine refused it, which shows that no process listens there.
    """

    def __init__(self, message: str, *, hint: str | None = None, refused: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.refused = refused


class OtherProtocol(SequencerUnavailable):
    """The sequencer speaks another version of the protocol."""


class OtherStore(SequencerUnavailable):
    """The sequencer serves another store than this one, such as one that this is a copy of.

    For the log at hand it is as good as gone.
    """

    hint = (
        "Logs of a copy go on without the sequencer of the original after a few seconds; start one"
        " for the copy: `zlog seqr`."
    )


class Grant(NamedTuple):
    """An answer of a sequencer: a position, and the epoch in which it counts.

    From ``next`` the position is the first of the granted range; otherwise it is the tail.
    """

    epoch: int
    position: int


class LogAddress(NamedTuple):
    """Which log, in which pool of the cluster; pool and namespace are empty without Ceph.

    ``log_id`` is part of it because epochs start again when a log is removed and made anew: a
    sequencer must never grant for the new log what it knows of the old one. A copy of the store
    has logs of the same ids, and ``store`` tells it from the original: its ``identity``, empty
    where that is not known, and within a sequencer, which has looked at it.
    """

    pool: str
    namespace: str
    name: str
    log_id: int
    store: str = ""

    def __str__(self) -> str:
        where = "/".join(part for part in (self.pool, self.namespace) if part)
        return f"{where}/{self.name}" if where else self.name

    def encode(self) -> bytes:
        """Return the payload of an OPEN: pool, namespace, name, id in hex, separated by NUL.

        And the store's identity, if it is known.
        """
        store = f"\0{self.store}" if self.store else ""
        return f"{self.pool}\0{self.namespace}\0{self.name}\0{self.log_id:016x}{store}".encode()

    @classmethod
    def decode(cls, payload: bytes) -> LogAddress:
        """Read the payload of an OPEN, which comes from a stranger.

        Raises:
            ValueError: it is not exactly what ``encode`` makes of an allowed address.
        """
        pool, namespace, name, log_id, *store = payload.decode().split("\0")
        if len(pool.encode()) > POOL_BYTES_MAX or len(namespace.encode()) > NAMESPACE_BYTES_MAX:
            raise ValueError("the name of a pool or namespace is too long")
        if len(store) > 1 or len("".join(store).encode()) > IDENTITY_BYTES_MAX:
            raise ValueError("the identity of a store is too long")
        address = cls(pool, namespace, check_log_name(name), int(log_id, 16), *store)
        if address.encode() != payload or not 0 <= address.log_id < 2**64:
            raise ValueError("the log's id is not 16 lowercase hexadecimal digits")
        return address


class SequencerClient(Protocol):
    """A connection to the sequencer; the same for every kind of sequencer.

    The blocking clients' coroutines never suspend: they block inside, and the client's logic,
    written once as coroutines, is then driven by ``send(None)``.

    All methods but ``close`` raise ``SequencerUnavailable`` when the sequencer is out of reach,
    refuses, or goes away in the middle of a call (a NEXT may then be repeated: what was granted
    and not used is a hole), ``SequencerTimeout`` when the deadline passes first, ``LogNotFound``,
    and ``StaleEpoch`` when caller and sequencer don't agree on the epoch and the client can't mend
    it by itself; its ``epoch`` is the sequencer's. A grant in an epoch above the caller's means
    that the caller's view is out of date.
    """

    async def open(self, log: LogAddress, dead_epoch: int, deadline: Deadline) -> Grant:
        """Have the log open, in an epoch above ``dead_epoch`` (0: any); the position is the tail.

        The other methods open a log by themselves; this is for telling that an epoch is dead. If
        the sequencer finds that it is not, it goes on in that epoch.
        """

    async def next(self, log: LogAddress, count: int, epoch: int, deadline: Deadline) -> Grant:
        """Take ``count`` positions (1 to 65536), granted as one range from the first on.

        ``epoch`` is that of the caller's view. A grant in a higher epoch is of use only after the
        view was refreshed and has that epoch.
        """

    async def tail(self, log: LogAddress, epoch: int, deadline: Deadline) -> Grant:
        """Ask for the next position that will be handed out."""

    async def wait(
        self, log: LogAddress, epoch: int, position: int, timeout: float, deadline: Deadline
    ) -> Grant | None:
        """Wait until the tail has passed ``position``; None when the time goes first."""

    async def status(self, deadline: Deadline) -> dict[str, object]:
        """Ask for what an operator wants to see: version, connections, logs, rates."""

    async def close(self) -> None:
        """Drop the connection, failing calls that wait on it. Can be called again."""


def parse_host_port(text: str) -> tuple[str, int]:
    """Split ``HOST:PORT``; an IPv6 host stands in brackets.

    Raises:
        ValueError: no host, or no port from 0 to 65535.
    """
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        raise ValueError(f"{text!r} is not HOST:PORT")
    return host, int(port)


def reachable_at(host: str, listening: socket.socket) -> str:
    """Return the ``HOST:PORT`` at which clients reach a listening socket.

    Args:
        host: given to listen on. If it stands for all addresses, the machine's name replaces it.
        listening: bound to that host.
    """
    address, port = listening.getsockname()[:2]
    if ipaddress.ip_address(address).is_unspecified:
        host = socket.gethostname()
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_remote(address: str) -> bool:
    """Whether the address of a view is that of a sequencer over the network."""
    return address.startswith((_TCP, _TLS))


def parse_address(address: str) -> Endpoint:
    """Split the ``tcp://HOST:PORT`` or ``tls://HOST:PORT`` of a view.

    Raises:
        ValueError: it is something else.
    """
    if not is_remote(address):
        raise ValueError(
            f"{address!r} is not an address of the form tcp://HOST:PORT or tls://HOST:PORT"
        )
    scheme, where = address[: len(_TCP)], address[len(_TCP) :]
    return Endpoint(*parse_host_port(where), scheme == _TLS)


def parse_given_address(text: str) -> str:
    """Return the address that a user means: ``HOST:PORT`` stands for ``tcp://HOST:PORT``.

    Raises:
        ValueError: it is something else.
    """
    return format_address(*parse_address(text if "://" in text else _TCP + text))


def format_address(host: str, port: int, tls: bool = False) -> str:
    """Return the address of a sequencer as views and the directory carry it."""
    scheme = _TLS if tls else _TCP
    return f"{scheme}[{host}]:{port}" if ":" in host else f"{scheme}{host}:{port}"
