"""Having stripe objects tell what their positions hold; entries' data stays where it is."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence

from zlog._audit.inspect import ANY_EPOCH
from zlog._audit.ranges import Window
from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Reply
from zlog._base.refusals import refused_call
from zlog._layout.layout import Layout
from zlog._native import messages
from zlog._native.audit import Audit
from zlog.view import ObjectRef

_CALL_POSITIONS = 1 << 16
_CALL_BYTES = 8 << 20
"""What one operation looks at, at most: it may not keep an OSD from others for long."""


class Verifier:
    """Asks all objects of some windows at once, each for a part of its positions at a time.

    Attributes:
        unreadable: objects, by name, that are known to tell nothing: of what they have no more is
            said than that it is not known.
        vanished: objects that were missing, although they hold positions that are not trimmed.

    Args:
        layout: of the log.
        deadline: starts the budget of one step.
        keys_only: whether the data of large entries is taken for sound, unread.
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
        """Have each window's audit take in what its objects say of it."""
        parts: list[tuple[Window, Audit, ObjectRef, int]] = []
        for window, audit in windows:
            audit.begin(purpose, window.start, window.end, window.spacing.packed)
            parts += [(window, audit, ref, first) for ref, first in window.parts()]
        while parts:
            calls = [self._call(ref, first, window.end) for window, _, ref, first in parts]
            replies = await self._layout.io.execute(calls, self._deadline())
            left = []
            for (window, audit, ref, first), reply in zip(parts, replies, strict=True):
                count = await self._take(audit, ref, first, reply)
                if count is not None and (more := ref.spacing.after(first, count)) < window.end:
                    left.append((window, audit, ref, more))
            parts = left
        for _, audit in windows:
            audit.finish()

    def _call(self, ref: ObjectRef, first: int, end: int) -> Call:
        positions = ref.places(first, end)[:_CALL_POSITIONS]
        packed = ref.spacing.packed
        request = messages.verify(ANY_EPOCH, _CALL_BYTES, packed, positions, self._keys_only)
        return Call(ref.name, "verify", request)

    async def _take(self, audit: Audit, ref: ObjectRef, first: int, reply: Reply) -> int | None:
        """Take in what an object said of its positions from ``first`` on.

        Returns of how many it has told; None when that was all it ever will.
        """
        if reply.code == Code.OK:
            return audit.add(reply.payload, first)
        if ref.name in self.unreadable:
            audit.rest(first, "unknown")
        elif reply.code == -errno.EIO:
            audit.rest(first, "lost")
        elif reply.code == -errno.ENOENT:
            view = await self._layout.refresh(self._deadline())
            trimmed = first < view.trim_point
            audit.rest(first, "trimmed" if trimmed else "unknown")
            self.vanished |= set() if trimmed else {ref.name}
        else:
            raise refused_call(reply.code, "verify", ref.name)
        return None
