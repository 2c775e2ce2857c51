"""An audit's look at the index of tags that stripe objects keep (cls_zlog/stripe/tag_index.cc)."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Callable, Sequence

from zlog._audit.findings import Finding, FindingKind, about, at
from zlog._audit.inspect import ANY_EPOCH, walk
from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Reply
from zlog._base.refusals import refused_call
from zlog._layout.layout import Layout
from zlog._native import messages
from zlog.view import ObjectRef, Stripe, View

_ELSEWHERE = (-errno.EOPNOTSUPP, -errno.ENOENT, -errno.EIO)
"""What an object answers whose class is too old to keep an index, or about which the audit tells
that it is gone or damaged."""


class TagIndex:
    """Compares each object's index of tags with its records, and has it made anew if wanted.

    Args:
        layout: of the log.
        deadline: starts the budget of one step.
        rebuild: make the index of what is wrong anew.
    """

    def __init__(self, layout: Layout, deadline: Callable[[], Deadline], *, rebuild: bool) -> None:
        self._layout = layout
        self._deadline = deadline
        self._rebuild = rebuild

    async def check(self, end: int) -> AsyncIterator[Sequence[Finding]]:
        """Look at what stands below ``end``, all objects of a stripe at the same time."""
        begin = min(self._layout.view.trim_point, end)
        async for stripe in walk(self._layout, begin, end, self._deadline):
            if not isinstance(stripe, Stripe):
                continue  # where these positions are is not known, as an audit tells
            refs = self._layout.objects(self._layout.view, stripe)
            last = min(stripe.end, end)
            left = {ref: max(stripe.start, begin) for ref in refs}
            while left:
                calls = [
                    Call(ref.name, "tags_check", messages.tags_check(ANY_EPOCH, first, last))
                    for ref, first in left.items()
                ]
                replies = await self._layout.io.execute(calls, self._deadline())
                for (ref, first), reply in zip([*left.items()], replies, strict=True):
                    reached, findings = await self._take(ref, first, last, reply)
                    yield findings
                    left[ref] = reached
                left = {ref: first for ref, first in left.items() if first < last}

    async def _take(
        self, ref: ObjectRef, first: int, last: int, reply: Reply
    ) -> tuple[int, list[Finding]]:
        """Return how far an object has looked, and what it found."""
        if reply.code in _ELSEWHERE:
            return last, []
        if reply.code != Code.OK:
            raise refused_call(reply.code, "tags_check", ref.name)
        end, _, wrong = messages.tags_check_reply(reply.payload)
        if wrong and self._rebuild:
            await self._make_anew(ref, first, end)
            return end, [about(FindingKind.REBUILT, ref.name, "its index of tags was wrong")]
        detail = "the index of tags is not what the entries have; `--rebuild-index` makes it anew"
        return end, [
            at(FindingKind.WRONG_INDEX, ref, range(each.first, each.last + 1), detail)
            for each in wrong
        ]

    async def _make_anew(self, ref: ObjectRef, first: int, end: int) -> None:
        while first < end:

            def calls(view: View, first: int = first) -> list[Call]:
                request = messages.tags_rebuild(view.epoch, first, end)
                return [Call(ref.name, "tags_rebuild", request)]

            _, (reply,) = await self._layout.guarded(calls, self._deadline())
            reply.check_call("tags_rebuild", ref.name)
            first = messages.tags_rebuild_reply(reply.payload).end
