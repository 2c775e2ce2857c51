"""The recorder passes on what it is asked for, as it is asked."""

from __future__ import annotations

import zlog
import zlog.aio
from zlog._io import deadline_of
from zlog.testing import History


async def test_it_fills_holes_as_its_log_does() -> None:
    """After the time that the log was opened with, unless it is told another."""
    with zlog.connect("mem://") as store:
        log = History().watch(await zlog.aio.Log.create(store, "orders", hole_timeout=0.01))
        await log.append(b"a")
        client = log.log._client
        await client.positions.grant(1, deadline_of(client.io, 10))
        left_alone = [item async for item in log.read_range(hole_timeout=None)]
        assert left_alone[1] == zlog.Gap(1, 2, zlog.GapKind.UNWRITTEN)
        filled = [item async for item in log.read_range()]
        assert filled[1][:3] == (1, 2, zlog.GapKind.FILLED)
