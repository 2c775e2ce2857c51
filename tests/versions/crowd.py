"""Clients of several kinds that use one log at the same time, each a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.history import Action, Result, check

from ..faults.clients import ClientProcess, Load
from ..faults.journal import merge
from ..faults.run import LOG, audit

_SECONDS = 60.0
_LOOK_SECONDS = 0.2


@contextlib.contextmanager
def packages_from(folder: Path | None) -> Iterator[None]:
    """Have processes that start meanwhile take the package there; None: the installed one."""
    before = dict(os.environ)
    try:
        if folder is not None:
            os.environ["PYTHONPATH"] = str(folder)
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class Crowd:
    """All clients of a log. None of their operations may fail, from the first one on.

    Args:
        folder: for journals.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._clients: list[ClientProcess] = []

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, *error: object) -> None:
        for client in self._clients:
            client.kill()

    def add(self, url: str, role: str, name: str, package: Path | None = None) -> None:
        """Start one; a name that ends in ``b`` is of one that blocks."""
        with packages_from(package):
            client = ClientProcess(
                Load(url, LOG, 0.05, 1.0), role, name, 0, self._folder, blocking=name[-1] == "b"
            )
        self._clients.append(client)

    def begin(self) -> None:
        """Wait until each is at work, and may not fail."""
        for client in self._clients:
            client.wait_until_it_works()
            client.tell(signal.SIGUSR1)

    def _appended(self) -> Counter[str]:
        """How many appends of each client were acknowledged so far."""
        operations = merge(client.journal for client in self._clients).operations
        return Counter(
            each.process
            for each in operations
            if each.action is Action.APPEND and each.result is Result.OK
        )

    def each_appends(self, count: int) -> None:
        """Wait until each writer has had so many appends more acknowledged."""
        writers = {client.name for client in self._clients if client.role == "writer"}
        before, end = self._appended(), time.monotonic() + _SECONDS
        while True:
            assert [each.complaint() for each in self._clients] == [""] * len(self._clients)
            now = self._appended()
            if all(now[name] >= before[name] + count for name in writers):
                return
            assert time.monotonic() < end, (before, now)
            time.sleep(_LOOK_SECONDS)

    def finish(self, url: str) -> None:
        """End them, have an auditor read all that is left, and check what was done."""
        for client in self._clients:
            client.tell(signal.SIGTERM)
        wrong = [client.finish(time.monotonic() + _SECONDS) for client in self._clients]
        journal = self._folder / "auditor.journal"
        wrong += asyncio.run(audit(url, journal))
        history = merge([*(client.journal for client in self._clients), journal])
        assert [*filter(None, wrong), *map(str, check(history))] == []
