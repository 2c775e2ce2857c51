"""The store's directory: sharded lists of its logs, and the announced sequencer.

A list is spread over several objects by a hash of the names, so that no object gets too many keys
for Ceph, and many clients can create logs at once. The object class's ``directory_*`` methods run
on these objects (docs/formats/directory.md).
"""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Iterable
from typing import NamedTuple

from zlog._base.deadline import Deadline
from zlog._base.io import Call, Io, Reply
from zlog._base.names import (
    DIRECTORY_OBJECT,
    TEMPLATES_OBJECT,
    directory_shard,
    directory_shards,
)
from zlog._catalog.head import execute_one
from zlog._native import messages
from zlog._replica.repair import answers
from zlog.limits import NAME_BYTES_MAX

_NAMES_PER_READ = 1024
_CALLS_AT_ONCE = 64

_CHARACTERS = "-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
"""The characters that names can have, in ascending order."""

_FIRST = 2
"""The index of the lowest character with which a name can begin."""

_HINT_ID = 0
"""The log id of all entries in lists that are only hints, which identify logs by name alone."""


class Page(NamedTuple):
    """One page of a list of names.

    Attributes:
        names: all names up to ``end``, in order.
        end: where the next page starts; empty if this is the last page.
    """

    names: list[str]
    end: str


class NameList:
    """One list of names. Some of its names may also be in the objects ``older``."""

    def __init__(self, io: Io, kind: str, *older: str) -> None:
        self._io = io
        self._kind = kind
        self._older = older

    def objects_of(self, log: str) -> list[str]:
        """Return the objects that may contain a name. New names are added to the first object."""
        return [directory_shard(self._kind, log), *self._older]

    @property
    def objects(self) -> list[str]:
        """All objects of the list."""
        return [*directory_shards(self._kind), *self._older]

    async def page(
        self, after: str, deadline: Deadline, *, per_shard: int = _NAMES_PER_READ
    ) -> Page:
        """Return a page of names above ``after``, at most ``per_shard`` from each shard."""
        request = messages.directory_list(after, per_shard)
        calls = [Call(name, "directory_list", request) for name in self.objects]
        found, ends = set[str](), list[str]()
        for reply in await self._execute(calls, deadline):
            if reply.code != -errno.ENOENT:
                more, names = messages.directory_list_reply(reply.payload)
                found.update(names)
                if more:
                    ends.append(names[-1])
        end = min(ends, default="")
        return Page(sorted(name for name in found if name <= end or not end), end)

    async def pages(
        self, deadline: Deadline, *, after: str = "", per_shard: int = _NAMES_PER_READ
    ) -> AsyncIterator[list[str]]:
        """Iterate over all names above ``after``, in order, some thousands at a time."""
        while True:
            page = await self.page(after, deadline, per_shard=per_shard)
            yield page.names
            if not page.end:
                return
            after = page.end

    async def names(self, deadline: Deadline) -> list[str]:
        """Return all names, in order."""
        return [name async for page in self.pages(deadline) for name in page]

    async def has(self, log: str, deadline: Deadline) -> bool:
        """Whether the list has a name."""
        request = messages.directory_list(_just_below(log), 1)
        calls = [Call(name, "directory_list", request) for name in self.objects_of(log)]
        return any(
            reply.code != -errno.ENOENT
            and log in messages.directory_list_reply(reply.payload).names
            for reply in await self._execute(calls, deadline)
        )

    async def add_all(
        self, logs: Iterable[str], deadline: Deadline, log_id: int = _HINT_ID
    ) -> None:
        """Add logs to the list."""
        calls = [
            Call(self.objects_of(log)[0], "directory_add", messages.directory_add(log, log_id))
            for log in logs
        ]
        await self._execute(calls, deadline)

    async def remove_all(
        self, logs: Iterable[str], deadline: Deadline, log_id: int = _HINT_ID
    ) -> None:
        """Remove logs, except those whose names belong to other ids by now."""
        calls = [
            Call(name, "directory_remove", messages.directory_remove(log, log_id))
            for log in logs
            for name in self.objects_of(log)
        ]
        await self._execute(calls, deadline)

    async def _execute(self, calls: list[Call], deadline: Deadline) -> list[Reply]:
        """Run calls. Raises if any of them answers a code other than OK and ENOENT."""
        replies: list[Reply] = []
        for start in range(0, len(calls), _CALLS_AT_ONCE):
            some = calls[start : start + _CALLS_AT_ONCE]
            replies += await answers(
                self._io, some, await self._io.execute(some, deadline), deadline
            )
        for call, reply in zip(calls, replies, strict=True):
            reply.check_call(call.method, call.object, -errno.ENOENT)
        return replies


def _just_below(name: str) -> str:
    """Return the greatest name, or beginning of a name, below ``name``."""
    characters = _CHARACTERS[0 if len(name) > 1 else _FIRST :]
    before = characters[: characters.index(name[-1])][-1:]
    return (name[:-1] + before).ljust(NAME_BYTES_MAX, characters[-1]) if before else name[:-1]


class Directory:
    """The lists of the store's logs, and the announced sequencer.

    Attributes:
        logs: the names of all logs. A name is added after the log's head is created, and removed
            before the head is removed.
        used: the logs that clients have open at the leading sequencer. The next leader takes over
            these logs. The list may be out of date.
        retained: the logs that have a retention. The list may be out of date, too.
    """

    def __init__(self, io: Io) -> None:
        self._io = io
        self.logs = NameList(io, "logs", DIRECTORY_OBJECT)
        self.used = NameList(io, "used")
        self.retained = NameList(io, "retained")

    @property
    def objects(self) -> list[str]:
        """All objects of the directory, and the object with the templates."""
        return [TEMPLATES_OBJECT, *self.logs.objects, *self.used.objects, *self.retained.objects]

    async def announce(self, address: str, deadline: Deadline) -> None:
        """Announce the sequencer at ``address`` to clients whose logs have no sequencer."""
        await self._call("sequencer_announce", messages.sequencer_announce(address), deadline)

    async def withdraw(self, address: str, deadline: Deadline) -> None:
        """Withdraw the announcement of ``address``. Another sequencer's announcement is kept."""
        await self._call("sequencer_withdraw", messages.sequencer_withdraw(address), deadline)

    async def sequencer(self, deadline: Deadline) -> str:
        """Return the announced address, or an empty string if there is none."""
        reply = await self._call("sequencer_find", messages.sequencer_find(), deadline)
        if reply.code == -errno.ENOENT:
            return ""
        return messages.sequencer_find_reply(reply.payload).address

    async def _call(self, method: str, request: bytes, deadline: Deadline) -> Reply:
        return await execute_one(self._io, Call(DIRECTORY_OBJECT, method, request), deadline)
