"""Ceph's object class ``lock``: advisory locks on an object that expire unless they are renewed.

The OSD stores a lock as an attribute of the object, with the client, cookie and expiry of each
holder, and checks the expiry by its own clock. If the object does not exist, taking a lock creates
it. The lock calls of librados block and have no time limit, so this module encodes requests and
decodes replies itself. The format is defined in Ceph's ``src/cls/lock/cls_lock_ops.h`` and
``cls_lock_types.h``; Linux implements it in ``net/ceph/cls_lock_client.c``.
"""

from __future__ import annotations

import errno
import functools
import struct
from dataclasses import dataclass
from typing import NamedTuple

from zlog._base.deadline import Deadline
from zlog._base.io import Io
from zlog._base.names import DIRECTORY_OBJECT
from zlog._base.refusals import from_code
from zlog.errors import CorruptEntry, StoreUnavailable, ZlogError

_EXCLUSIVE, _SHARED = 1, 2
_MAY_RENEW, _MUST_RENEW = 1, 2
_NANOSECONDS = 1_000_000_000


class Holder(NamedTuple):
    """A holder of a lock.

    Attributes:
        client: the RADOS client, in the encoding of the object class.
        cookie: an id that distinguishes several holders in the same client.
        description: the holder's description of itself.
        expires: when the lock expires unless it is renewed: seconds since 1970, by the OSD's clock.
    """

    client: bytes
    cookie: str
    description: str
    expires: float


@dataclass(frozen=True)
class RadosLock:
    """A named lock on the directory object of a namespace, as one holder uses it.

    On a store that is not on Ceph, every call succeeds and has no effect.

    Attributes:
        cookie: an id that distinguishes this holder from all others.
        description: a text about this holder for others to read.
        shared: whether any number of holders may have the lock at once.
    """

    io: Io
    name: str
    cookie: str
    description: str
    shared: bool = False

    async def take(self, seconds: float, deadline: Deadline, *, only_renew: bool = False) -> bool:
        """Take or renew the lock. Returns False if another holder has it.

        Args:
            seconds: the time after which the lock expires unless it is renewed.
            only_renew: whether to renew the lock only if this holder has it. Otherwise returns
                False.

        Raises:
            StoreTimeout: the store did not answer in time. The request may still take effect.
            StoreUnavailable: the store failed, or does not permit the call.
        """
        flag, refusal = (_MUST_RENEW, errno.ENOENT) if only_renew else (_MAY_RENEW, errno.EBUSY)
        whole, nanoseconds = divmod(round(seconds * _NANOSECONDS), _NANOSECONDS)
        reply = await self._call(
            "lock",
            deadline,
            bytes((_SHARED if self.shared else _EXCLUSIVE,)),
            _string(self.cookie),
            _string(""),  # the tag
            _string(self.description),
            struct.pack("<IIB", whole, nanoseconds, flag),
            expected=refusal,
        )
        return reply is not None

    async def release(self, deadline: Deadline) -> None:
        """Release the lock if this holder has it. Raises as :meth:`take`."""
        await self._call("unlock", deadline, _string(self.cookie))

    async def holders(self, deadline: Deadline) -> list[Holder]:
        """Return the holders whose lock has not expired. Raises as :meth:`take`."""
        reply = await self._call("get_info", deadline)
        return [] if reply is None else decode_info(reply)

    async def break_(self, holder: Holder, deadline: Deadline) -> None:
        """Take the lock from a holder if it still has it. Raises as :meth:`take`."""
        await self._call("break_lock", deadline, holder.client, _string(holder.cookie))

    async def _call(
        self, method: str, deadline: Deadline, *fields: bytes, expected: int = errno.ENOENT
    ) -> bytes | None:
        """Run a method. ``fields`` follow the lock's name in its request.

        Returns None if the method answers with the expected errno.
        """
        if not self.io.store.pool:
            return _framed(bytes(4))  # no holders
        request = _framed(_string(self.name), *fields)
        start = functools.partial(
            self.io.store.lock, object=DIRECTORY_OBJECT, method=method, request=request
        )
        reply = await self.io.run(start, deadline)
        if reply.code == -expected:
            return None
        if reply.code < 0:
            raise self._error(reply.code, method)
        return bytes(reply.payload)

    def _error(self, code: int, method: str) -> ZlogError:
        what = f"cannot run {method} of the lock {self.name!r} on {DIRECTORY_OBJECT}"
        if code in (-errno.EPERM, -errno.EACCES):
            return StoreUnavailable(
                f"{what}: the OSD refuses Ceph's class `lock` to this client",
                hint="Give it caps such as: osd 'allow pool POOL class zlog, allow pool POOL"
                f" object_prefix {DIRECTORY_OBJECT} class lock' (docs/operating.md).",
                retryable=False,
            )
        return from_code(code, what)


# Before each structure: its version, the oldest version that can read it, and its length.
_FRAME = struct.Struct("<BBI")
_CLIENT_BYTES = 9


def decode_info(reply: bytes) -> list[Holder]:
    """Decode the holders of a lock. Raises CorruptEntry if the reply is malformed."""
    try:
        reader = _Reader(reply).frame()
        return [_holder(reader) for _ in range(reader.number())]
    except (struct.error, UnicodeDecodeError) as error:
        raise CorruptEntry(f"the class lock sent a malformed reply: {error}") from error


def _holder(reader: _Reader) -> Holder:
    identity = reader.frame()
    client = identity.take(_CLIENT_BYTES)
    cookie = identity.string()
    info = reader.frame()
    seconds, nanoseconds = info.number(), info.number()
    info.take(1)  # announces the client's address, a structure
    info.frame()
    return Holder(client, cookie, info.string(), seconds + nanoseconds / _NANOSECONDS)


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<I", len(data)) + data


def _framed(*parts: bytes) -> bytes:
    body = b"".join(parts)
    return _FRAME.pack(1, 1, len(body)) + body


class _Reader:
    """Decodes a reply. Its methods raise struct.error at the end of the data."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        part = self._data[self._at : self._at + count]
        if len(part) < count:
            raise struct.error(f"{len(self._data)} bytes are too few")
        self._at += count
        return part

    def number(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def string(self) -> str:
        return self.take(self.number()).decode()

    def frame(self) -> _Reader:
        """Return a reader of the next structure, to whose end newer versions only add."""
        _, _, length = _FRAME.unpack(self.take(_FRAME.size))
        return _Reader(self.take(length))
