"""Lets stripe objects check their own positions and tag indexes, so that no entries are sent."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Callable, Sequence

from zlog._audit.findings import Finding, FindingKind, about, at
from zlog._audit.inspect import ANY_EPOCH, walk
from zlog._audit.ranges import Window
from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._base.io import Call, OffloadedObject, Reply
from zlog._base.refusals import refused_call
from zlog._layout.layout import Layout
from zlog._native import messages
from zlog._native.audit import Audit
from zlog._trim.compact import rebuild_indexes
from zlog.view import ObjectRef, Stripe

_CALL_POSITIONS = 1 << 16
_CALL_BYTES = 8 << 20
"""Limits of one operation, which must not occupy an OSD for long."""


class Verifier:
    """Checks windows of positions. The objects of a window do their checks in parallel.

    Attributes:
        unreadable: the names of objects that cannot answer, whose positions are not checked.
        vanished: the names of missing objects with positions that are not trimmed.

    Args:
        keys_only: whether to skip the data of large entries.
    """

    def __init__(
        self, layout: Layout, deadline: Callable[[], Deadline], *, keys_only: bool = False
    ) -> None:
        self.unreadable: set[str] = set()
        self.vanished: set[str] = set()
        self._layout = layout
        self._deadline = deadline
        self._keys_only = keys_only

    async def look_at(self, windows: Sequence[tuple[Window, Audit]], purpose: str = "all") -> None:
        """Add the replies of each window's objects to its audit."""
        parts: list[tuple[Window, Audit, ObjectRef, int]] = []
        for window, audit in windows:
            audit.begin(purpose, window.start, window.end, window.striping.packed)
            parts += [(window, audit, ref, first) for ref, first in window.parts()]
        while parts:
            calls = [self._call(ref, first, window.end) for window, _, ref, first in parts]
            replies = await self._layout.io.execute(calls, self._deadline())
            left = []
            for (window, audit, ref, first), reply in zip(parts, replies, strict=True):
                count = await self._take(audit, ref, first, reply)
                if count is not None and (more := ref.striping.after(first, count)) < window.end:
                    left.append((window, audit, ref, more))
            parts = left
        for _, audit in windows:
            audit.finish()

    def _call(self, ref: ObjectRef, first: int, end: int) -> Call:
        positions = ref.positions(first, end)[:_CALL_POSITIONS]
        packed = ref.striping.packed
        request = messages.verify(ANY_EPOCH, _CALL_BYTES, packed, positions, self._keys_only)
        return Call(ref.name, "verify", request)

    async def _take(self, audit: Audit, ref: ObjectRef, first: int, reply: Reply) -> int | None:
        """Add an object's reply about its positions at and above ``first``.

        Returns how many positions the reply covers, or None if the object cannot answer.
        """
        if reply.code == Code.OK:
            return audit.add(reply.payload, first)
        if ref.name in self.unreadable:
            audit.rest(first, "unknown")
        elif reply.code == -errno.EIO:
            audit.rest(first, "lost")
        elif reply.code == -errno.ENOENT:
            view = await self._layout.refresh(self._deadline())
            if first < view.trim_point:
                audit.rest(first, "trimmed")
            elif isinstance(ref.name, OffloadedObject):
                audit.rest(first, "lost")
            else:
                audit.rest(first, "unknown")
                self.vanished.add(ref.name)
        else:
            raise refused_call(reply.code, "verify", ref.name)
        return None


async def check_tag_index(
    layout: Layout, end: int, deadline: Callable[[], Deadline], *, rebuild: bool
) -> AsyncIterator[Sequence[Finding]]:
    """Compare the tag indexes of a stripe's objects with their records below ``end``.

    Args:
        end: one past the last position.
        rebuild: whether to rebuild wrong indexes.
    """
    begin = min(layout.view.trim_point, end)
    async for stripe in walk(layout, begin, end, deadline):
        if not isinstance(stripe, Stripe) or layout.offloaded.file_of(stripe) is not None:
            continue  # the stripe is lost, which was reported, or is in a file without an index
        last = min(stripe.end, end)
        left = dict.fromkeys(layout.objects(layout.view, stripe), max(stripe.start, begin))
        while left:
            calls = [
                Call(ref.name, "tags_check", messages.tags_check(ANY_EPOCH, first, last))
                for ref, first in left.items()
            ]
            replies = await layout.io.execute(calls, deadline())
            asked, left = left, {}
            for (ref, first), reply in zip(asked.items(), replies, strict=True):
                if reply.code in (-errno.ENOENT, -errno.EIO):
                    continue  # reported as missing or damaged
                if reply.code != Code.OK:
                    raise refused_call(reply.code, "tags_check", ref.name)
                reached, _, wrong = messages.tags_check_reply(reply.payload)
                if wrong and rebuild:
                    await rebuild_indexes(layout, {ref: range(first, reached)}, deadline())
                    yield [about(FindingKind.REBUILT, ref.name, "its tag index was wrong")]
                else:
                    detail = "the tag index is wrong; `--rebuild-index` rebuilds it"
                    yield [
                        at(FindingKind.WRONG_INDEX, ref, range(each.first, each.last + 1), detail)
                        for each in wrong
                    ]
                if reached < last:
                    left[ref] = reached
