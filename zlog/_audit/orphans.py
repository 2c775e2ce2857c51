"""An audit's look for objects that no view has: those left to be removed, and those forgotten."""

from __future__ import annotations

import errno
import functools
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from zlog._audit.findings import Finding, FindingKind, about
from zlog._audit.inspect import ANY_EPOCH, OBJECTS_AT_ONCE, walk
from zlog._base.deadline import Deadline
from zlog._base.io import Call
from zlog._base.names import objects_prefix
from zlog._base.refusals import from_errno
from zlog._layout.layout import Layout
from zlog._native import messages
from zlog.view import Stripe

_NOT_ALLOWED = (-errno.EPERM, -errno.EACCES, -errno.EOPNOTSUPP)
_STRIPE_OBJECT = re.compile(r"([0-9a-f]{16})\.(0|[1-9]\d*)\.(0|[1-9]\d*)")


class _Stray(NamedTuple):
    """A stripe object that the view, when its name was met, did not have."""

    name: str
    log_id: int
    stripe_id: int
    number: int


class Strays:
    """Finds stripe objects of one log that it has no use for.

    The first look lists the store's objects. What it finds may be a stripe that is being made or
    removed; a second look is at those objects only.

    Attributes:
        listed: whether the store let the client list its objects.
    """

    def __init__(self, layout: Layout, deadline: Callable[[], Deadline]) -> None:
        self._layout = layout
        self._deadline = deadline
        self._found: list[_Stray] | None = None
        self.listed = False

    async def look(self) -> list[Finding]:
        """Return objects that are left over, as of now."""
        if self._found is None:
            self._found = await self._list()
        else:
            self._found = await self._that_exist(self._found)
        return await self._judge(self._found) if self._found else []

    async def _list(self) -> list[_Stray]:
        io, view = self._layout.io, self._layout.view
        kept = {s.id: s.width for s in view.stripes if s.end > view.trim_point}
        prefix = objects_prefix(view.log)
        found: list[_Stray] = []
        after = b""
        while True:
            start = functools.partial(io.store.list_objects, prefix=prefix, after=after)
            reply = await io.run(start, self._deadline())
            if reply.code in _NOT_ALLOWED:
                return []
            if reply.code < 0:
                raise from_errno(reply.code, f"listing the objects of {io.store.url}")
            after, *names = bytes(reply.payload).split(b"\0")
            found += (
                each
                for each in _strays(prefix, names)
                if each.log_id != view.log_id or not _is_of(kept, each)
            )
            if not after:
                self.listed = True
                return found

    async def _that_exist(self, strays: list[_Stray]) -> list[_Stray]:
        request = messages.stat(ANY_EPOCH)
        left: list[_Stray] = []
        for start in range(0, len(strays), OBJECTS_AT_ONCE):
            some = strays[start : start + OBJECTS_AT_ONCE]
            calls = [Call(each.name, "stat", request) for each in some]
            replies = await self._layout.io.execute(calls, self._deadline())
            pairs = zip(some, replies, strict=True)
            left += (each for each, reply in pairs if reply.code != -errno.ENOENT)
        return left

    async def _judge(self, strays: list[_Stray]) -> list[Finding]:
        """Sort them by what the head says now, after they were met."""
        view = await self._layout.refresh(self._deadline())
        newest, loose = await self._layout.head.loose_stripes(view.log_id, self._deadline())
        left = {stripe_id: width for stripe_id, width in loose if stripe_id < newest}
        needed = {stripe_id: width for stripe_id, width in loose if stripe_id >= newest}
        for stripe in view.stripes:
            to = left if stripe.end <= view.trim_point else needed
            to[stripe.id] = stripe.width
        own = [each for each in strays if each.log_id == view.log_id]
        if any(not (_is_of(left, each) or _is_of(needed, each)) for each in own):
            async for part in walk(self._layout, 0, view.stripes[0].start, self._deadline):
                if isinstance(part, Stripe):
                    needed[part.id] = part.width
        findings = [_orphan(each) for each in strays if each.log_id != view.log_id]
        for each in own:
            if _is_of(left, each):
                findings.append(_left(each))
            elif not _is_of(needed, each):
                findings.append(_orphan(each))
        return findings


def _strays(prefix: str, names: Iterable[bytes]) -> Iterable[_Stray]:
    """Pick the stripe objects among names with a log's prefix, which other logs' may have too."""
    for name in names:
        text = name.decode(errors="replace")
        found = _STRIPE_OBJECT.fullmatch(text, len(prefix))
        if found is not None:
            log_id, stripe_id, number = found.groups()
            yield _Stray(text, int(log_id, 16), int(stripe_id), int(number))


def _is_of(widths: dict[int, int], stray: _Stray) -> bool:
    """Whether it is an object of one of the stripes whose ids and widths are given."""
    return stray.number < widths.get(stray.stripe_id, 0)


def _left(stray: _Stray) -> Finding:
    return about(FindingKind.LEFTOVER, stray.name, "nothing in it is needed any more")


def _orphan(stray: _Stray) -> Finding:
    return about(FindingKind.ORPHAN, stray.name, "no view has it, and zlog does not remove it")
