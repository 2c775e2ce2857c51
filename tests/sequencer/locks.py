"""Ceph's class `lock` in memory, in virtual time."""

from __future__ import annotations

import asyncio
import errno
import struct
from typing import NamedTuple

from zlog._native.completions import CompletionQueue

from ..conformance import wire


class _Held(NamedTuple):
    shared: bool
    cookie: str
    description: str
    expires: float


class LockStore:
    """A store of a pool that has locks and nothing else.

    It stands between several sequencers: each gets a `StoreView` of its own, over which it can be
    cut off from the store, so that nothing answers.
    """

    def __init__(self) -> None:
        self._locks: dict[str, list[_Held]] = {}

    def clear(self) -> None:
        """Remove the object with all its locks."""
        self._locks.clear()

    def names(self) -> set[str]:
        """The locks that were ever asked for."""
        return set(self._locks)

    def execute(self, method: str, payload: bytes) -> tuple[int, bytes]:
        _, reader = wire.Reader(payload).frame()
        name = reader.text()
        now = asyncio.get_running_loop().time()
        held = [each for each in self._locks.get(name, []) if each.expires > now]
        self._locks[name] = held
        if method == "get_info":
            return 0, _info(held)
        if method == "lock":
            return self._lock(held, reader, now), b""
        if method == "break_lock":
            reader.take(9)
        cookie = reader.text()
        kept = [each for each in held if each.cookie != cookie]
        self._locks[name] = kept
        return (0 if len(kept) < len(held) else -errno.ENOENT), b""

    def _lock(self, held: list[_Held], reader: wire.Reader, now: float) -> int:
        shared = reader.take(1) == b"\x02"
        cookie, _, description = reader.text(), reader.text(), reader.text()
        seconds, nanoseconds = struct.unpack("<II", reader.take(8))
        must_renew = reader.take(1) == b"\x02"
        if must_renew and all(each.cookie != cookie for each in held):
            return -errno.ENOENT
        others = [each for each in held if each.cookie != cookie]
        if others and not shared:
            return -errno.EBUSY
        held[:] = [*others, _Held(shared, cookie, description, now + seconds + nanoseconds / 1e9)]
        return 0


class StoreView:
    """One sequencer's way to a LockStore."""

    pool, namespace, url, read_only, identity = "logs", "", "ceph://logs", False, ""

    def __init__(self, store: LockStore) -> None:
        self._store = store
        self.error = 0
        """What every operation fails with, unless it is 0."""

    def lock(
        self, queue: CompletionQueue, token: int, object: str, method: str, request: bytes
    ) -> None:
        assert object == "zlog.directory"
        queue.put(
            token, *((-self.error, b"") if self.error else self._store.execute(method, request))
        )


def _info(held: list[_Held]) -> bytes:
    body = struct.pack("<I", len(held))
    for each in held:
        client = b"\x08" + bytes(8)
        seconds = int(each.expires)
        body += wire.frame(client + wire.text(each.cookie))
        body += wire.frame(
            struct.pack("<II", seconds, int((each.expires - seconds) * 1e9))
            + b"\x01"
            + wire.frame(bytes(28))
            + wire.text(each.description)
        )
    return wire.frame(body + b"\x01" + wire.text(""))
