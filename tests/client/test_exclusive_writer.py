"""What an exclusive writer takes: how much at a time, in which settings, and on an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FuturesTimeout

import pytest

import zlog
from zlog import aio, testing
from zlog._append.rounds import Pending, Round
from zlog.testing import Fate, StoreCall, run_virtually

from .faulty import FaultyStore, loses_first


def test_writer_waits_for_space(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders", width=1)
    with log.writer(window_bytes=1000, timeout=5) as writer:
        futures = [writer.submit(bytes(400)) for _ in range(50)]
        assert writer.append(bytes(5000)) == 50  # more than the window, when nothing else is there
        writer.flush()
        assert [future.result() for future in futures] == [*range(50)]
        assert (writer.confirmed, writer.unconfirmed_bytes) == (51, 0)


def test_writer_respects_capacity(store: zlog.Store) -> None:
    log = zlog.Log.create(store, "orders", width=2)
    log.append(bytes(300))
    with log.writer(capacity=1000, when_full="raise") as writer:
        assert writer.held_bytes == 300
        positions = [writer.append(bytes(100)) for _ in range(7)]
        assert writer.held_bytes == 1000
        with pytest.raises(zlog.LimitReached, match="holds 1000 bytes"):
            writer.append(b"x")
        with pytest.raises(zlog.LimitReached, match="do not fit into the log"):
            writer.append(bytes(1001))
        writer.trim(positions[1])
        assert writer.held_bytes == 600
        writer.append_many([bytes(100)] * 4)
        assert writer.reset() == 12
        assert writer.held_bytes == 0
        assert log.earliest() == 12
        writer.append(bytes(1000))
    with log.writer(capacity=1000) as waiting, ThreadPoolExecutor(1) as threads:
        assert waiting.held_bytes == 1000
        append = threads.submit(waiting.append, b"x")
        with pytest.raises(FuturesTimeout):
            append.result(0.1)
        waiting.trim(waiting.confirmed)
        assert append.result(30) == 13


def test_timeout_without_space_has_reason(memory: zlog.Store) -> None:
    """It is at its capacity or at its window: neither is a fault of the store."""
    log = zlog.Log.create(memory, "orders")
    log.append(bytes(900))
    full = (
        "log 'orders' holds 900 bytes, including unconfirmed ones, and its writer's capacity is"
        " 1000, so 101 more bytes do not fit"
    )
    with log.writer(capacity=1000) as writer:
        for call in (writer.append, writer.submit):
            with pytest.raises(zlog.StoreTimeout, match=full) as caught:
                call(bytes(101), timeout=0.01)
            assert caught.value.hint == (
                "The entry is not in the log. Trim entries that are no longer"
                " needed (`writer.trim(position)`)."
            )
            assert caught.value.positions == (None,)
    answers = threading.Event()
    slow = FaultyStore(
        memory, lambda _, method: None if method != "write" or answers.wait() else "fail"
    )
    with zlog.Log.open(slow, "orders").writer(window_bytes=1000) as writer:
        writer.submit(bytes(600))
        with pytest.raises(zlog.StoreTimeout, match=r"600 bytes .* `window_bytes` is 1000"):
            writer.append(bytes(500), timeout=0.01)
        answers.set()


async def test_full_writer_notices_trims_of_others(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders")
    with log.writer(capacity=10, when_full="raise") as writer:
        writer.append(bytes(10))
        with pytest.raises(zlog.LimitReached):
            writer.append(bytes(10))
        zlog.Log.open(memory, "orders").trim_to(1)
        assert writer.append(bytes(10)) == 1
    with log.writer(capacity=10) as waiting, ThreadPoolExecutor(1) as threads:
        append = threads.submit(waiting.append, bytes(10))
        zlog.Log.open(memory, "orders").trim_to(2)
        assert append.result(30) == 2
    async with aio.Log.open(memory, "orders") as other, other.writer(capacity=10) as last:
        with pytest.raises(zlog.StoreTimeout, match="holds 10 bytes"):
            await last.append(bytes(10), timeout=0.01)
        coming = asyncio.ensure_future(last.append(bytes(10)))
        await asyncio.sleep(0)
        log.trim_to(3)
        assert await asyncio.wait_for(coming, 30) == 3


async def test_writer_works_on_event_loop(store: zlog.Store) -> None:
    async with (
        aio.Log.create(store, "orders", width=2) as log,
        log.writer("loop", capacity=10_000, window_bytes=2000) as writer,
    ):
        assert await writer.append(b"0") == 0
        assert await writer.append_many([b"1", b"2"]) == range(1, 3)
        futures = [await writer.submit(b"%d" % i) for i in range(3, 300)]
        together = [writer.append(b"%d" % i) for i in range(300, 400)]
        assert await asyncio.gather(*together) == [*range(300, 400)]
        assert [await future for future in futures] == [*range(3, 300)]
        assert await (await writer.submit_many([b"400", b"401"])) == range(400, 402)
        await writer.flush()
        assert [item.data async for item in log.read_range()] == [b"%d" % i for i in range(402)]
        await writer.trim(100)
        assert await writer.reset() == 402
        assert [item async for item in writer.recover()] == []
        append = asyncio.ensure_future(writer.append(bytes(9000)))
        await append
        waiting = asyncio.ensure_future(writer.append(bytes(1001)))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        await writer.reset()
        assert await waiting == 403
        other = zlog.Log.open(store, "orders")
        with other.writer("other"), pytest.raises(zlog.Fenced, match="other"):
            await writer.append(b"x")
        other.fence()
        assert await log.append(b"shared") == 404
        assert (await log.read_only()).read_only
        assert not (await log.writable()).read_only


async def test_appends_of_one_round_fail_together(memory: zlog.Store) -> None:
    """What was submitted has failed: none of those that came after it is in the log, nor more."""
    lost = asyncio.Event()
    faulty = FaultyStore(
        memory, lambda _, method: "lose" if method == "write" and lost.is_set() else None
    )
    async with aio.Log.create(faulty, "orders", timeout=0.2) as log:
        writer = await log.writer()
        lost.set()
        with pytest.raises(zlog.StoreTimeout):
            await (await writer.submit(b"0"))
        lost.clear()
        appends = [asyncio.ensure_future(writer.append(b"%d" % i)) for i in range(1, 4)]
        await asyncio.sleep(0)
        with pytest.raises(zlog.StoreTimeout):
            await writer.submit(b"4")
        told = await asyncio.gather(*appends, return_exceptions=True)
        assert [type(each) for each in told] == [zlog.StoreTimeout] * 3
        assert await writer.append(b"5") == 1
        assert [item.data async for item in log.read_range()] == [b"0", b"5"]
        other = zlog.Log.open(memory, "orders").writer("other")
        await writer.submit(b"x")
        with pytest.raises(zlog.Fenced):
            await writer.flush()
        late = [writer.append(b"late"), writer.append(b"late")]
        told = await asyncio.gather(*late, return_exceptions=True)
        assert [type(each) for each in told] == [zlog.Fenced] * 2
        other.release()


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"name": ""}, "a writer's name"),
        ({"name": "x" * 129}, "a writer's name"),
        ({"name": "two\nlines"}, "a writer's name"),
        ({"window_bytes": 0}, "window_bytes"),
        ({"capacity": 0}, "capacity"),
        ({"when_full": "drop"}, "when_full"),
    ],
    ids=str,
)
def test_invalid_settings_do_not_take_log(
    memory: zlog.Store, settings: dict[str, object], why: str
) -> None:
    log = zlog.Log.create(memory, "orders")
    with pytest.raises(ValueError, match=why):
        log.writer(**settings)  # type: ignore[arg-type]
    assert log.append(b"x") == 0
    assert log.view.writer is None


def test_invalid_entries_are_refused(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders", entry_bytes_max=10)
    with log.writer() as writer:
        wrong: Sequence[object]
        for wrong in ([bytes(11)], ["text"], [None]):
            with pytest.raises((zlog.EntryTooLarge, TypeError)):
                writer.append_many(wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="a list of bytes"):
            writer.append_many(b"one")  # type: ignore[arg-type]
        assert writer.append(bytearray(b"0")) == 0


def test_submit_many_assigns_consecutive_positions(store: zlog.Store) -> None:
    log = zlog.Log.create(store, "orders", width=2, stripe_unit=4)
    with log.writer() as writer:
        lists = [[b"%d.%d" % (i, j) for j in range(i)] for i in range(1, 40)]
        futures = []
        for some in lists:
            futures.append(writer.submit_many(some))
            writer.submit(b"single")
        assert writer.submit_many([]).result() == range(0)
        end = 0
        for some, future in zip(lists, futures, strict=True):
            assert future.result(30) == range(end, end + len(some))
            end += len(some) + 1
        writer.flush()
        assert writer.confirmed == end
        expected = [data for some in lists for data in (*some, b"single")]
        assert [entry.data for entry in log.read_range() if isinstance(entry, zlog.Entry)] == (
            expected
        )
        log.fence()
        late = writer.submit_many([b"a", b"b"])
        with pytest.raises(zlog.Fenced):
            late.result(30)
        for attempt in (writer.flush, lambda: writer.submit_many([b"c"])):
            with pytest.raises(zlog.Fenced):
                attempt()


def test_error_of_block_is_raised(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders")

    def fenced_at_work() -> None:
        with log.writer() as writer:
            log.fence()
            writer.submit(b"in vain")
            raise LookupError("of the block")

    with pytest.raises(LookupError, match="of the block"):
        fenced_at_work()


def test_failed_append_many_reports_all_positions(memory: zlog.Store) -> None:
    log = zlog.Log.create(FaultyStore(memory, loses_first("write")), "orders", timeout=0.2)
    writer = log.writer()
    with pytest.raises(zlog.StoreTimeout):
        writer.append(b"lost")
    log.fence()
    with pytest.raises(zlog.Fenced) as raised:
        writer.append_many([b"a", b"b", b"c"])
    assert raised.value.positions == (None, None, None)


def test_round_is_split_within_part() -> None:
    lower, upper = (Pending(part, Future(), True, True) for part in ([b"a"], [b"b", b"c", b"d"]))
    rest = Round(10, [*lower.entries, *upper.entries], [(lower, 1), (upper, 3)])
    head = rest.split(12)
    assert (head.end, head.entries, head.parts) == (12, [b"a", b"b"], [(lower, 1), (upper, 1)])
    assert (rest.first, rest.entries, rest.parts) == (12, [b"c", b"d"], [(upper, 2)])


@pytest.mark.parametrize("why", ["lost", "late"])
async def test_no_append_overtakes_a_failed_one(
    memory: zlog.Store, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """Neither where that was sent and never answered, nor where it waited for space too long."""
    monkeypatch.setattr("zlog._append.exclusive_forms.ROUND_ENTRIES_MAX", 1)
    writes = iter(range(100))

    def plan(call: testing.StoreCall) -> testing.Fate:
        if call.method != "write":
            return testing.AT_ONCE
        if why == "lost":
            return testing.Fate(reply=None) if next(writes) == 0 else testing.AT_ONCE
        return testing.Fate(0.0, 0.5)

    zlog.Log.create(memory, "orders", width=2)
    async with await aio.Log.open(testing.FaultyStore(memory, plan), "orders", timeout=0.8) as log:
        writer = await log.writer(window_bytes=1)
        outcomes: list[object] = []

        async def append(name: bytes) -> None:
            try:
                outcomes.append((name, await writer.append(name)))
            except zlog.StoreTimeout:
                outcomes.append((name, None))

        tasks = []
        # One after the other is sent, for half a second: the third waits for too long.
        for name, pause in ((b"a", 0.02), (b"b", 0.02), (b"c", 0.6), (b"d", 0.0)):
            tasks.append(asyncio.create_task(append(name)))
            await asyncio.sleep(pause)
        await asyncio.gather(*tasks)
        kept = 0 if why == "lost" else 2
        assert [position for _, position in outcomes] == [*range(kept), *[None] * (4 - kept)]
        assert await writer.append(b"e") in (kept, kept + 1)


def test_tail_during_takeover_is_confirmed(
    memory: zlog.Store,
) -> None:
    delays = {"max_position": 0.5}

    def delay_the_first(call: StoreCall) -> Fate:
        delay = delays.pop(call.method, 0.0)
        return Fate(effect=delay, reply=delay)

    async def work() -> None:
        log = await aio.Log.create(memory, "orders", width=4, stripe_unit=1)
        slow = testing.FaultyStore(memory, delay_the_first, share_sequencer=False)
        async with aio.Log.open(slow, "orders") as reader:
            asked = asyncio.create_task(reader.tail())
            await asyncio.sleep(0.1)
            writing = testing.FaultyStore(memory, delay_the_first, share_sequencer=False)
            async with aio.Log.open(writing, "orders") as other:
                writer = await other.writer()
                delays["write"] = 5.0
                futures = [await writer.submit(b"0")]
                await asyncio.sleep(0.1)
                futures.append(await writer.submit(b"1"))
                assert await asked == 0
                assert await log.tail() == 0
                assert [await future for future in futures] == [0, 1]
                await writer.close()

    run_virtually(work())
