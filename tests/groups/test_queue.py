"""Jobs of queues after errors, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from zlog.aio import Log
from zlog.groups.aio import Groups, Queue

from .test_groups import append, virtually


@virtually
async def test_jobs_of_a_cancelled_call_are_delivered(log: Log) -> None:
    await append(log, 1)
    async with Queue(log, "q") as queue:
        replica = queue._opened.replica
        write = replica.write

        async def cancelled(operations: Sequence[Any]) -> int:
            await write(operations)
            patch.undo()
            raise asyncio.CancelledError

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(replica, "write", cancelled)
            with pytest.raises(asyncio.CancelledError):
                await queue.take()
        await asyncio.sleep(1)  # the member learns of the stored command
        assert len(await queue.take(wait=5)) == 1


@virtually
async def test_jobs_that_a_hung_worker_did_not_take_go_to_others(log: Log) -> None:
    await append(log, 50)
    async with Queue(log, "q", lease=2) as hung, Queue(log, "q", lease=2) as other:
        for _ in range(10):
            [job] = await hung.take()  # takes more and more of them at once
            await job.ack()
        assert (await Groups(log).stat("q")).in_progress > 1
        await asyncio.sleep(5)
        found: list[int] = []
        while jobs := await other.take(100, wait=1):
            found += [job.attempt for job in jobs]
            for job in jobs:
                await job.ack()
        assert found == [1] * 40


@virtually
async def test_many_failed_jobs_fit_into_the_entries(log: Log) -> None:
    await log.append_many([b"x"] * 10_000)
    async with Queue(log, "q") as queue:
        jobs = await queue.take(10_000)
        while len(jobs) < 10_000:
            jobs += await queue.take(10_000)
        for job in jobs:
            await job.nack(error="e" * 100)
        await queue.flush()
        assert (await Groups(log).stat("q")).waiting == 10_000


@virtually
async def test_jobs_from_before_a_reset_acknowledge_nothing(log: Log) -> None:
    await append(log, 3)
    async with Queue(log, "q") as queue:
        early = await queue.take(3)
        await early[0].ack()
        await Groups(log).reset("q", 0)
        again = await queue.take(3)
        assert [job.position for job in again] == [0, 1, 2]
        for job in early:
            await job.ack(flush=True)
        assert queue.refused == 3
        assert (await Groups(log).stat("q")).lag == 3
        for job in again:
            await job.ack(flush=True)
        assert (await Groups(log).stat("q")).lag == 0


@virtually
async def test_without_dead_letters_dead_jobs_are_tried_again(log: Log) -> None:
    await append(log, 1)
    async with Queue(log, "q", attempts=1, dead_letters="dead") as queue:
        [job] = await queue.take()
        await job.nack(flush=True)
        async with Queue(log, "q", dead_letters="") as other:
            assert [job.attempt for job in await other.take(wait=5)] == [2]
