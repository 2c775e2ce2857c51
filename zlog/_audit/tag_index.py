"""The audit of the index of tags that stripe objects keep (cls_zlog/stripe/tag_index.cc)."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Callable, Sequence

from zlog._audit.findings import Finding, FindingKind, about, at
from zlog._audit.inspect import ANY_EPOCH, walk
from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._base.io import Call
from zlog._base.refusals import refused_call
from zlog._layout.layout import Layout
from zlog._native import messages
from zlog._trim.compact import rebuild_indexes
from zlog.view import Stripe

_SKIPPED = (-errno.EOPNOTSUPP, -errno.ENOENT, -errno.EIO)
"""Replies of objects whose class is too old to keep an index, or that are reported as damaged."""


async def check_tag_index(
    layout: Layout, end: int, deadline: Callable[[], Deadline], *, rebuild: bool
) -> AsyncIterator[Sequence[Finding]]:
    """Compare the index of tags with the records below ``end``, all objects of a stripe at once.

    Args:
        end: one past the last position.
        rebuild: rebuild wrong indexes.
    """
    begin = min(layout.view.trim_point, end)
    async for stripe in walk(layout, begin, end, deadline):
        if not isinstance(stripe, Stripe):
            continue  # a lost stripe, which was reported
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
                if reply.code in _SKIPPED:
                    continue
                if reply.code != Code.OK:
                    raise refused_call(reply.code, "tags_check", ref.name)
                reached, _, wrong = messages.tags_check_reply(reply.payload)
                if wrong and rebuild:
                    await rebuild_indexes(layout, {ref: range(first, reached)}, deadline())
                    yield [about(FindingKind.REBUILT, ref.name, "its index of tags was wrong")]
                else:
                    detail = "the index of tags is wrong; `--rebuild-index` rebuilds it"
                    yield [
                        at(FindingKind.WRONG_INDEX, ref, range(each.first, each.last + 1), detail)
                        for each in wrong
                    ]
                if reached < last:
                    left[ref] = reached
