"""Measure the console in a headless Chromium; `--folder build/bench` says where the store lies."""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

import zlog
import zlog.aio
from bench.machine import describe, memory
from bench.usage import Processes
from tests.support.browser import Visit, chromium
from tests.support.console import ConsoleProcess
from tests.support.logs import raise_tail

_BATCH = 20_000
_AT_ONCE = 16
_SEQUENCED = 1000
"""Logs that are made before the store's sequencer is made anew: it serves 1,024."""

_VISITS = 5
_LOOKS = 3
_PATIENCE_MS = 300_000
_FAR = 100_000_000

_WATCH_FOR_ROWS = """
new MutationObserver((_, observer) => {
  if (!document.querySelector(".logs .body .row")) return;
  observer.disconnect();
  requestAnimationFrame(() => setTimeout(() => { window.painted = performance.now(); }));
}).observe(document, { subtree: true, childList: true });
"""
"""Notes when the first rows are painted, since the navigation began."""

_SHOWN = """
async (act) => {
  const frame = () => new Promise(requestAnimationFrame);
  const shown = () => document.querySelector("[data-shown]")?.dataset.shown;
  const [before, began] = [shown(), performance.now()];
  act === "open" ? document.querySelector('[data-log="big"], [data-log="far"]').click()
    : document.body.dispatchEvent(new KeyboardEvent("keydown", { key: act, bubbles: true }));
  while (shown() === before) await frame();
  await frame();
  return [performance.now() - began, shown()];
}
"""
"""From what a user does to the frame in which the server's answer is drawn."""

_SCROLL = """
async () => {
  const frame = () => new Promise(requestAnimationFrame);
  const box = document.querySelector(".logs");
  const steps = 200;
  let longest = 0;
  let before = await frame();
  for (let step = 1; step <= steps; step += 1) {
    box.scrollTop = (box.scrollHeight * step) / steps;
    const now = await frame();
    longest = Math.max(longest, now - before);
    before = now;
  }
  return longest;
}
"""


def main() -> None:
    """Make the store, unless it is there from an earlier run, and print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.console", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="to make the store in")
    parser.add_argument("--logs", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--entries", type=int, default=10_000_000, help="of 100 bytes, of one log")
    options = parser.parse_args()
    folder = options.folder.resolve() / "console"
    folder.mkdir(parents=True, exist_ok=True)
    url = (folder / "store").as_uri()
    with zlog.connect(url) as store:
        _make_big(store, options.entries)
        _make_far(store)
    with chromium() as browser:
        for logs in options.logs:
            with ThreadPoolExecutor(1) as pool:  # Playwright runs an event loop in this thread
                pool.submit(_make_logs, folder / "store", logs - 2).result()
            with ConsoleProcess(url, folder) as console:
                found = {"logs": logs, **describe(folder), **_measure(browser, console)}
            json.dump(found, sys.stdout, indent=1)
            sys.stdout.write("\n")
            sys.stdout.flush()


def _make_big(store: zlog.Store, entries: int) -> None:
    with zlog.Log.open(store, "big", create=True, width=8) as log:
        began = time.monotonic()
        while (tail := log.tail()) < entries:
            count = min(_BATCH, entries - tail)
            log.append_many([b"%0100d" % n for n in range(tail, tail + count)])
        sys.stderr.write(f"big: {log.tail():,} entries after {time.monotonic() - began:.0f} s\n")


def _make_far(store: zlog.Store) -> None:
    """A log of 100 million positions, of which the first and the last 100,000 are written."""
    with zlog.Log.open(store, "far", create=True, width=8) as log:
        if log.tail() < _FAR:
            log.append_many([b"near"] * 100_000)
            assert raise_tail(log, _FAR - 100_000) == 0
            log.reconfigure(width=9)
            log.append_many([b"far"] * 100_000)
        sys.stderr.write(f"far: the tail is {log.tail():,}\n")


def _make_logs(store: Path, count: int) -> None:
    """Make logs of an entry each, as many as are missing."""
    for first in range(0, count, _SEQUENCED):
        with zlog.connect(store.as_uri()) as opened:
            asyncio.run(_make_some(opened, range(first, min(first + _SEQUENCED, count))))
        (store / "sequencer").unlink(missing_ok=True)


async def _make_some(store: zlog.Store, numbers: range) -> None:
    there = {*await zlog.aio.Log.list(store)}
    turns = asyncio.Semaphore(_AT_ONCE)

    async def make(name: str) -> None:
        async with turns, zlog.aio.Log.create(store, name, width=2) as log:
            await log.append(b"started")

    names = {f"service-{number:05}" for number in numbers}
    await asyncio.gather(*map(make, sorted(names - there)))


def _measure(browser: Browser, console: ConsoleProcess) -> dict[str, Any]:
    paints = [*_paints(browser, console)]
    visit = Visit(browser, console.address)
    page = visit.open()
    page.wait_for_selector(".logs .body .row")
    found: dict[str, Any] = {
        "first visit, rows painted, ms": paints[0],
        "later visits, rows painted, ms": paints[1:],
        **_looks(console, page),
        "longest frame while scrolling over all rows, ms": round(page.evaluate(_SCROLL), 1),
    }
    for name in ("big", "far"):
        found |= {f"{name}: {what}": value for what, value in _zoom(page, console, name).items()}
    visit.close()
    assert not visit.wrongs, visit.wrongs
    return found


def _paints(browser: Browser, console: ConsoleProcess) -> Iterator[float]:
    for _ in range(_VISITS):
        visit = Visit(browser, console.address)
        page = visit.open("/static/console.css")  # so that starting a process is not measured
        page.add_init_script(_WATCH_FOR_ROWS)
        page.goto(f"{console.address}/")
        page.wait_for_function("() => window.painted")
        yield round(page.evaluate("window.painted"), 1)
        visit.close()


def _looks(console: ConsoleProcess, page: Page) -> dict[str, float]:
    """Return what looks cost the server while a browser shows all logs, and nobody else asks."""
    server = Processes((console.process.pid,))
    page.evaluate(
        """() => {
          window.looks = 0;
          new MutationObserver(() => { window.looks += 1; })
            .observe(document.getElementById("state"), { childList: true });
        }"""
    )
    page.wait_for_function("() => window.looks >= 1", timeout=_PATIENCE_MS)
    seen, cpu, began = page.evaluate("window.looks"), server.cpu_seconds(), time.monotonic()
    page.wait_for_function(f"() => window.looks >= {seen + _LOOKS}", timeout=_PATIENCE_MS)
    looks = page.evaluate("window.looks") - seen
    spent = server.cpu_seconds() - cpu
    return {
        "CPU of the server for each look, ms": round(1000 * spent / looks, 1),
        "seconds between looks": round((time.monotonic() - began) / looks, 2),
        "memory of the server, MiB": sum(memory(console.process.pid).values()) >> 20,
    }


def _zoom(page: Page, console: ConsoleProcess, name: str) -> dict[str, Any]:
    page.goto(f"{console.address}/#/")
    page.wait_for_selector(".logs .body .row")
    page.get_by_label("Filter").fill(name)
    page.wait_for_selector(f'[data-log="{name}"]')
    opened, shown = page.evaluate(_SHOWN, "open")
    steps = []
    while _length(shown) > 16:
        took, shown = page.evaluate(_SHOWN, "+")
        steps.append(took)
    return {
        "opened, ms": round(opened, 1),
        "zoom steps": len(steps),
        "median zoom step, ms": round(statistics.median(steps), 1),
        "longest zoom step, ms": round(max(steps), 1),
    }


def _length(shown: str) -> int:
    start, end = map(int, shown.split("-"))
    return end - start


if __name__ == "__main__":
    main()
