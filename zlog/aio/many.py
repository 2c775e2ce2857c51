"""Follows several logs at once."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import json
from collections.abc import AsyncIterator, Collection, Sequence
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal

from zlog._base.wanted import Match
from zlog.aio.log import Log
from zlog.aio.opening import Opening
from zlog.entry import Entry, Gap
from zlog.errors import LogNotFound, StoreUnavailable
from zlog.limits import TIMEOUT_SECONDS
from zlog.names import check_pattern
from zlog.store import Store

if TYPE_CHECKING:
    from typing_extensions import Self

Start = int | datetime | Literal["earliest", "latest"]
Order = Literal["arrival", "time"]

_OPENING = 32
"""How many logs are opened at the same time."""

_READY = 1024
"""How many items may wait for the caller."""

_HELD = 65_536
"""How many items may be held back for their order."""

Known = list[Any]
"""The id of a log, and the position up to which its items were returned."""

Arrived = tuple[Known, str, Entry | Gap]

_EARLIEST = datetime.min.replace(tzinfo=timezone.utc)


class Following(AsyncIterator[tuple[str, Entry | Gap]]):
    """The items of several logs as they arrive, each with the name of its log.

    The items of one log keep their order. Open it with :func:`follow_many`.
    """

    def __init__(
        self,
        store: Store,
        logs: str | Sequence[str],
        start: Start,
        token: str | None,
        order: Order,
        within: float,
        discover: float,
        select: dict[str, Any],
        opening: dict[str, Any],
    ) -> None:
        if order not in ("arrival", "time"):
            raise ValueError(f"order must be 'arrival' or 'time', not {order!r}")
        if isinstance(logs, str):
            check_pattern(logs)
        self._store = store
        self._pattern = logs if isinstance(logs, str) else None
        self._names = () if isinstance(logs, str) else tuple(dict.fromkeys(logs))
        self._start = start
        self._within = within if order == "time" else None
        self._discover = discover
        self._select, self._opening = select, opening
        self._timeout = opening.get("timeout", TIMEOUT_SECONDS)
        self._positions = {} if token is None else _positions_in(token)
        self._resumed = token is not None
        self._ready: asyncio.Queue[Arrived | BaseException] = asyncio.Queue(_READY)
        self._slots = asyncio.Semaphore(_OPENING)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._discovery: asyncio.Task[None] | None = None
        self._held: list[tuple[datetime, int, float, Arrived]] = []
        self._newest: dict[str, datetime] = {}
        self._arrived = 0
        self._error: BaseException | None = None

    @property
    def token(self) -> str:
        """The positions after the returned items, as text; :func:`follow_many` continues there."""
        return json.dumps({"zlog-follow": 1, "logs": self._positions}, separators=(",", ":"))

    @property
    def logs(self) -> list[str]:
        """The names of the logs that are followed now."""
        return sorted(self._tasks)

    async def _begin(self) -> Self:
        try:
            names = self._names if self._pattern is None else await self._matching()
            known = self._positions
            self._positions = {name: known[name] for name in names if name in known}
            await self._add(names, self._start)
            if self._pattern is not None:
                self._discovery = asyncio.create_task(self._discover_again())
        except BaseException:
            await self.close()
            raise
        return self

    async def close(self) -> None:
        """Stop following, and close the logs."""
        tasks = [*self._tasks.values(), *filter(None, [self._discovery])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        while not self._ready.empty():
            self._ready.get_nowait()
        self._ready.put_nowait(closed())

    async def __anext__(self) -> tuple[str, Entry | Gap]:
        known, name, item = await self._next_item()
        known[1] = item.end
        return name, item

    async def _next_item(self) -> Arrived:
        if self._error is not None:
            raise self._error
        return await (self._next() if self._within is None else self._next_in_time())

    async def _next(self) -> Arrived:
        return self._taken(await self._ready.get())

    def _taken(self, found: Arrived | BaseException) -> Arrived:
        if isinstance(found, BaseException):
            self._error = found
            raise found
        return found

    async def _next_in_time(self) -> Arrived:
        """Return the oldest item, once no older one should arrive any more."""
        assert self._within is not None
        now = asyncio.get_running_loop().time
        while True:
            while not self._ready.empty() and len(self._held) < _HELD:
                self._hold(self._taken(self._ready.get_nowait()), now() + self._within)
            left = self._held[0][2] - now() if self._held else None
            if left is not None and (left <= 0 or len(self._held) >= _HELD):
                return heapq.heappop(self._held)[-1]
            found = None
            with contextlib.suppress(asyncio.TimeoutError):
                found = await asyncio.wait_for(self._ready.get(), left)
            if found is not None:
                self._hold(self._taken(found), now() + self._within)

    def _hold(self, arrived: Arrived, until: float) -> None:
        _, name, item = arrived
        time = item.timestamp if isinstance(item, Entry) else _EARLIEST
        # The items of one log stay in order, even if their writers' clocks differ.
        time = self._newest[name] = max(time, self._newest.get(name, _EARLIEST))
        self._arrived += 1
        heapq.heappush(self._held, (time, self._arrived, until, arrived))

    async def _matching(self) -> list[str]:
        assert self._pattern is not None
        names = await Log.list(self._store, timeout=self._timeout)
        return [name for name in names if fnmatchcase(name, self._pattern)]

    async def _discover_again(self) -> None:
        try:
            while True:
                await asyncio.sleep(self._discover)
                new = [name for name in await self._matching() if name not in self._tasks]
                await self._add(new, "earliest")
        except Exception as error:  # noqa: BLE001 - passed to the caller
            await self._ready.put(error)

    async def _add(self, names: Sequence[str], start: Start) -> None:
        """Follow more logs. Returns once their first positions are known."""
        loop = asyncio.get_running_loop()
        opened: list[asyncio.Future[None]] = []
        for name in names:
            opened.append(loop.create_future())
            self._tasks[name] = asyncio.create_task(self._follow(name, start, opened[-1]))
        await asyncio.gather(*opened)

    async def _follow(self, name: str, start: Start, opened: asyncio.Future[None]) -> None:
        try:
            async with contextlib.AsyncExitStack() as stack:
                async with self._slots:
                    opening = Log.open(self._store, name, **self._opening)
                    log = await stack.enter_async_context(opening)
                    known = await self._first(log, start)
                opened.set_result(None)
                async for item in log.follow(known[1], **self._select):
                    await self._ready.put((known, name, item))
        except LogNotFound as error:
            if self._pattern is None:
                await self._fail(error, opened)
            else:  # it was removed
                self._positions.pop(name, None)
                self._tasks.pop(name, None)
        except Exception as error:  # noqa: BLE001 - passed to the caller
            await self._fail(error, opened)
        finally:
            if not opened.done():
                opened.set_result(None)

    async def _fail(self, error: BaseException, opened: asyncio.Future[None]) -> None:
        if opened.done():
            await self._ready.put(error)
        else:
            opened.set_exception(error)

    async def _first(self, log: Log, start: Start) -> Known:
        """Return where to begin in a log, and note it for the token."""
        log_id = f"{log.view.log_id:016x}"
        known = self._positions.get(log.name)
        if known is not None and known[0] == log_id:
            return known
        if self._resumed:  # it is new
            start = "earliest"
        if isinstance(start, datetime):
            position = await log.find_time(start)
        elif start == "earliest":
            position = await log.earliest()
        else:
            tail = await log.tail()
            position = tail if start == "latest" else max(0, tail + start) if start < 0 else start
        known = self._positions[log.name] = [log_id, position]
        return known


def follow_many(
    store: Store,
    logs: str | Sequence[str],
    *,
    start: Start = "latest",
    token: str | None = None,
    order: Order = "arrival",
    within: float = 1.0,
    discover: float = 10.0,
    tags: Collection[str] | None = None,
    match: Match = "any",
    **opening: Any,
) -> Opening[Following]:
    """Follow several logs at once. Await the result and close it at the end, or use ``async with``.

    An item is an entry or a gap, with the name of its log. To continue after a restart, save
    :attr:`Following.token` after you have processed an item.

    Args:
        store: see :func:`zlog.connect`.
        logs: the names of logs, or a shell pattern such as ``"web-*"``. With a pattern, new logs
            are followed from their first entry on, and removed logs are left out.
        start: where to begin in each log: a position, a negative number that counts back from the
            tail, ``"earliest"``, ``"latest"`` (the tail), or a time.
        token: continue where another iterator was. Logs that it did not follow begin with their
            first entry.
        order: ``"arrival"``, or ``"time"`` to sort by the writers' clocks.
        within: how many seconds an item is held back to be sorted by time.
        discover: how many seconds pass between two searches for new logs.
        tags, match: see :meth:`zlog.Log.follow`.
        opening: arguments of :meth:`zlog.Log.open` for each log, such as ``timeout``.

    Raises:
        LogNotFound: a named log does not exist, or was removed.
        ValueError: the token is invalid, or the pattern is longer than 256 characters.
    """
    select = {"tags": tags, "match": match}
    following = Following(store, logs, start, token, order, within, discover, select, opening)
    return Opening(following._begin(), Following.close)


def closed() -> StoreUnavailable:
    """Return the error of an iterator that was closed."""
    return StoreUnavailable("the iterator is closed", hint="Continue with its token.")


def _positions_in(token: str) -> dict[str, Known]:
    try:
        found = json.loads(token)
        if found["zlog-follow"] == 1:
            return {name: [str(log_id), int(p)] for name, (log_id, p) in found["logs"].items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    raise ValueError("the token is not one of follow_many: give the text of Following.token")
