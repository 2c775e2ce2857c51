"""What members of groups see, mostly in virtual time."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

import zlog
import zlog.groups
from zlog._native.local import MemoryStore
from zlog.aio import Log
from zlog.groups import GroupDiffers, GroupNotFound, SlotsLost, _member
from zlog.groups.aio import Group, Groups, Member, Queue
from zlog.testing import AT_ONCE, FaultyStore, Process, run_virtually

# The coroutines of killed processes are destroyed in `async with` blocks.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

Test = Callable[[Log], Awaitable[None]]


def virtual_store() -> FaultyStore:
    """Return a store in memory whose waits take virtual time."""
    return FaultyStore(zlog.connect("mem://"), lambda _: AT_ONCE, share_sequencer=False)


def virtually(test: Test) -> Callable[[], None]:
    """Run a test on a new log in memory, in virtual time."""

    async def work() -> None:
        with virtual_store() as store:
            async with Log.create(store, "log", hole_timeout=0.05) as log:
                await test(log)

    def run() -> None:
        run_virtually(work(), 1, 600)

    run.__name__ = test.__name__
    return run


async def append(log: Log, count: int) -> None:
    """Append numbers, with 50 different tags."""
    await log.append_many(
        [b"%d" % n for n in range(count)], tags_each=[[f"k{n % 50}"] for n in range(count)]
    )


async def work_off(queue: Queue) -> list[int]:
    """Acknowledge all jobs, and return their positions."""
    found = []
    while jobs := await queue.take(100, wait=0.5):
        for job in jobs:
            found.append(job.position)
            await job.ack()
    return found


async def read_all(member: Member) -> list[int]:
    """Commit all batches, and return the positions of their entries."""
    found: list[int] = []
    while (batch := await member.next(wait=0.5)) is not None:
        found += [item.position for item in batch]
        await member.commit(batch)
    return found


@virtually
async def test_failed_jobs_become_dead_letters_and_come_back(log: Log) -> None:
    await append(log, 10)
    async with Queue(log, "q", attempts=2, dead_letters="dead") as queue:
        errors = iter(("first", "second"))
        while jobs := await queue.take(10, wait=1):
            for job in jobs:
                if job.data == b"7" and (error := next(errors, None)):
                    await job.nack(error=error)
                else:
                    await job.ack()
        await asyncio.sleep(2)
        async with Log.open(log.store, "dead") as dead:
            [letter] = [item async for item in dead.read_range()]
        assert isinstance(letter, zlog.Entry)
        assert letter.data == b"7"
        about = {"dead-letter-of:log.group.q", "dead-position:7", "dead-attempts:2"}
        assert {*letter.tags} == about | {"dead-error:second", "k7"}
        stat = await Groups(log).stat("q")
        assert (stat.dead, stat.redeliveries, stat.lag) == (1, 1, 0)
        assert await Groups(log).redrive("q") == 1
        assert await Groups(log).redrive("q") == 0
        [job] = await queue.take(10)
        assert (job.data, job.tags, job.attempt) == (b"7", ("k7",), 1)


@virtually
async def test_delay_is_kept_even_if_worker_ends(log: Log) -> None:
    await append(log, 1)
    async with Queue(log, "q") as queue:
        [job] = await queue.take()
        await job.nack(delay=5.0, flush=True)
    await asyncio.sleep(3)
    began = asyncio.get_running_loop().time()
    async with Queue(log, "q") as queue:
        [job] = await queue.take()
    assert job.attempt == 2
    assert 1.5 < asyncio.get_running_loop().time() - began < 2.5


@virtually
async def test_job_returns_unless_its_lease_is_extended(log: Log) -> None:
    await append(log, 2)
    async with Queue(log, "q", lease=2) as queue:
        kept, late = await queue.take(2)
        for _ in range(4):
            await asyncio.sleep(1)
            kept.extend()
        [again] = await queue.take()
        assert (again.position, again.attempt) == (late.position, 2)
        await late.ack(flush=True)
        assert queue.refused == 1
        await kept.ack(flush=True)
        await again.ack(flush=True)
        assert queue.refused == 1
        assert (await Groups(log).stat("q")).lag == 0


@virtually
async def test_unused_jobs_are_returned_without_an_attempt(log: Log) -> None:
    await append(log, 50)
    async with Queue(log, "q") as queue:
        for _ in range(10):
            [job] = await queue.take()  # takes more and more of them at once
            await job.ack()
        assert (await Groups(log).stat("q")).in_progress > 1
    async with Queue(log, "q") as queue:
        assert {job.attempt for job in await queue.take(50)} == {1}


def test_gaps_are_skipped_and_lost_entries_are_reported() -> None:
    store = zlog.connect("mem://")
    assert isinstance(store, MemoryStore)
    with zlog.Log.create(store, "log", width=1) as log:
        log.append_many([b"%d" % n * 300 for n in range(5)], tags=["t"])
        [ref] = log.view.objects()
        with zlog.groups.Queue(log, "q") as queue, zlog.groups.Group(log, "g").join() as member:
            attrs, omap, stream = store.peek(ref.name) or ({}, {}, b"")
            damaged = {k: v.replace(b"3" * 300, b"7" * 300) for k, v in omap.items()}
            store.poke(ref.name, attrs, damaged, stream)
            log.trim_to(1, past_cursors=True)
            log.trim(2)
            jobs = queue.take(10)
            assert [job.position for job in jobs] == [1, 3, 4]
            with pytest.raises(zlog.CorruptEntry):
                _ = jobs[1].data
            for job in jobs:
                job.ack()
            batch = member.next()
            assert batch is not None
            assert [item.position for item in batch] == [1, 3, 4]
            assert [isinstance(item, zlog.Gap) for item in batch] == [False, True, False]
            member.commit(batch)
        assert {cursor.position for cursor in log.cursors()} == {5}


@virtually
async def test_acknowledgements_share_entries_and_checkpoints_trim(log: Log) -> None:
    await append(log, 3000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_member, "CHECKPOINT_ENTRIES", 20)
        async with Queue(log, "q") as queue:
            assert sorted(await work_off(queue)) == [*range(3000)]
            await asyncio.sleep(60)  # renewals
        async with Log.open(log.store, "log.group.q") as own:
            assert await own.tail() < 100
            assert own.view.trim_point > 0
    assert (await log.cursor("group.q")).position == 3000
    await log.trim_to(3000)


@virtually
async def test_rebalance_moves_only_what_it_must(log: Log) -> None:
    await append(log, 500)
    group = Group(log, "g")
    members: list[Member] = []
    for count in range(1, 9):
        before = [each.slots for each in members]
        members.append(await group.join())
        reading = [asyncio.create_task(read_all(each)) for each in members]
        await asyncio.gather(*reading)
        sizes = Counter(len(each.slots) for each in members)
        assert sum(size * n for size, n in sizes.items()) == 64
        assert max(sizes) - min(sizes) <= 1, count
        for member, slots in zip(members, before, strict=False):
            assert member.slots.items() <= slots.items()  # with the same tokens
    await members[0].close()
    await asyncio.sleep(1)
    kept = {**members[1].slots}
    await asyncio.gather(*(read_all(each) for each in members[1:]))
    assert kept.items() <= members[1].slots.items()
    for member in members[1:]:
        await member.close()


@virtually
async def test_named_member_keeps_its_slots_if_it_returns_in_time(log: Log) -> None:
    await append(log, 100)
    group = Group(log, "g", lease=5)
    async with group.join() as other:
        first = await group.join("w1")
        await asyncio.gather(read_all(first), read_all(other))
        slots = {*first.slots}
        await first.close()
        await asyncio.sleep(3)
        second = await group.join("w1")
        await asyncio.gather(read_all(second), read_all(other))
        assert {*second.slots} == slots
        third = await group.join("w1")
        await append(log, 100)
        with pytest.raises(zlog.Fenced, match="joined group 'g' as 'w1'"):  # noqa: PT012
            with suppress(SlotsLost):
                await read_all(second)
            await read_all(second)
        await asyncio.gather(read_all(third), read_all(other))
        assert {*third.slots} == slots
        await third.close()
        await asyncio.sleep(7)
        assert len(other.slots) == 64


@virtually
async def test_fenced_member_commits_nothing(log: Log) -> None:
    await append(log, 100)
    process, group = Process("paused"), Group(log, "g", lease=2)
    result: list[object] = []

    async def work() -> None:
        async with Log.open(log.store, "log") as own, Group(own, "g", lease=2).join() as member:
            batch = await member.next()
            assert batch is not None
            await asyncio.sleep(1)  # it is paused meanwhile
            try:
                await member.commit(batch)
            except SlotsLost as error:
                result.append(error.slots == tuple(sorted(batch.slots)))

    task = process.start(work())
    await asyncio.sleep(0.5)
    process.pause()
    async with group.join() as member:
        began = asyncio.get_running_loop().time()
        assert await member.next() is not None
        assert asyncio.get_running_loop().time() - began < 3  # the lease, and one second
        process.resume()
        await task
    assert result == [True]


@virtually
async def test_seek_pause_and_lag(log: Log) -> None:
    await append(log, 100)
    async with Group(log, "g", slots=4).join() as member:
        assert len(await read_all(member)) == 100
        assert await member.lag() == dict.fromkeys(range(4), 0)
        member.pause([0, 1])
        await member.seek(50)
        found = await read_all(member)
        assert 0 < len(found) < 50
        member.resume()
        assert sorted(found + await read_all(member)) == [*range(50, 100)]
        with pytest.raises(zlog.BeyondTail):
            await member.seek(101)


@virtually
async def test_slots_by_key_and_by_object(log: Log) -> None:
    await log.reconfigure(width=3, stripe_unit=4)
    await append(log, 100)
    async with Group(log, "object", by="object", slots=3).join() as member:
        batch = await member.next()
        assert batch is not None
        for slot, items in batch.by_slot().items():
            assert {item.position // 4 % 3 for item in items} == {slot}
    async with Group(log, "key", by=lambda entry: len(entry.data), slots=8).join() as member:
        batch = await member.next()
        assert batch is not None
        sizes = [{len(item.data) for item in items} for items in batch.by_slot().values()]
        assert sorted(map(sorted, sizes)) == [[1], [2]]


@pytest.mark.parametrize("seed", range(4))
def test_transform_appends_exactly_once_under_kills(seed: int) -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        with virtual_store() as store:
            async with Log.create(store, "log") as log, Log.create(store, "out") as out:

                async def transform() -> None:
                    async with (
                        Log.open(store, "log") as own,
                        Log.open(store, "out") as into,
                        Group(own, "g", slots=4, lease=1, entries_max=7).join() as member,
                    ):
                        await member.transform(
                            lambda e: [e.data, (e.data + b"!", ["t"])], into=into
                        )

                until, number, running = loop.time() + 20, 0, list[Process]()
                while loop.time() < until:
                    await append(log, 5)
                    number += 1
                    running.append(Process(f"m{number}"))
                    running[-1].start(transform())
                    await asyncio.sleep(0.5 * (seed + 1) * 0.37)
                    if len(running) > 3:
                        running.pop(number % 3).kill()
                async with Group(log, "g").join() as member:
                    await member.transform(
                        lambda e: [e.data, (e.data + b"!", ["t"])], into=out, wait=5
                    )
                    for process in running:
                        process.kill()
                    await member.transform(
                        lambda e: [e.data, (e.data + b"!", ["t"])], into=out, wait=5
                    )
                entries = Counter(
                    [i.data async for i in log.read_range() if isinstance(i, zlog.Entry)]
                )
                outputs = Counter(
                    [i.data async for i in out.read_range() if isinstance(i, zlog.Entry)]
                )
                assert outputs == entries + Counter({d + b"!": n for d, n in entries.items()})

    run_virtually(work(), seed, 600)


@virtually
async def test_reset_and_remove(log: Log) -> None:
    await append(log, 100)
    groups = Groups(log)
    async with Queue(log, "q") as queue, Group(log, "g").join() as member:
        assert len(await work_off(queue)) == len(await read_all(member)) == 100
        for name in ("q", "g"):
            assert await groups.reset(name, 90) == 90
            with pytest.raises(zlog.HeldByCursor):
                await log.trim_to(100)
        assert await work_off(queue) == await read_all(member) == [*range(90, 100)]
        with pytest.raises(zlog.BeyondTail):
            await groups.reset("q", 101)
        assert await groups.reset("q", "latest") == 100
    assert await groups.list() == ["g", "q"]
    await groups.remove("q")
    assert [cursor.name for cursor in await log.cursors()] == ["group.g"]
    with pytest.raises(GroupNotFound, match="log 'log' has no group 'q'"):
        await groups.remove("q")


@virtually
async def test_bad_input_says_what_is_wrong(log: Log) -> None:
    async with Queue(log, "q"), Group(log, "g", slots=8).join() as member:
        with pytest.raises(ValueError, match="need another log"):
            await member.transform(lambda entry: [entry.data], into=log)
        with pytest.raises(GroupDiffers, match="'q' is a group in mode 'queue', not 'ordered'"):
            await Group(log, "q").join()
        with pytest.raises(GroupDiffers, match="created with slots=8, not 9"):
            await Group(log, "g", slots=9).join()
        with pytest.raises(GroupDiffers, match="created with by='tag', not 'key'"):
            await Group(log, "g", by=lambda _: 1).join()
        with pytest.raises(GroupDiffers, match="'g' is a group in mode 'ordered', not 'queue'"):
            await Queue(log, "g").open()
    for dead_letters in ("log", "log.group.g"):
        with pytest.raises(ValueError, match="need a log of their own"):
            Queue(log, "q", dead_letters=dead_letters)
    with pytest.raises(ValueError, match="1 to 1024 slots"):
        Group(log, "g2", slots=1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least 1 s"):
        Queue(log, "q", lease=0.1)
    with pytest.raises(ValueError, match="not a valid name for a log"):
        Queue(log, "q", dead_letters="no such/name")
    with pytest.raises(ValueError, match="at least 1 job"):
        await Queue(log, "q").take(0)
    with pytest.raises(ValueError, match="is too long"):
        Queue(log, "q" * 65)
    with pytest.raises(zlog.StoreUnavailable, match="not open"):
        await Queue(log, "q").take()
    with pytest.raises(GroupNotFound):
        await Groups(log).stat("other")


def test_members_may_create_a_group_at_the_same_time(store: zlog.Store) -> None:
    def join() -> None:
        with zlog.Log.open(store, "log") as log:
            try:
                with zlog.groups.Queue(log, "q") as queue:
                    found.extend(job.ack() for job in queue.take(1, wait=5))
            except zlog.ZlogError as error:
                found.append(error)

    with zlog.Log.create(store, "log") as log:
        log.append_many([b"x"] * 6)
        found: list[object] = []
        threads = [threading.Thread(target=join) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [None] * 6


def test_threads_share_a_queue(store: zlog.Store) -> None:
    with zlog.Log.create(store, "log") as log:
        log.append_many([b"x"] * 2000)
        found: list[int] = []
        with zlog.groups.Queue(log, "q") as queue:

            def work() -> None:
                while jobs := queue.take(3, wait=0.3):
                    for job in jobs:
                        found.append(job.position)
                        job.ack()

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert sorted(found) == [*range(2000)]
        assert zlog.groups.Groups(log).stat("q").lag == 0
