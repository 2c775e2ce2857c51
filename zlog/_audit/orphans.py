"""The audit of objects that no view has: leftovers that will be removed, and orphans."""

from __future__ import annotations

import errno
import functools
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from zlog._audit.findings import Finding, FindingKind, about
from zlog._audit.inspect import stat_objects, walk
from zlog._base.deadline import Deadline
from zlog._base.names import objects_prefix
from zlog._base.refusals import from_code
from zlog._layout.layout import Layout
from zlog.view import Stripe

_NOT_ALLOWED = (-errno.EPERM, -errno.EACCES, -errno.EOPNOTSUPP)
_STRIPE_OBJECT = re.compile(r"([0-9a-f]{16})\.(0|[1-9]\d*)\.(0|[1-9]\d*)")


class _Stray(NamedTuple):
    """A stripe object that was not in the view when its name was listed."""

    name: str
    log_id: int
    stripe_id: int
    number: int


class Strays:
    """Finds stripe objects that a log does not use.

    The first pass lists the store's objects. An object that no view names may belong to a stripe
    that is being created or removed, so a second pass checks whether it still exists.

    Attributes:
        listed: whether the store let the client list its objects.
    """

    def __init__(self, layout: Layout, deadline: Callable[[], Deadline]) -> None:
        self._layout = layout
        self._deadline = deadline
        self._found: list[_Stray] | None = None
        self.listed = False

    async def look(self) -> list[Finding]:
        """Return the leftovers and orphans found now."""
        if self._found is None:
            self._found = await self._list()
        else:
            names = [each.name for each in self._found]
            replies = {
                name: reply.code
                async for name, reply in stat_objects(self._layout, names, self._deadline)
            }
            self._found = [each for each in self._found if replies[each.name] != -errno.ENOENT]
        return await self._compare(self._found) if self._found else []

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
                raise from_code(reply.code, f"cannot list the objects of {io.store.url}")
            after, *names = bytes(reply.payload).split(b"\0")
            found += (
                each
                for each in _strays(prefix, names)
                if each.log_id != view.log_id or not _is_of(kept, each)
            )
            if not after:
                self.listed = True
                return found

    async def _compare(self, strays: list[_Stray]) -> list[Finding]:
        """Compare objects with the head, which is read after the objects were listed."""
        view = await self._layout.refresh(self._deadline())
        newest, pending = await self._layout.head.pending_stripes(view.log_id, self._deadline())
        left = {stripe_id: width for stripe_id, width in pending if stripe_id < newest}
        needed = {stripe_id: width for stripe_id, width in pending if stripe_id >= newest}
        for stripe in view.stripes:
            to = left if stripe.end <= view.trim_point else needed
            to[stripe.id] = stripe.width
        own = [each for each in strays if each.log_id == view.log_id]
        if any(not (_is_of(left, each) or _is_of(needed, each)) for each in own):
            async for part in walk(self._layout, 0, view.stripes[0].start, self._deadline):
                if isinstance(part, Stripe):
                    needed[part.id] = part.width
        return [
            about(FindingKind.LEFTOVER, each.name, "none of its contents are needed any more")
            if each.log_id == view.log_id and _is_of(left, each)
            else about(FindingKind.ORPHAN, each.name, "not in any view; zlog does not remove it")
            for each in strays
            if each.log_id != view.log_id or _is_of(left, each) or not _is_of(needed, each)
        ]


def _strays(prefix: str, names: Iterable[bytes]) -> Iterable[_Stray]:
    """Select a log's stripe objects from names with its prefix, which other logs may share."""
    for name in names:
        text = name.decode(errors="replace")
        found = _STRIPE_OBJECT.fullmatch(text, len(prefix))
        if found is not None:
            log_id, stripe_id, number = found.groups()
            yield _Stray(text, int(log_id, 16), int(stripe_id), int(number))


def _is_of(widths: dict[int, int], stray: _Stray) -> bool:
    """Whether an object belongs to one of the stripes, given as ids with widths."""
    return stray.number < widths.get(stray.stripe_id, 0)
