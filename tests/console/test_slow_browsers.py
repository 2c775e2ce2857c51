"""A browser that takes its events slowly gets all of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import zlog
from zlog.cli.commands.console.access import Access
from zlog.cli.commands.console.app import make_app
from zlog.cli.session import Session

from ..client.planted import flip
from ..support.logs import leave_hole

Event = dict[str, Any]

_SLOW_SECONDS = 1.5
"""For each event: several of them come meanwhile, and a hole is waited for in less."""

_ENOUGH_SECONDS = 60.0


def listen(store: zlog.Store, path: str, heard: Callable[[Event], bool]) -> None:
    """Take a stream's events one by one, slowly, until it ends or one is enough."""
    access = Access.of("127.0.0.1:0", None, None, None, changes=False)
    app = make_app(Session(store.url), store, access, 1.0, "*")
    enough = asyncio.Event()

    async def receive() -> Event:
        await enough.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        for line in message.get("body", b"").decode().splitlines():
            if line.startswith("data: ") and heard(json.loads(line.removeprefix("data: "))):
                enough.set()
        await asyncio.sleep(_SLOW_SECONDS)

    async def run() -> None:
        scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": []}
        async with app.router.lifespan_context(app):
            await asyncio.wait_for(app(scope, receive, send), _ENOUGH_SECONDS)

    with ThreadPoolExecutor(1) as pool:  # Playwright runs an event loop in this thread
        pool.submit(asyncio.run, run()).result()


def test_slow_browser_receives_all_findings(store: zlog.Store) -> None:
    with zlog.Log.create(store, "orders", width=2, stripe_unit=1) as log:
        log.append_many([b"entry %02d" % n for n in range(10)])
        leave_hole(log)
        log.append(b"behind")
        flip(store, next(iter(log.view.objects())).name, b"entry 04", b"entry o4")
        expected = [(each.kind.value, each.position) for each in log.check()]
        found: list[Event] = []

        def heard(event: Event) -> bool:
            found.extend(event.get("findings", ()))
            return False

        listen(store, "/api/logs/orders/check", heard)
        assert [(each["kind"], each["position"]) for each in found] == expected


def test_slow_browser_receives_all_entries(store: zlog.Store) -> None:
    with zlog.Log.create(store, "events", width=2) as log:
        shown: list[int] = []

        def heard(event: Event) -> bool:
            assert not event.get("left_out")
            shown.extend(item["position"] for item in event.get("items", ()))
            if log.tail() < 30:
                log.append_many([b"x"] * 10)
            return len(shown) >= 30

        listen(store, "/api/logs/events/tail", heard)
        assert shown == [*range(30)]
