"""Runs a method on several stripe objects, or on the objects of several positions."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Sequence

from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Reply
from zlog._layout.confirmed import confirmed_end
from zlog._layout.layout import Layout
from zlog._layout.segments import Part
from zlog._native.completions import ReplyBytes
from zlog.errors import CorruptEntry
from zlog.view import ObjectRef, Stripe, View


async def call_each(
    layout: Layout,
    method: str,
    objects: Iterable[ObjectRef],
    request: Callable[[View, ObjectRef], bytes],
    deadline: Deadline,
    *refusals: int,
) -> dict[ObjectRef, ReplyBytes]:
    """Run an idempotent method on objects, and return the replies of those that answer OK.

    Objects that answer with a code in ``refusals`` are left out. Any other code raises an error.
    """
    refs = [*objects]

    def calls(view: View) -> list[Call]:
        return [Call(ref.name, method, request(view, ref)) for ref in refs]

    _, replies = await layout.guarded(calls, deadline)
    for ref, reply in zip(refs, replies, strict=True):
        reply.check_call(method, ref.name, *refusals)
    return {ref: r.payload for ref, r in zip(refs, replies, strict=True) if r.code == Code.OK}


def by_object(
    layout: Layout, view: View, positions: Iterable[int]
) -> list[tuple[ObjectRef, list[int]]]:
    """Group untrimmed positions, in ascending order, by object. Raises StripeUnknown.

    Of offloaded positions, only those of one segment are returned, and not together with others. A
    caller that needs all positions calls this again for the rest.
    """
    groups: dict[str, tuple[ObjectRef, list[int]]] = {}
    first: Stripe | None = None
    for position in positions:
        if position >= view.trim_point:
            stripe = layout.part_of(view, position)
            first = first or stripe
            if stripe is not first and (isinstance(first, Part) or isinstance(stripe, Part)):
                break
            objects = layout.objects(view, stripe)
            ref = objects[objects[0].striping.number(position)]
            groups.setdefault(ref.name, (ref, []))[1].append(position)
    return list(groups.values())


async def change_positions(
    layout: Layout,
    method: str,
    request: Callable[[View, ObjectRef, list[int]], bytes],
    positions: Sequence[int],
    deadline: Deadline,
    *refusals: Code,
) -> list[tuple[ObjectRef, Reply]]:
    """Run an idempotent method on the objects of some positions, and return each with its reply.

    The positions must be in ascending order. Trimmed positions are left out. Raises CorruptEntry if
    an object is missing, or another error if an answer is neither OK nor in ``refusals``.
    """
    groups: list[tuple[ObjectRef, list[int]]] = []
    rest = positions

    def calls(view: View) -> list[Call]:
        groups[:] = by_object(layout, view, rest)
        return [Call(ref.name, method, request(view, ref, group)) for ref, group in groups]

    result: list[tuple[ObjectRef, Reply]] = []
    while rest:
        view, replies = await layout.guarded(calls, deadline)
        some = [(ref, reply) for (ref, _), reply in zip(groups, replies, strict=True)]
        missing = [ref.name for ref, reply in some if reply.code == -errno.ENOENT]
        if missing and await layout.outdated(view, deadline):
            continue
        if missing:
            raise CorruptEntry(f"stripe object {missing[0]} is missing")
        for ref, reply in some:
            reply.check_call(method, ref.name, *refusals)
        result += some
        done = {position for _, group in groups for position in group}
        rest = [p for p in rest if p >= view.trim_point and p not in done]
    return result


async def prefix_end(
    layout: Layout, view: View, known: Callable[[View], int | None], deadline: Deadline
) -> tuple[View, int | None]:
    """Find out how far the entries of a log are confirmed.

    Returns a view, and the position after the last confirmed entry in it. The search begins in
    ``view``, and continues in a newer view if the layout changes. ``known`` returns a position
    below which a view's entries are confirmed, or None to end the search without a result.
    """
    while (start := known(view)) is not None:
        end = await confirmed_end(layout.io, view, start, deadline)
        if end is not None:
            return view, end
        view = await layout.advance(view, deadline)
    return view, None
