"""Ceph's own class ``lock``: advisory locks on an object that end by themselves unless renewed.

The OSD keeps a lock as an attribute of the object, with each holder's client, cookie and time of
expiry, and judges by its own clock. A lock makes the object if it is missing. Requests and replies
are encoded here as the class has always had them, since librados has no calls for them that neither
block nor run without a time limit. Sources: Ceph, ``src/cls/lock/cls_lock_ops.h`` and
``cls_lock_types.h``; the same bytes are written by Linux, ``net/ceph/cls_lock_client.c``.
"""

from __future__ import annotations

import errno
import functools
import struct
from typing import NamedTuple

from zlog._base.deadline import Deadline
from zlog._base.io import Io
from zlog._base.refusals import from_errno
from zlog.errors import CorruptEntry, StoreUnavailable, ZlogError

_EXCLUSIVE, _SHARED = 1, 2
_MAY_RENEW, _MUST_RENEW = 1, 2
_NANOSECONDS = 1_000_000_000


class Holder(NamedTuple):
    """Who has a lock.

    Attributes:
        client: the RADOS client, as the class names it: a type and a number, opaque.
        cookie: what the holder told itself apart by.
        description: what the holder says of itself.
        expires: when the lock ends unless it is renewed, in seconds since 1970 by the OSD's clock.
    """

    client: bytes
    cookie: str
    description: str
    expires: float


class RadosLock:
    """One named lock on one object, as one holder sees it.

    Args:
        io: over a store on Ceph.
        object: that carries the lock.
        name: of the lock.
        cookie: tells this holder from all others.
        description: what others read of this holder.
        shared: whether any number may hold it at once.
    """

    def __init__(
        self,
        io: Io,
        object: str,
        name: str,
        cookie: str,
        description: str,
        *,
        shared: bool = False,
    ) -> None:
        self._io = io
        self._object = object
        self._name = name
        self._cookie = cookie
        self._description = description
        self._type = _SHARED if shared else _EXCLUSIVE

    async def take(self, seconds: float, deadline: Deadline, *, only_renew: bool = False) -> bool:
        """Take the lock for ``seconds`` from now, or renew it. False: another holder has it.

        Args:
            seconds: from now.
            deadline: for the call.
            only_renew: take no lock that this holder does not have, and make no object.

        Raises:
            StoreTimeout: no answer came; the lock may be taken all the same, now or later.
            StoreUnavailable: the store did not do its part, or does not permit it.
        """
        request = encode_lock(
            self._name,
            self._type,
            self._cookie,
            self._description,
            seconds,
            _MUST_RENEW if only_renew else _MAY_RENEW,
        )
        refusal = errno.ENOENT if only_renew else errno.EBUSY
        return await self._call("lock", request, deadline, refusal) is not None

    async def release(self, deadline: Deadline) -> None:
        """Give the lock back, if this holder has it. Raises as :meth:`take`."""
        request = encode_unlock(self._name, self._cookie)
        await self._call("unlock", request, deadline, errno.ENOENT)

    async def holders(self, deadline: Deadline) -> list[Holder]:
        """Return who has the lock and has not let it expire. Raises as :meth:`take`."""
        request = encode_get_info(self._name)
        reply = await self._call("get_info", request, deadline, errno.ENOENT)
        return [] if reply is None else decode_info(reply)

    async def break_(self, holder: Holder, deadline: Deadline) -> None:
        """Take the lock away from a holder, if that one still has it. Raises as :meth:`take`."""
        request = encode_break_lock(self._name, holder)
        await self._call("break_lock", request, deadline, errno.ENOENT)

    async def _call(
        self, method: str, request: bytes, deadline: Deadline, expected: int
    ) -> bytes | None:
        """Run one method; None when it answers with the expected errno."""
        start = functools.partial(
            self._io.store.lock, object=self._object, method=method, request=request
        )
        reply = await self._io.run(start, deadline)
        if reply.code == -expected:
            return None
        if reply.code < 0:
            raise self._error(reply.code, method)
        return bytes(reply.payload)

    def _error(self, code: int, method: str) -> ZlogError:
        what = f"{method} of the lock {self._name!r} on {self._object}"
        if code in (-errno.EPERM, -errno.EACCES):
            return StoreUnavailable(
                f"{what}: the OSD refuses Ceph's class `lock` to this client",
                hint="Give it caps such as: osd 'allow pool POOL class zlog, allow pool POOL"
                f" object_prefix {self._object} class lock' (docs/operating.md).",
                retryable=False,
            )
        return from_errno(code, what)


# Each structure is preceded by its version, the oldest version that can read it, and its length.
_FRAME = struct.Struct("<BBI")
_CLIENT_BYTES = 9


def encode_lock(
    name: str, kind: int, cookie: str, description: str, seconds: float, flags: int
) -> bytes:
    """Return the request of ``lock``: take it exclusively (1) or shared (2), for so long."""
    whole, nanoseconds = divmod(round(seconds * _NANOSECONDS), _NANOSECONDS)
    tag = ""
    return _framed(
        _string(name),
        struct.pack("<B", kind),
        _string(cookie),
        _string(tag),
        _string(description),
        struct.pack("<IIB", whole, nanoseconds, flags),
    )


def encode_unlock(name: str, cookie: str) -> bytes:
    """Return the request of ``unlock``."""
    return _framed(_string(name), _string(cookie))


def encode_break_lock(name: str, holder: Holder) -> bytes:
    """Return the request of ``break_lock``."""
    return _framed(_string(name), holder.client, _string(holder.cookie))


def encode_get_info(name: str) -> bytes:
    """Return the request of ``get_info``."""
    return _framed(_string(name))


def decode_info(reply: bytes) -> list[Holder]:
    """Read the reply of ``get_info``.

    Raises:
        CorruptEntry: it is not of the form that every release so far has written.
    """
    try:
        reader = _Reader(reply).frame()
        return [_holder(reader) for _ in range(reader.number())]
    except (struct.error, UnicodeDecodeError) as error:
        raise CorruptEntry(f"can't understand what the class lock says: {error}") from error


def _holder(reader: _Reader) -> Holder:
    identity = reader.frame()
    client = identity.take(_CLIENT_BYTES)
    cookie = identity.string()
    info = reader.frame()
    seconds, nanoseconds = info.number(), info.number()
    info.take(1)  # the address of the client, in a frame of its own behind a byte that says so
    info.frame()
    return Holder(client, cookie, info.string(), seconds + nanoseconds / _NANOSECONDS)


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<I", len(data)) + data


def _framed(*parts: bytes) -> bytes:
    body = b"".join(parts)
    return _FRAME.pack(1, 1, len(body)) + body


class _Reader:
    """Takes a reply apart, from the front. Every method raises struct.error at its end."""

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
        """Return a reader of the next structure's body; newer versions only add to its end."""
        _, _, length = _FRAME.unpack(self.take(_FRAME.size))
        return _Reader(self.take(length))
