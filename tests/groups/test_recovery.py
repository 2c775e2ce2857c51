"""What groups keep if replies are lost, and if groups are reset or removed, in virtual time."""

from __future__ import annotations

import asyncio

import pytest

import zlog
from zlog.aio import Log
from zlog.groups import GroupNotFound
from zlog.groups.aio import Group, Groups, Queue

from .test_groups import append, read_all, virtually


@virtually
async def test_cursor_stays_below_what_is_not_processed(log: Log) -> None:
    await append(log, 100)
    groups, cursor = Groups(log), await log.cursor("group.g", create="earliest")
    async with Group(log, "g", slots=4).join() as member:
        await read_all(member)
        await asyncio.sleep(2)
        await member.seek(50)
        assert (await cursor.state()).position == 50
        inner = member._inner
        advance = inner.data.advance_cursor

        async def reset_meanwhile(name: str, low: int) -> None:
            await groups.reset("g", 10)
            await advance(name, low)

        inner.data.advance_cursor = reset_meanwhile  # type: ignore[method-assign]
        await read_all(member)
        await asyncio.sleep(2)
        inner.data.advance_cursor = advance  # type: ignore[method-assign]
        assert (await cursor.state()).position == 10
        await read_all(member)
        await asyncio.sleep(2)
        assert (await cursor.state()).position == 100
        async with Log.open(log.store, "log") as other:
            await other.trim_to(20)
        await member.seek(5)
        assert (await cursor.state()).position == 20
        await read_all(member)
        await groups.remove("g")
        async with Group(log, "g").join():
            await member.close()
            assert (await cursor.state()).position == 20


@virtually
async def test_reset_keeps_jobs_that_died(log: Log) -> None:
    await append(log, 3)
    async with Queue(log, "q", attempts=1, dead_letters="dead") as queue:
        for job in await queue.take(3):
            await job.nack()
        await queue.flush()
        await Groups(log).reset("q", "latest")
        with pytest.raises(zlog.HeldByCursor):
            await log.trim_to(3)


@virtually
async def test_remove_keeps_log_of_another_kind(log: Log) -> None:
    async with Log.create(log.store, "log.group.mail") as other:
        await other.append(b"mail")
        with pytest.raises(GroupNotFound):
            await Groups(log).remove("mail")
        assert await other.tail() == 1


@virtually
async def test_repeated_transform_compares_outputs(log: Log) -> None:
    await append(log, 4)
    async with Log.create(log.store, "out") as out, Group(log, "g", slots=1).join() as member:
        inner = member._inner
        commit = inner.commit

        async def lose_request(_: object) -> None:
            raise zlog.StoreTimeout("lost")

        inner.commit = lose_request  # type: ignore[assignment]
        with pytest.raises(zlog.StoreTimeout):
            await member.transform(lambda e: [e.data], into=out, wait=1)
        inner.commit = commit  # type: ignore[method-assign]
        with pytest.raises(zlog.SequenceDiffers):
            await member.transform(lambda _: [], into=out, wait=1)
        assert await member.transform(lambda e: [e.data], into=out, wait=1) == 0
        assert len(await out.producers()) == 1
        await Groups(log).remove("g")
        assert await out.producers() == []


@pytest.mark.parametrize("command", ["configure", "expire"])
def test_lost_reply_does_not_make_commit_fail(command: str) -> None:
    """The slots are released, or the member is removed, before the commit is sent again."""

    async def test(log: Log) -> None:
        await append(log, 100)
        group = Group(log, "g", slots=4, lease=2)
        async with group.join() as member, group.join() as other:
            batch = await member.next()
            assert batch is not None
            await asyncio.sleep(1)  # until the member knows that it is to release slots
            inner = member._inner
            token, write = inner.token, inner.replica.write

            async def lose_reply(ops: list[tuple[str, str, tuple[object, ...], int]]) -> int:
                position = await write(ops)
                if ops[0][2][0] != "commit":
                    return position
                inner.replica.write = write  # type: ignore[method-assign]
                if command == "expire":
                    assert token is not None
                    version = inner.look(lambda state: state.members[token].version)
                    await other._inner.send("expire", token, version)
                raise zlog.StoreTimeout("lost")

            inner.replica.write = lose_reply  # type: ignore[method-assign,assignment]
            await member.commit(batch)
            await member.commit(batch)
            assert await other.next(wait=5) is None

    virtually(test)()
