"""Loads the state with which a replica begins, from the newest whole checkpoint."""

from __future__ import annotations

from collections.abc import Mapping

from zlog.entry import Entry
from zlog.extension import LogPort
from zlog.objects._machine import Machine
from zlog.objects._pieces import PIECES_AT_ONCE, Joined, Sum
from zlog.objects._records import DecodeError, Manifest, Tags, decode_record, refusal
from zlog.objects._states import Replicated
from zlog.objects.errors import Stopped


async def restored(
    port: LogPort,
    name: str,
    types: Mapping[str, type[Replicated]],
    end: int | None = None,
) -> Machine | None:
    """Return the state in the newest complete checkpoint.

    Args:
        port: the access to the log.
        name: the name of the space.
        types: the classes of user-defined types.
        end: use only checkpoints below this position; None means all.

    Returns:
        The state, or None if no checkpoint can be read.

    Raises:
        Stopped: a newer version wrote the checkpoint, or it has objects of unknown types.
    """
    while True:
        trim_point = port.trim_point
        manifests = port.newest(Tags.of(name).checkpoint, end)
        while (items := await manifests.next()) is not None:
            for item in items:
                if isinstance(item, Entry):
                    machine = await _load(port, manifest_of(item), types)
                    if machine is not None:
                        return machine
        await port.refresh()
        if port.trim_point == trim_point:
            return None  # otherwise it was trimmed, and a newer one exists


async def oldest(
    port: LogPort, name: str, types: Mapping[str, type[Replicated]]
) -> tuple[Machine | None, bool]:
    """Return the state of the oldest whole checkpoint, and whether the space began with it."""
    manifests = port.items(Tags.of(name).checkpoint)
    while (items := await manifests.next()) is not None:
        for item in items:
            if isinstance(item, Entry):
                manifest = manifest_of(item)
                machine = await _load(port, manifest, types)
                if machine is not None:
                    return machine, not manifest.id
    return None, False


def manifest_of(entry: Entry) -> Manifest:
    """Decode the manifest in an entry. Raises Stopped if this version cannot read it."""
    try:
        record = decode_record(entry.data)
        if not isinstance(record, Manifest):
            raise DecodeError("the entry is tagged as a checkpoint but does not contain one")
    except DecodeError as error:
        raise refusal(entry.data, entry.position, error) from error
    return record


async def _load(
    port: LogPort, manifest: Manifest, types: Mapping[str, type[Replicated]]
) -> Machine | None:
    """Return the state in a checkpoint; None if a part of it was trimmed or is damaged."""
    await port.refresh()
    if manifest.start < port.trim_point:
        return None
    machine = Machine(types, manifest.start)
    chunks, total = Joined(), Sum()
    refused: Stopped | None = None
    for i in range(0, len(manifest.pieces), PIECES_AT_ONCE):
        positions = manifest.pieces[i : i + PIECES_AT_ONCE]
        found = await port.read(positions)
        for position in positions:
            slot = found[position]
            if not isinstance(slot, Entry):
                return None
            total.add(slot.data)
            if refused is not None:
                continue
            try:
                for chunk in chunks.add(slot.data):
                    machine.load(chunk)
            except Stopped as error:  # raised only if the bytes are those that were written
                refused = error
        await port.pause()
    if (total.size, total.digest) != (manifest.size, manifest.digest):
        return None
    if refused is not None:
        raise refused
    return None if chunks.rest else machine
