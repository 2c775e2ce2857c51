"""Whether what is at a position is this very append, where the class can't tell.

The class decompresses nothing. So where an entry of the same id, length and checksum is stored in a
block, and was not sent in that same block, it answers ALIKE and the writer compares: readers learn
the ids of appends, and a hostile one may have stored other data under this one's.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from zlog._base.codes import Code, State
from zlog._base.deadline import Deadline
from zlog._base.io import Call
from zlog._base.refusals import refused_call
from zlog._layout.layout import Layout
from zlog._native import messages
from zlog._native.replies import FORGED, decode_read
from zlog.view import ObjectRef, View

if TYPE_CHECKING:
    from zlog._native.new_entries import NewEntry

_BYTES_MAX = 4 << 20


class AppendId(NamedTuple):
    """An append's identity, and its data and tags."""

    writer: bytes
    number: int
    entry: NewEntry


async def compare(
    layout: Layout, ref: ObjectRef, wanted: Mapping[int, AppendId], deadline: Deadline
) -> dict[int, bool | None]:
    """Return of each position of one object that holds an entry whether it is the wanted one.

    None: that can't be told, since it is damaged or of a later version.

    Args:
        layout: of the log.
        ref: the object.
        wanted: what may be there, by position.
        deadline: budget.

    Raises:
        ZlogError: the store's own error, when the object can't be read.
    """
    found: dict[int, bool | None] = {}
    rest = sorted(wanted)
    while rest:
        asked: Sequence[int] = rest

        def calls(view: View, asked: Sequence[int] = asked) -> list[Call]:
            packed = ref.spacing.packed
            request = messages.read(
                view.epoch, True, _BYTES_MAX, packed, asked, blocks=True, tags=True
            )
            return [Call(ref.name, "read", request)]

        _, (reply,) = await layout.guarded(calls, deadline)
        if reply.code == -errno.ENOENT:
            break  # it was removed meanwhile, as the next write tells
        if reply.code != Code.OK:
            raise refused_call(reply.code, "read", ref.name)
        told = decode_read(reply.payload, asked, layout.macs.key)
        for i, position in enumerate(asked[: told.count]):
            if told.state(i) == State.WRITTEN:
                own = AppendId(told.writer(i), told.number(i), told.entry(i))
                found[position] = own == wanted[position]
            elif told.state(i) == FORGED:  # whose MAC is not the one that was sent
                found[position] = False
            elif told.state(i) in (State.LOST, State.UNREADABLE):
                found[position] = None
        rest = rest[told.count :]
    return found
