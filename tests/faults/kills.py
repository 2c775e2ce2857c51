"""P14: processes that use one embedded store, each killed at random moments, and the checkers."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import zlog

from ..support.logs import UNITS
from ..support.programs import ZLOG
from .clients import Clients, Load
from .power import LMDB, fail, that_may_fail
from .run import LOG, Outcome, come_to_rest, stripes_of

SECONDS_MAX = 0.25
"""A process is killed at most so long after its first operation."""

ALL_AT_ONCE = 0.1
"""Probability that all are killed, and the store is opened and audited before they come back."""

_WRITERS = {"w0": "writer", "w1b": "writer", "w2": "writer"}
_ROLES = {**_WRITERS, "r0": "follower", "t0": "trimmer", "d0": "producer", "d1b": "producer"}
_BOOT_ID = range(16, 52)
"""Where the file `sequencer` has it: see docs/formats/shared-sequencer.md."""

_THINK = 0.004
_HOLE_TIMEOUT = 0.1
_STRIPE_RECORDS = 50


def run_kills(folder: Path, seed: int, kills: int, *, power: bool = False) -> Outcome:
    """Have processes use a store in ``folder``; kill that many of them; return what came of it.

    Where the ``power`` fails, all are killed at once, and what was not synced is lost.
    """
    chance = random.Random(seed)
    outcome = Outcome(seed)
    began = time.monotonic()
    with ExitStack() as stack:
        if power:
            stack.enter_context(that_may_fail(folder / "power", LMDB))
        clients = stack.enter_context(users(folder, chance, 0.0 if power else _THINK))
        left, lost = kills, 0
        while left > 0:
            names = clients.names()
            if not power and chance.random() > ALL_AT_ONCE:
                names = [chance.choice(names)]
            for name in names:
                clients.running(name).wait_until_it_works()
            time.sleep(chance.uniform(0, SECONDS_MAX))
            for name in names:
                clients.kill(name)
            if power:
                lost += fail(chance)
                _boot_with_earlier_memory(folder / "store" / "sequencer", chance)
            if len(names) > 1:
                outcome.wrong += _audit(url_of(folder))
            for name in names:
                clients.replace(name)
            left -= len(names)
        outcome.faults = {"kill -9": kills - left} | ({"page lost": lost} if power else {})
        history = come_to_rest(clients, url_of(folder), folder)
        outcome.stripes = stripes_of(url_of(folder))
        outcome.wrong += clients.complaints
    outcome.check(history)
    outcome.seconds = round(time.monotonic() - began, 1)
    return outcome


@contextmanager
def users(folder: Path, chance: random.Random, think: float = _THINK) -> Iterator[Clients]:
    """Have processes use a new store in ``folder`` for the length of a ``with`` block."""
    url = url_of(folder)
    with zlog.connect(url) as store:
        stripe_unit = chance.choice(UNITS)
        zlog.Log.create(
            store, LOG, width=3, stripe_unit=stripe_unit, stripe_records=_STRIPE_RECORDS
        )
    clients = Clients([Load(url, LOG, think, _HOLE_TIMEOUT)], _ROLES, chance, folder)
    try:
        clients.wait_until_they_work()
        yield clients
    finally:
        clients.kill_all()


def _boot_with_earlier_memory(table: Path, chance: random.Random) -> None:
    """Leave what processes share beside the database as it is, or was, from before another boot."""
    if not table.exists():
        return
    now, earlier = table.read_bytes(), table.with_suffix(".earlier")
    found = earlier.read_bytes() if earlier.exists() and chance.random() < 0.5 else now
    earlier.write_bytes(now)
    table.write_bytes(found[: _BOOT_ID.start] + bytes(len(_BOOT_ID)) + found[_BOOT_ID.stop :])


def url_of(folder: Path) -> str:
    """Return the store's URL."""
    return (folder / "store").as_uri()


def _audit(url: str) -> list[str]:
    """Open the store in a new process, and look at everything; returns what is wrong."""
    done = subprocess.run(
        [ZLOG, "--store", url, "check", LOG], capture_output=True, text=True, check=False
    )
    return [] if done.returncode == 0 else [f"P14: zlog check: {done.stdout}{done.stderr}"]
