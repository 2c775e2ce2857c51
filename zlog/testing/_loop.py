"""An event loop in virtual time, whose processes can be paused and killed at any await.

Time advances only when no task can run, so an hour of waiting passes at once. The seed decides in
which order callbacks run that are ready at the same time.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import random
import selectors
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from zlog.environment import SteadyTime, World
from zlog.testing._network import Network
from zlog.testing._process import PROCESS, Process

T = TypeVar("T")

WALL_CLOCK_START_US = 1_700_000_000_000_000
"""The wall clock's time at which a virtual loop begins: 2023-11-14 22:13:20 UTC."""


_TURN_SECONDS = 1e-6
"""The duration of one turn of the loop, so that time also passes for a task that only polls it."""

_TURNS_MAX = 200_000
"""The number of turns without a pause after which the tasks count as stuck in a loop."""


_CLOSES_MAX = 100
"""The maximum number of awaits in the ``finally`` blocks of one coroutine."""


class Stuck(RuntimeError):
    """All tasks of a virtual loop wait for something that never happens, or a task never waits."""


class VirtualWorld(World):
    """The random numbers and clocks of a virtual loop; see ``zlog.environment.World``."""

    def __init__(self, loop: VirtualLoop, seed: int) -> None:
        self._random = random.Random(f"{seed}.world")
        self.clock = loop.time

    def random(self) -> float:
        """Return a random number that depends only on the seed."""
        return self._random.random()

    def token(self, count: int) -> bytes:
        """Return bytes that depend only on the seed."""
        return self._random.randbytes(count)

    def wall_clock_us(self) -> int:
        """Return the microseconds since 1970. They advance with the loop's time."""
        assert self.clock is not None
        return WALL_CLOCK_START_US + round(self.clock() * 1e6)

    def steady_clock(self) -> SteadyTime:
        """Return the loop's time: one clock for all simulated machines."""
        assert self.clock is not None
        return SteadyTime("virtual", round(self.clock() * 1e6))

    def local(self, loop: asyncio.AbstractEventLoop) -> dict[str, Any]:
        """Return the data of the running simulated process."""
        process = PROCESS.get()
        return super().local(loop) if process is None else process.local


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer as soon as no task can run.

    Connections between its tasks go through ``network``, a simulation inside this process. Tasks
    cannot use threads, and cannot wait for file descriptors other than those of zlog's stores.

    Args:
        seed: the seed for zlog's random numbers and for the order of callbacks that are ready.

    Attributes:
        network: the simulated network, a :class:`Network`.
        zlog_world: the clocks and random numbers that zlog uses on this loop.
    """

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self._now = 0.0
        self._turns = 0
        self._random = random.Random(f"{seed}.order")
        self._serials = itertools.count()
        self._serial_of: dict[int, int] = {}
        self._abandoned = False
        self.network = Network(self, seed)
        self.zlog_world = VirtualWorld(self, seed)

    def time(self) -> float:
        """The virtual time in seconds."""
        return self._now

    def create_task(self, coro: Coroutine[Any, Any, T], **options: Any) -> asyncio.Task[T]:  # type: ignore[override]
        """Create a task, which belongs to the running process."""
        task = super().create_task(coro, **options)
        process = PROCESS.get()
        if process is not None:
            process.own(task)
        return task

    async def create_connection(self, protocol_factory: Any, *where: Any, **options: Any) -> Any:
        """Connect to a listener of the simulated network."""
        host = options.get("host", where[0] if where else None)
        port = options.get("port", where[1] if len(where) > 1 else None)
        return await self.network.connect(protocol_factory, host, port)

    async def create_server(self, protocol_factory: Any, *where: Any, **options: Any) -> Any:
        """Listen in the simulated network, on ``sock`` as :meth:`Network.bind` returns it."""
        assert not where
        return self.network.listen(protocol_factory, options["sock"])

    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:  # type: ignore[override]
        """Wait like the base class. Readable descriptors come in the order of their addition."""
        self._serial_of[fd] = next(self._serials)
        super().add_reader(fd, callback, *args)

    def close(self) -> None:
        """Close the loop and abandon all tasks on it, as if the process ended.

        No task runs again. However, the ``finally`` blocks of the tasks' coroutines run up to their
        first await, with this loop as the running one.
        """
        if self.is_closed():
            return
        self._abandoned = True
        self.set_exception_handler(lambda *_: None)
        running = asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        left = set[asyncio.Task[Any]]()
        while tasks := asyncio.all_tasks(self) - left:  # blocks may start further tasks
            left |= tasks
            for task in tasks:
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                _close(task.get_coro())
        asyncio._set_running_loop(running)
        super().close()

    def carry_on(self, handles: Iterable[asyncio.Handle]) -> None:
        """Run the callbacks of a process that was paused."""
        self._ready.extend(handles)  # type: ignore[attr-defined]

    def end(self, process: Process) -> None:
        """Break the connections of a dead process, and stop watching its file descriptors."""
        self.network.kill(process)
        for key in list(self._selector.get_map().values()):  # type: ignore[attr-defined]
            reader = key.data[0]
            if reader is not None and reader._context.get(PROCESS) is process:
                self._selector.unregister(key.fileobj)  # type: ignore[attr-defined]

    def _asyncgen_finalizer_hook(self, agen: Any) -> None:
        if not self._abandoned:
            super()._asyncgen_finalizer_hook(agen)  # type: ignore[misc]

    def _run_once(self) -> None:
        ready = self._ready  # type: ignore[attr-defined]
        self._poll()
        self._collect_timers()
        if not ready:
            self._jump()
            self._collect_timers()
        self._now += _TURN_SECONDS
        self._turns += 1
        if self._turns > _TURNS_MAX:
            raise Stuck(f"tasks run without ever waiting, among them {ready[0]!r}")
        batch = list(ready)
        ready.clear()
        if len(batch) > 1:
            self._random.shuffle(batch)
        for handle in batch:
            if handle._cancelled:
                continue
            process = handle._context.get(PROCESS)
            if process is None or process.running:
                handle._run()
            else:
                process.hold(handle)

    def _poll(self) -> None:
        events = [each for each in self._selector.select(0) if _is_heard(each[0])]  # type: ignore[attr-defined]
        if len(events) > 1:
            events.sort(key=lambda event: self._serial_of.get(event[0].fd, -1))
        if events:
            self._process_events(events)  # type: ignore[attr-defined]

    def _collect_timers(self) -> None:
        scheduled, now = self._scheduled, self._now  # type: ignore[attr-defined]
        while scheduled and scheduled[0]._when <= now:
            handle = heapq.heappop(scheduled)
            handle._scheduled = False
            if handle._cancelled:
                self._timer_cancelled_count -= 1  # type: ignore[attr-defined]
            else:
                self._ready.append(handle)  # type: ignore[attr-defined]

    def _jump(self) -> None:
        """Advance to the time of the next timer."""
        scheduled = self._scheduled  # type: ignore[attr-defined]
        while scheduled and scheduled[0]._cancelled:
            heapq.heappop(scheduled)._scheduled = False
            self._timer_cancelled_count -= 1  # type: ignore[attr-defined]
        if not scheduled:
            raise Stuck("every task is waiting, and no timer is left to wake one")
        self._now = max(self._now, scheduled[0]._when)
        self._turns = 0


def _close(coroutine: Any) -> None:
    """Close a coroutine, and close it again after each await in its ``finally`` blocks."""
    for _ in range(_CLOSES_MAX):
        with contextlib.suppress(BaseException):
            coroutine.close()
            return


def _is_heard(key: selectors.SelectorKey) -> bool:
    """Return whether a task reads a descriptor now, so that its process is not paused."""
    reader = key.data[0]
    process = None if reader is None else reader._context.get(PROCESS)
    return process is None or process.running


def run_virtually(work: Coroutine[Any, Any, T], seed: int = 0, seconds_max: float = 3600) -> T:
    """Run a coroutine to its end on a virtual loop, without waiting in real time.

    Args:
        work: the coroutine to run.
        seed: see :class:`VirtualLoop`.
        seconds_max: how many seconds of virtual time the coroutine may take.

    Raises:
        TimeoutError: the coroutine took longer than that.
        Stuck: the coroutine waits for something that can never happen.
    """
    loop = VirtualLoop(seed)
    try:
        return loop.run_until_complete(asyncio.wait_for(work, seconds_max))
    finally:
        loop.close()
