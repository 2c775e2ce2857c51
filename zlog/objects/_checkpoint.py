"""Writing checkpoints: pieces of the state, then a manifest that says which they are."""

from __future__ import annotations

import contextlib

from zlog._client import new_entries
from zlog.errors import CursorAhead, HeldByCursor
from zlog.objects._machine import Frozen
from zlog.objects._pieces import PIECE_BYTES, PIECES_AT_ONCE, Sum, cut
from zlog.objects._port import Port
from zlog.objects._records import Tags, encode_manifest, encode_mark
from zlog.objects._replica import Replica


def cursor_name(space: str) -> str:
    """Return what the cursor is called that holds trims back for a space."""
    return f"objects.{space}"


async def begin_space(port: Port, name: str, tail: int) -> None:
    """Write the first checkpoint of a space, an empty one.

    The space begins at the tail: that no entry below it is the space's was looked up after it.
    """
    client = port.client
    await client.cursors.set(cursor_name(name), tail, client.deadline())
    await _append_manifest(port, name, "", tail, [], Sum(), {})


async def write_checkpoint(replica: Replica, *, trim: bool) -> int:
    """Write a checkpoint; returns the position below which the space needs nothing any more."""
    replica.check()
    port, name = replica.port, replica.name
    frozen, mark = await _freeze(replica)
    client = port.client
    tags = Tags.of(name)
    positions: list[int] = []
    total = Sum()
    batch: list[bytes] = []
    limit = min(PIECE_BYTES, client.settings.entry_bytes_max)

    async def send() -> None:
        entries = new_entries(batch, (tags.piece,))
        positions.extend(await client.appender.append(entries, client.deadline()))
        batch.clear()

    for piece in cut(frozen.chunks(), limit):
        total.add(piece)
        batch.append(piece)
        if len(batch) == PIECES_AT_ONCE:
            await send()
    if batch:
        await send()
    await _append_manifest(port, name, mark, frozen.start, positions, total, frozen.digests)
    await _move_cursor(port, name, frozen.start)
    if trim:
        await _trim(port, frozen.start)
    return frozen.start


async def _freeze(replica: Replica) -> tuple[Frozen, str]:
    """Return the state at a mark of its own; all replicas have the same there."""
    mark = replica.new_id()
    machine = replica.machine
    with replica.port.lock:
        machine.digests()  # a `snapshot` that fails does so here, and not in all replicas
    machine.wanted[mark] = None
    try:
        position = await replica.port.append(encode_mark(mark), (replica.tags.space,))
        await replica.play_to(position + 1)
        frozen = machine.wanted[mark]
    finally:
        del machine.wanted[mark]
    if frozen is None:  # a trim has overtaken the replica, which has another state now
        return await _freeze(replica)
    return frozen, mark


async def _append_manifest(
    port: Port,
    name: str,
    mark: str,
    start: int,
    positions: list[int],
    total: Sum,
    objects: dict[str, str],
) -> None:
    tags = Tags.of(name)
    record = encode_manifest(mark, start, positions, total.size, total.digest, objects)
    await port.append(record, (tags.space, tags.checkpoint))


async def _move_cursor(port: Port, name: str, start: int) -> None:
    client = port.client
    cursor = cursor_name(name)
    await client.cursors.create(cursor, start, client.deadline())
    with contextlib.suppress(CursorAhead):  # another checkpoint has moved it further
        await client.cursors.advance(cursor, start, client.deadline())


async def _trim(port: Port, position: int) -> None:
    """Trim as far as other readers of the log let it."""
    client = port.client
    try:
        await client.trim_to(position, client.deadline(), past_cursors=False)
    except HeldByCursor as held:
        await client.trim_to(held.position, client.deadline(), past_cursors=False)
