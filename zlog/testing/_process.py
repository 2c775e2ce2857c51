"""Processes on a virtual loop, which can be stopped and killed at any await."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Coroutine, Iterable
from typing import Any, Protocol, TypeVar, cast

T = TypeVar("T")

_TASKS_MAX = 256
"""Tasks that a process keeps before it forgets finished ones."""


class _Loop(Protocol):
    """The part of the virtual loop that a process uses."""

    def carry_on(self, handles: Iterable[asyncio.Handle]) -> None: ...
    def end(self, process: Process) -> None: ...


class Process:
    """Tasks, timers and connections that stop and die together, as in one process.

    Operations that were already given to a store or to the network take effect anyway.

    States: running ⇄ paused → dead.

    Args:
        name: the name of the process, for messages.

    Attributes:
        running: whether the process is neither paused nor dead.
        dead: whether the process was killed.
        local: the data that zlog keeps for each process.
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
        """Stop the process, as SIGSTOP does. Time continues."""
        self.running = False

    def resume(self) -> None:
        """Continue the process, as SIGCONT does. All that has arrived is delivered at once."""
        if self.dead or self.running:
            return
        self.running = True
        if self._loop is not None:
            self._loop.carry_on(self._held.values())
        self._held.clear()

    def kill(self) -> None:
        """End the process, as SIGKILL does: no task runs again, and its connections break."""
        if self.dead:
            return
        self.running, self.dead = False, True
        self._held.clear()
        if self._loop is not None:
            self._loop.end(self)

    def own(self, task: asyncio.Task[Any]) -> None:
        """Keep a task alive, since the cleanup of a dead process's task would run a part of it."""
        self._tasks.append(task)
        if len(self._tasks) > _TASKS_MAX:
            self._tasks = [each for each in self._tasks if not each.done()]

    def hold(self, handle: asyncio.Handle) -> None:
        """Keep callbacks of a stopped process for later."""
        if not self.dead:
            self._held[id(handle)] = handle

    def __repr__(self) -> str:
        state = "dead" if self.dead else "running" if self.running else "paused"
        return f"<Process {self.name} {state}>"


PROCESS: contextvars.ContextVar[Process | None] = contextvars.ContextVar(
    "zlog_process", default=None
)
"""The process that runs, on a virtual loop; None: none in particular."""
