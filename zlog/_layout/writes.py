"""The writes that put entries at consecutive positions."""

from __future__ import annotations

from collections.abc import Sequence

from zlog._base.io import Call
from zlog._base.options import compression_of
from zlog._layout.layout import Layout
from zlog._native.new_entries import NewEntry
from zlog._native.writes import encode_writes
from zlog.view import Stripe, View


def writes_at(
    layout: Layout,
    view: View,
    stripe: Stripe,
    first: int,
    entries: Sequence[NewEntry],
    append_id: tuple[bytes, int],
    timestamp: int,
) -> list[Call]:
    """Return a write for each object that gets entries.

    The first entry is at position ``first``, and its append id is ``append_id``: the writer's id
    and a number. Position and number ascend by one from entry to entry.
    """
    objects = layout.objects(view, stripe)
    requests = encode_writes(
        view.epoch,
        timestamp,
        append_id[0],
        stripe.striping.packed,
        first,
        append_id[1],
        entries,
        compression_of(view.options),
        layout.macs.key,
    )
    return [Call(objects[number].name, "write", request) for number, request in requests]
