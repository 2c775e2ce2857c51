"""Put loads on `zlog.objects`: those that load/main.go puts on etcd and ZooKeeper.

`python -m bench.peers.objects_load URL KEYS CASE[:CLIENTS[:SECONDS[:PROCESSES]]]...` prints a
line of JSON for each case. Clients are tasks of one process, or of several.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import string
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import zlog
from bench.machine import memory
from zlog.objects import Transaction, aio

LOG, SPACE, MAP = "objects", "space", "keys"
FILLING = 1000
VALUE_SIZE = 100
WATCHED = 300
LOCAL_AT_ONCE = 1000
"""Local reads between two looks at the clock; they are no calls of an event loop."""


def key(number: int) -> str:
    """Return a key's name."""
    return f"k{number:015d}"


def value() -> str:
    """Return a value."""
    return "".join(random.choices(string.ascii_lowercase, k=VALUE_SIZE))


def summary(times: list[float], seconds: float, count: int = 0) -> dict[str, float]:
    """Return what the latencies of calls amount to."""
    times.sort()
    return {
        "per_second": (count or len(times)) / seconds,
        "p50_ms": times[int(0.5 * (len(times) - 1))] * 1000,
        "p99_ms": times[int(0.99 * (len(times) - 1))] * 1000,
    }


class Load:
    """The cases, on an open space."""

    def __init__(self, space: aio.Space, keys: int) -> None:
        self._space = space
        self._map = space.map(MAP)
        self._keys = keys

    async def fill(self) -> None:
        """Put all keys, and write a checkpoint."""
        for first in range(0, self._keys, FILLING):
            names = map(key, range(first, min(first + FILLING, self._keys)))
            await self._map.put_many({name: value() for name in names})
        await self._space.checkpoint()

    async def run(self, case: str, clients: int, seconds: float) -> tuple[list[float], float, int]:
        """Run a case; returns the latencies, how long it took, and how many there were."""
        if case == "local":
            return self._local(seconds)
        call: Callable[[str, str, str], Awaitable[Any]] = getattr(self, f"_{case}")
        times: list[float] = []
        began = time.perf_counter()

        async def client() -> None:
            written = value()
            before = time.perf_counter()
            while before - began < seconds:
                a, b = key(random.randrange(self._keys)), key(random.randrange(self._keys))
                await call(a, b, written)
                after = time.perf_counter()
                times.append(after - before)
                before = after

        await asyncio.gather(*(client() for _ in range(clients)))
        return times, time.perf_counter() - began, len(times)

    async def _put(self, a: str, _: str, written: str) -> None:
        await self._map.put(a, written)

    async def _transact(self, a: str, b: str, written: str) -> None:
        def body(txn: Transaction) -> None:
            found = txn.map(MAP)
            for name in (a, b):
                assert found.get(name) is not None
                found.put(name, written)

        await self._space.transact(body)

    async def _read(self, a: str, _: str, __: str) -> None:
        assert await self._map.get(a) is not None

    def _local(self, seconds: float) -> tuple[list[float], float, int]:
        names = [key(random.randrange(self._keys)) for _ in range(LOCAL_AT_ONCE)]
        get = self._map.local.get
        times: list[float] = []
        began = before = time.perf_counter()
        while before - began < seconds:
            for name in names:
                get(name)
            after = time.perf_counter()
            times.append((after - before) / LOCAL_AT_ONCE)
            before = after
        return times, before - began, len(times) * LOCAL_AT_ONCE

    async def play(self) -> dict[str, float]:
        """Apply what was appended since the space was opened."""
        began, before = time.perf_counter(), self._space.position
        await self._space.sync()
        return summary([0.0], time.perf_counter() - began, self._space.position - before)

    async def watch(self, words: Sequence[str]) -> dict[str, float]:
        """Put a key again and again, and have another process tell when it saw that."""
        seer = await asyncio.create_subprocess_exec(
            sys.executable, "-m", __spec__.name, *words, "see", stdout=subprocess.PIPE
        )
        assert seer.stdout is not None
        await seer.stdout.readline()
        times = []
        began = time.perf_counter()
        for _ in range(WATCHED):
            before = time.monotonic()
            await self._map.put(key(0), value())
            times.append(float(await seer.stdout.readline()) - before)
            await asyncio.sleep(0.005)
        took = time.perf_counter() - began
        await seer.wait()
        return summary(times, took)

    async def see(self) -> None:
        """Tell when a key is put, by the clock that all processes share."""
        watch = self._map.watch(key=key(0))
        print("ready", flush=True)
        for _ in range(WATCHED):
            await anext(watch)
            print(time.monotonic(), flush=True)


async def several(
    words: Sequence[str], case: str, clients: int, seconds: str, processes: int
) -> dict[str, float]:
    """Run a case by several processes at once."""
    part = [*words, "wait", f"{case}:{clients // processes}:{seconds}:raw"]
    running = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            __spec__.name,
            *part,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for _ in range(processes)
    ]
    for each in running:
        assert each.stdout is not None
        await each.stdout.readline()
    found = [
        json.loads(out) for out, _ in await asyncio.gather(*(p.communicate(b"\n") for p in running))
    ]
    rate = sum(count / took for _, took, count in found)
    times = [each for part in found for each in part[0]]
    return summary(times, len(times) / rate)


async def main() -> None:
    """Run the cases of the command line."""
    parser = argparse.ArgumentParser(prog=f"python -m {__spec__.name}", description=__doc__)
    parser.add_argument("url")
    parser.add_argument("keys", type=int)
    parser.add_argument("cases", nargs="+")
    options = parser.parse_args()
    own = (options.url, str(options.keys))
    if options.cases == ["fill"]:
        with zlog.connect(options.url) as store:
            zlog.Log.create(store, LOG, width=8).close()
    async with (
        zlog.aio.connect(options.url) as store,
        zlog.aio.Log.open(store, LOG) as log,
        aio.Space.open(log, SPACE) as space,
    ):
        load = Load(space, options.keys)
        for word in options.cases:
            case, clients, seconds, how = (*word.split(":"), "", "", "")[:4]
            found: Any = {}
            if case in ("fill", "see"):
                await getattr(load, case)()
            elif case == "first":
                assert await space.map(MAP).get(key(options.keys - 1))
                found = memory()
            elif case == "watch":
                found = await load.watch(own)
            elif case == "play":
                found = await load.play()
            elif case == "wait":
                print("ready", flush=True)
                sys.stdin.readline()
                continue
            elif how == "raw":
                found = await load.run(case, int(clients), float(seconds))
            elif how:
                found = await several(own, case, int(clients), seconds, int(how))
            else:
                times, took, count = await load.run(case, int(clients), float(seconds))
                found = summary(times, took, count)
            print(json.dumps(found if how == "raw" else {"case": word, **found}), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
