"""The console's event streams: all logs, a live tail, an audit and the doctor."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

import zlog
import zlog.aio
from zlog.cli.commands.check import finding_fields
from zlog.cli.commands.console.log import item_fields
from zlog.cli.commands.doctor import diagnosis_fields, examine
from zlog.limits import HOLE_TIMEOUT_SECONDS

Event = dict[str, Any]

_BATCH_SECONDS = 0.25
_BATCH_MAX = 200
"""The maximum number of items that a tail sends at once. It only counts the others."""

_TAIL_MAX = 1000
"""The maximum number of positions below the tail at which a live tail may begin."""

_QUIET_SECONDS = 15.0
"""The time without events after which a stream reports that it is alive."""


def _stream(events: Callable[[Request], AsyncIterator[Event]]) -> Callable[[Request], Any]:
    """Make a route that streams events as lines of JSON. The last has `end` or `error`."""

    async def answer(request: Request) -> Response:
        lines = _lines(events(request), request.app.state.ending)
        return StreamingResponse(lines, media_type="text/event-stream")

    return answer


async def _lines(events: AsyncIterator[Event], ending: asyncio.Event) -> AsyncIterator[str]:
    # A task for each step: a time-out may not cancel the step.
    step: asyncio.Task[Event] | None = None
    end = asyncio.create_task(ending.wait())
    try:
        while not ending.is_set():
            step = step or asyncio.ensure_future(anext(events))
            await asyncio.wait(
                [step, end], timeout=_QUIET_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            if step.done():
                event, step = step.result(), None
                yield _line(event)
            else:
                yield ":\n\n"
    except StopAsyncIteration:
        yield _line({"end": True})
    except (zlog.ZlogError, ValueError, OSError) as error:
        yield _line({"error": str(error), "hint": getattr(error, "hint", "")})
    finally:
        tasks = [task for task in (step, end) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await events.aclose()  # type: ignore[attr-defined]


def _line(event: Event) -> str:
    return f"data: {json.dumps(event, separators=(',', ':'))}\n\n"


async def _told(
    work: Coroutine[Any, Any, None], take: Callable[[], Event | None]
) -> AsyncGenerator[Event, None]:
    """Run a coroutine, and yield events with its findings several times a second until it ends.

    Args:
        work: the coroutine. If it fails, its error is raised here.
        take: a function that returns an event with the findings since the last call, or None if
            there are none.
    """
    running = asyncio.create_task(work)
    try:
        ended = False
        while not ended:
            await asyncio.wait([running], timeout=_BATCH_SECONDS)
            ended = running.done()
            event = take()
            if event is not None:
                yield event
        await running
    finally:
        running.cancel()
        await asyncio.wait([running])


async def _watch(request: Request) -> AsyncIterator[Event]:
    """Stream all logs of the store, and then their changes."""
    async with aclosing(request.app.state.logs.watch()) as changes:
        async for change in changes:
            yield change


async def _tail(request: Request) -> AsyncIterator[Event]:
    """Stream new entries and gaps, or those with a given text in their data or tags."""
    text = request.query_params.get("text", "").encode()
    tags = request.query_params.getlist("tag") or None
    back = min(int(request.query_params.get("back", "50")), _TAIL_MAX)
    items: list[Event] = []
    passed = [0, 0]  # items that did not match, and matches above the limit
    async with request.app.state.handles.use(request.path_params["name"]) as log:
        start = max(await log.earliest(), await log.tail() - back)

        async def follow() -> None:
            # Appends under way leave holes for a moment.
            async for item in log.follow(start, tags=tags, hole_timeout=HOLE_TIMEOUT_SECONDS):
                if isinstance(item, zlog.Entry) and text not in item.data:
                    passed[0] += 1
                elif len(items) >= _BATCH_MAX:
                    passed[1] += 1
                else:
                    items.append(item_fields(item))

        def take() -> Event | None:
            if not items and not any(passed):
                return None
            event = {"items": [*items], "unmatched": passed[0], "left_out": passed[1]}
            items.clear()
            passed[:] = 0, 0
            return event

        yield {"start": start}
        async with aclosing(_told(follow(), take)) as events:
            async for event in events:
                yield event


async def _check(request: Request) -> AsyncIterator[Event]:
    """Stream the progress of an audit of a log."""
    found: list[Event] = []
    reached = [0, 0]

    def progress(done: int, total: int) -> None:
        reached[:] = done, total

    async with request.app.state.handles.use(request.path_params["name"]) as log:
        audit = log.check(progress=progress)

        async def run() -> None:
            async for finding in audit:
                found.append(finding_fields(finding))

        def take() -> Event:
            event = {"done": reached[0], "total": reached[1], "findings": [*found]}
            found.clear()
            return event

        async with aclosing(_told(run(), take)) as events:
            async for event in events:
                yield event
        yield {"summary": audit.summary._asdict()}


async def _doctor(request: Request) -> AsyncIterator[Event]:
    """Stream the doctor's findings, part by part."""
    session = request.app.state.session
    diagnoses = examine(session.of(session.url))
    while (diagnosis := await asyncio.to_thread(next, diagnoses, None)) is not None:
        yield diagnosis_fields(diagnosis)


ROUTES = (
    Route("/api/watch", _stream(_watch)),
    Route("/api/doctor", _stream(_doctor)),
    Route("/api/logs/{name}/tail", _stream(_tail)),
    Route("/api/logs/{name}/check", _stream(_check)),
)
