"""The interface of sequencer clients: addresses, options and grants."""

from __future__ import annotations

import ipaddress
import socket
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from zlog._base.deadline import Deadline
from zlog.errors import SequencerUnavailable
from zlog.limits import GRANT_COUNT_MAX
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
"""Options of a ``ceph://`` URL that are also fields of ``Credentials``. The default of each is an
environment variable: ``ZLOG_`` and its name in upper case."""


class Endpoint(NamedTuple):
    """The address of a sequencer, and whether it uses TLS."""

    host: str
    port: int
    tls: bool


class NotConnected(SequencerUnavailable):
    """No connection to the sequencer could be made.

    Attributes:
        refused: whether the machine refused the connection, because no process listens there.
    """

    refused: bool = False


class OtherProtocol(SequencerUnavailable):
    """The sequencer speaks another version of the protocol."""


class OtherStore(SequencerUnavailable):
    """The sequencer serves another store, such as the original of this copy."""

    hint = (
        "This store is a copy. Its logs continue without the original's sequencer after a few"
        " seconds. To start a sequencer for the copy, use `zlog seqr`."
    )


class Grant(NamedTuple):
    """A sequencer's answer: its epoch, and the first position of a grant, or the tail."""

    epoch: int
    position: int


class LogAddress(NamedTuple):
    """A log in a pool of the cluster. Pool and namespace are empty if the store is not on Ceph.

    ``log_id`` distinguishes the log from a removed log with the same name. ``store`` is the store's
    identity, which distinguishes the log from its restored copy in another store. ``store`` is
    empty if the identity is unknown, or if a sequencer has already checked it.
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
        """Return the payload of an OPEN frame.

        This is the pool, namespace, name, id (hex) and, if known, identity, separated by NUL bytes.
        """
        store = f"\0{self.store}" if self.store else ""
        return f"{self.pool}\0{self.namespace}\0{self.name}\0{self.log_id:016x}{store}".encode()

    @classmethod
    def decode(cls, payload: bytes) -> LogAddress:
        """Decode the payload of an OPEN. Raises ValueError if it is invalid."""
        pool, namespace, name, log_id, *store = payload.decode().split("\0")
        if len(pool.encode()) > POOL_BYTES_MAX or len(namespace.encode()) > NAMESPACE_BYTES_MAX:
            raise ValueError("the name of a pool or namespace is too long")
        if len(store) > 1 or len("".join(store).encode()) > IDENTITY_BYTES_MAX:
            raise ValueError("the identity of a store is too long")
        address = cls(pool, namespace, check_log_name(name), int(log_id, 16), *store)
        if address.encode() != payload or not 0 <= address.log_id < 2**64:
            raise ValueError("the log's id is not 16 lowercase hexadecimal digits")
        return address


class Asking(Protocol):
    """Takes a grant without a task: from shared memory, or like a future from a connection."""

    def granted(self, first: int) -> None:
        """Take the first of the granted positions."""

    def done(self) -> bool:
        """Whether it waits no longer."""

    def set_result(self, reply: Any, /) -> None:
        """Take the sequencer's reply, which may be a refusal."""

    def set_exception(self, error: BaseException, /) -> None:
        """Note that the connection was lost."""


class SequencerClient(Protocol):
    """The interface of all sequencer clients. A blocking client's coroutines never suspend.

    If a grant has a higher epoch than the caller's view, the view is out of date.

    All methods except ``close`` raise:
        SequencerUnavailable: the sequencer refuses or cannot be reached, or the connection ends
            during the call. It is safe to repeat ``next``, because unused positions are just holes.
        SequencerTimeout: the deadline passed.
        LogNotFound: the log does not exist.
        StaleEpoch: the sequencer is in another epoch, which is the error's ``epoch``.
    """

    def ask(self, log: LogAddress, count: int, epoch: int, asking: Asking) -> bool:
        """Start like ``next``, but let ``asking`` take the answer. Clients for threads cannot.

        Returns False, and does nothing, if the log is not open in this epoch.
        """

    async def open(self, log: LogAddress, dead_epoch: int, deadline: Deadline) -> Grant:
        """Open the log at the sequencer, and return the sequencer's epoch and the tail.

        The other methods do this when necessary. ``dead_epoch`` is 0, or an epoch that may have
        ended. If it has, the sequencer starts a later one.
        """

    async def next(self, log: LogAddress, count: int, epoch: int, deadline: Deadline) -> Grant:
        """Take ``count`` (1 to 65536) consecutive positions.

        ``epoch`` is the epoch of the caller's view. If the grant has a higher epoch, refresh the
        view before you use the positions.
        """

    async def tail(self, log: LogAddress, epoch: int, deadline: Deadline) -> Grant:
        """Return the next position that will be granted."""

    async def wait(
        self, log: LogAddress, epoch: int, position: int, timeout: float, deadline: Deadline
    ) -> Grant | None:
        """Wait until the tail is above ``position``. Returns None if ``timeout`` passes first."""

    async def status(self, deadline: Deadline) -> dict[str, object]:
        """Return the version, connections, logs and rates, for operators."""

    async def close(self) -> None:
        """End the connection. Waiting calls fail. It is safe to call this again."""


def check_count(count: int) -> None:
    """Raise ValueError if one grant cannot have this many positions."""
    if not 0 < count <= GRANT_COUNT_MAX:
        raise ValueError(f"a grant must have 1 to {GRANT_COUNT_MAX} positions, not {count}")


def parse_host_port(text: str) -> tuple[str, int]:
    """Split ``HOST:PORT``, with an IPv6 host in brackets. Raises ValueError if it is invalid."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        raise ValueError(f"{text!r} is not of the form HOST:PORT")
    return host, int(port)


def reachable_at(host: str, listening: socket.socket) -> str:
    """Return the ``HOST:PORT`` at which clients reach a socket that was bound to ``host``.

    If ``host`` means all addresses, it is replaced by the name of this machine.
    """
    address, port = listening.getsockname()[:2]
    if ipaddress.ip_address(address).is_unspecified:
        host = socket.gethostname()
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@lru_cache(maxsize=64)
def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server at this address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_remote(address: str) -> bool:
    """Whether an address in a view belongs to a sequencer on the network."""
    return address.startswith((_TCP, _TLS))


def parse_address(address: str) -> Endpoint:
    """Split ``tcp://HOST:PORT`` or ``tls://HOST:PORT``. Raises ValueError for anything else."""
    if not is_remote(address):
        raise ValueError(
            f"{address!r} is not an address of the form tcp://HOST:PORT or tls://HOST:PORT"
        )
    scheme, where = address[: len(_TCP)], address[len(_TCP) :]
    return Endpoint(*parse_host_port(where), scheme == _TLS)


def parse_given_address(text: str) -> str:
    """Convert a given address to a view's form: ``HOST:PORT`` is TCP. Raises ValueError."""
    return format_address(*parse_address(text if "://" in text else _TCP + text))


def format_address(host: str, port: int, tls: bool = False) -> str:
    """Return the address of a sequencer as it appears in views and in the directory."""
    scheme = _TLS if tls else _TCP
    return f"{scheme}[{host}]:{port}" if ":" in host else f"{scheme}{host}:{port}"
