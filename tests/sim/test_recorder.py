"""The recorder passes on what it is asked for, as it is asked."""

from __future__ import annotations

import pytest

import zlog
import zlog.aio
from tests.history import Action, History, Result, check
from zlog._base.io import deadline_of


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


async def test_a_write_begins_when_its_position_is_reserved() -> None:
    with zlog.connect("mem://") as store:
        history = History()
        log = history.watch(await zlog.aio.Log.create(store, "orders"))
        first, second = await log.reserve(2)
        assert await log.append(b"after") == 2
        await log.write(first, b"first")
        await log.fill(second)
        with pytest.raises(zlog.Invalidated):
            await log.write(second, b"second")
        after, written, _, refused = history.operations
        assert written.invoked < after.invoked
        assert (written.position, written.epochs) == (0, (log.log.view.epoch,) * 2)
        assert refused.result is Result.REFUSED
        assert [item.position async for item in log.read_range()] == [0, 1, 2]
        assert check(history) == []


async def test_it_takes_down_each_attempt_at_a_delivery() -> None:
    with zlog.connect("mem://") as store:
        history = History()
        log = history.watch(await zlog.aio.Log.create(store, "orders"))
        assert await log.deliver([b"a", b"b"], source="job", batch=3, part=1) == 2
        assert await log.deliver(iter([b"a", b"b"]), source="job", batch=3, part=1) == 0
        await log.log.deliveries_done("job", before=4)
        with pytest.raises(zlog.DeliverySuperseded):
            await log.deliver([b"a"], source="job", batch=3, part=1)
        with pytest.raises(ValueError, match="can't name a source"):
            await log.deliver([b"c"], source="a/b", batch=0)
        taken = [(each.entry, each.delivery, each.result) for each in history.operations]
        name = ("job", 3, 1)
        assert taken == [
            *[(b"a", name, Result.OK), (b"b", name, Result.OK)] * 2,
            (b"a", name, Result.SUPERSEDED),
            (b"c", ("a/b", 0, 0), Result.FAILED),
        ]
        await log.tail()
        assert [item.data async for item in log.read_range()] == [b"a", b"b"]
        assert check(history) == []


async def test_it_takes_down_what_exclusive_writers_do() -> None:
    with zlog.connect("mem://") as store:
        history = History()
        log = history.watch(await zlog.aio.Log.create(store, "orders"))
        await log.append(b"shared")
        former = await log.writer("former")
        assert await former.append(b"a") == 1
        submitted = await former.submit(b"b")
        await former.flush()
        assert submitted.result() == 2
        latter = await history.watch(await zlog.aio.Log.open(store, "orders")).writer("latter")
        with pytest.raises(zlog.Fenced):
            await former.append_many([b"c", b"d"])
        with pytest.raises(zlog.AppendRefused):
            await log.append(b"e")
        assert [item.position async for item in latter.recover()] == [0, 1, 2]
        assert await latter.append_many([b"f", b"g"]) == range(3, 5)
        await latter.trim(1)
        await latter.release()
        await log.fence()
        assert await log.append(b"h") == 5
        ids = {former.writer.id: "former", latter.writer.id: "latter", None: ""}
        done = [
            (each.action, ids[each.writer], each.position, each.result)
            for each in history.operations
            if each.action is not Action.READ
        ]
        assert done == [
            (Action.APPEND, "", 0, Result.OK),
            (Action.TAKE, "former", 1, Result.OK),
            (Action.APPEND, "former", 1, Result.OK),
            (Action.APPEND, "former", 2, Result.OK),
            (Action.TAKE, "latter", 3, Result.OK),
            (Action.APPEND, "former", None, Result.FENCED),
            (Action.APPEND, "former", None, Result.FENCED),
            (Action.APPEND, "", None, Result.REFUSED),
            (Action.APPEND, "latter", 3, Result.OK),
            (Action.APPEND, "latter", 4, Result.OK),
            (Action.TRIM_TO, "", 1, Result.OK),
            (Action.RELEASE, "latter", None, Result.OK),
            (Action.RELEASE, "", None, Result.OK),
            (Action.APPEND, "", 5, Result.OK),
        ]
        assert check(history) == []
