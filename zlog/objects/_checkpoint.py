"""Writes checkpoints: pieces of the state, then a manifest that lists them."""

from __future__ import annotations

from zlog.errors import HeldByCursor
from zlog.extension import LogPort
from zlog.objects._machine import Frozen
from zlog.objects._pieces import PIECE_BYTES, PIECES_AT_ONCE, Sum, cut
from zlog.objects._records import Tags, encode_manifest, encode_mark
from zlog.objects._replica import Replica


def cursor_name(space: str) -> str:
    """Return the name of the cursor that limits trims for a space."""
    return f"objects.{space}"


async def begin_space(port: LogPort, name: str, tail: int) -> None:
    """Create a space that begins at ``tail``, by writing an empty checkpoint.

    The caller must read the tail first, and then check that no entry below it belongs to the space.
    """
    await port.set_cursor(cursor_name(name), tail)
    await _append_manifest(port, name, "", tail, [], Sum(), {})


async def write_checkpoint(replica: Replica, *, trim: bool) -> int:
    """Write a checkpoint; returns the position below which the space needs no entries."""
    replica.check()
    port, name = replica.port, replica.name
    frozen, mark = await _freeze(replica)
    tags = Tags.of(name)
    positions: list[int] = []
    total = Sum()
    batch: list[bytes] = []
    limit = min(PIECE_BYTES, port.entry_bytes_max)

    async def send() -> None:
        positions.extend(await port.append_many(batch, (tags.piece,)))
        batch.clear()

    for piece in cut(frozen.chunks(), limit):
        total.add(piece)
        batch.append(piece)
        if len(batch) == PIECES_AT_ONCE:
            await send()
    if batch:
        await send()
    await _append_manifest(port, name, mark, frozen.start, positions, total, frozen.digests)
    await port.advance_cursor(cursor_name(name), frozen.start)
    if trim:
        await _trim(port, frozen.start)
    return frozen.start


async def _freeze(replica: Replica) -> tuple[Frozen, str]:
    """Return the state at a new mark, where all replicas have the same state."""
    mark = replica.new_id()
    machine = replica.machine
    with replica.port.lock:
        machine.digests()  # a `snapshot` that fails must fail here, and not in all replicas
    machine.wanted[mark] = None
    try:
        position = await replica.port.append(encode_mark(mark), (replica.tags.space,))
        await replica.play_to(position + 1)
        frozen = machine.wanted[mark]
    finally:
        del machine.wanted[mark]
    if frozen is None:  # a trim has overtaken the replica, whose state is a later one
        return await _freeze(replica)
    return frozen, mark


async def _append_manifest(
    port: LogPort,
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


async def _trim(port: LogPort, position: int) -> None:
    """Trim as far as the cursors of the log allow."""
    try:
        await port.trim_to(position)
    except HeldByCursor as held:
        await port.trim_to(held.position)
