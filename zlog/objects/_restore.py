"""Where a replica begins: at the newest checkpoint that is whole."""

from __future__ import annotations

from collections.abc import Mapping

from zlog._read.iterate import RangeReader
from zlog._read.select import Backwards, Wanted
from zlog.entry import Entry
from zlog.objects._machine import Machine
from zlog.objects._pieces import PIECES_AT_ONCE, Joined, Sum
from zlog.objects._port import Port
from zlog.objects._records import DecodeError, Manifest, Tags, decode_record, refusal
from zlog.objects._states import Replicated
from zlog.objects.errors import Stopped


async def restored(
    port: Port,
    name: str,
    types: Mapping[str, type[Replicated]],
    end: int | None = None,
) -> Machine | None:
    """Return the state of the newest whole checkpoint.

    Args:
        port: to the log.
        name: of the space.
        types: classes of users.
        end: only checkpoints below this position; None: all.

    Returns:
        The state; None: there is no checkpoint that can be read.

    Raises:
        Stopped: it is of a newer version, or has objects of unknown types.
    """
    client = port.client
    wanted = Wanted.of((Tags.of(name).checkpoint,), "any")
    while True:
        trim_point = client.layout.view.trim_point
        manifests = Backwards(client.reader, client.budget, wanted, 0, end, entries_max=1)
        while (items := await manifests.next()) is not None:
            for item in items:
                if isinstance(item, Entry):
                    machine = await _load(port, manifest_of(item), types)
                    if machine is not None:
                        return machine
        await client.layout.refresh(client.deadline())
        if client.layout.view.trim_point == trim_point:
            return None  # else what was there went meanwhile, and a newer one is there


async def oldest(
    port: Port, name: str, types: Mapping[str, type[Replicated]]
) -> tuple[Machine | None, bool]:
    """Return the state of the oldest whole checkpoint, and whether the space began with it."""
    client = port.client
    wanted = Wanted.of((Tags.of(name).checkpoint,), "any")
    manifests = RangeReader(client.reader, client.budget, 0, None, wanted=wanted)
    while (items := await manifests.next()) is not None:
        for item in items:
            if isinstance(item, Entry):
                manifest = manifest_of(item)
                machine = await _load(port, manifest, types)
                if machine is not None:
                    return machine, not manifest.id
    return None, False


def manifest_of(entry: Entry) -> Manifest:
    """Return the manifest that an entry has.

    Raises:
        Stopped: it has none that this version can read.
    """
    try:
        record = decode_record(entry.data)
        if not isinstance(record, Manifest):
            raise DecodeError("it has the tag of checkpoints")
    except DecodeError as error:
        raise refusal(entry.data, entry.position, error) from error
    return record


async def _load(
    port: Port, manifest: Manifest, types: Mapping[str, type[Replicated]]
) -> Machine | None:
    """Return the state that a checkpoint has; None: the log was trimmed there, or it is damaged."""
    client = port.client
    await client.layout.refresh(client.deadline())
    if manifest.start < client.layout.view.trim_point:
        return None
    machine = Machine(types, manifest.start)
    chunks, total = Joined(), Sum()
    refused: Stopped | None = None
    for i in range(0, len(manifest.pieces), PIECES_AT_ONCE):
        positions = manifest.pieces[i : i + PIECES_AT_ONCE]
        found = await client.reader.read(sorted(positions), client.deadline())
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
            except Stopped as error:  # it counts only if these are the bytes that were written
                refused = error
        await port.pause()
    if (total.size, total.digest) != (manifest.size, manifest.digest):
        return None
    if refused is not None:
        raise refused
    return None if chunks.rest else machine
