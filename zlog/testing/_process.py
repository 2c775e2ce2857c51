"""Processes on a virtual loop, which can be paused and killed at any await."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Coroutine, Iterable
from typing import Any, Protocol, TypeVar, cast

T = TypeVar("T")

_TASKS_MAX = 256
"""The number of tasks that a process keeps before it drops finished ones."""


class _Loop(Protocol):
    """The methods of the virtual loop that a process uses."""

    def carry_on(self, handles: Iterable[asyncio.Handle]) -> None: ...
    def end(self, process: Process) -> None: ...


class Process:
    """Tasks, timers and connections that pause and die together, like those of a real process.

    Operations that a store or the network has already received still take effect.

    Args:
        name: the name of the process, for messages.

    Attributes:
        running: whether the process is neither paused nor dead.
        dead: whether the process was killed.
        local: the data that zlog keeps once per process.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.local: dict[str, Any] = {}
        self.running = True
        self.dead = False
        self._held: dict[int, asyncio.Handle] = {}
        self._tasks: list[asyncio.Task[Any]] = []
        self._loop: _Loop | None = None

    def start(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a task in this process. The tasks that it starts also belong to the process."""
        assert not self.dead
        loop = asyncio.get_running_loop()
        self._loop = cast(_Loop, loop)
        context = contextvars.Context()
        context.run(PROCESS.set, self)
        return context.run(loop.create_task, coroutine)

    def pause(self) -> None:
        """Pause the process, as SIGSTOP does. Time continues."""
        self.running = False

    def resume(self) -> None:
        """Continue the process, as SIGCONT does. All data that has arrived is delivered at once."""
        if self.dead or self.running:
            return
        self.running = True
        if self._loop is not None:
            self._loop.carry_on(self._held.values())
        self._held.clear()

    def kill(self) -> None:
        """Kill the process, as SIGKILL does: no task runs again, and its connections break."""
        if self.dead:
            return
        self.running, self.dead = False, True
        self._held.clear()
        if self._loop is not None:
            self._loop.end(self)

    def own(self, task: asyncio.Task[Any]) -> None:
        """Keep a task alive, because its destruction would run a part of it in a dead process."""
        self._tasks.append(task)
        if len(self._tasks) > _TASKS_MAX:
            self._tasks = [each for each in self._tasks if not each.done()]

    def hold(self, handle: asyncio.Handle) -> None:
        """Keep the callbacks of a paused process for later."""
        if not self.dead:
            self._held[id(handle)] = handle

    def __repr__(self) -> str:
        state = "dead" if self.dead else "running" if self.running else "paused"
        return f"<Process {self.name} {state}>"


PROCESS: contextvars.ContextVar[Process | None] = contextvars.ContextVar(
    "zlog_process", default=None
)
"""The running process on a virtual loop, or None if none is running."""
