"""A running audit, as :meth:`zlog.aio.Log.check` returns it."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator

from zlog._audit.check import Checker
from zlog._audit.findings import CheckSummary, Finding
from zlog._base.process import ProcessBound
from zlog._io.aio import drive


class Check(ProcessBound, AsyncIterator[Finding]):
    """A running audit. Iterate over it to get its findings."""

    def __init__(self, checker: Checker) -> None:
        """Wrap an audit. Programs call :meth:`zlog.aio.Log.check` instead."""
        self._checker = checker
        self._ready: deque[Finding] = deque()

    @property
    def summary(self) -> CheckSummary:
        """The totals so far, or the totals of the whole log once the iteration has ended."""
        return self._checker.summary

    async def __anext__(self) -> Finding:
        while not self._ready:
            findings = await drive(self._checker.next())
            if findings is None:
                raise StopAsyncIteration
            self._ready.extend(findings)
        return self._ready.popleft()
