"""P14: processes that use one embedded store, each killed at random moments, and the judgement."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import zlog

from ..support.programs import ZLOG
from .clients import Clients, Load
from .run import LOG, Outcome, come_to_rest, stripes_of

SECONDS_MAX = 0.25
"""A process is killed at most so long after its first operation."""

ALL_AT_ONCE = 0.1
"""Probability that all are killed, and the store is opened and audited before they come back."""

_ROLES = {"w0": "writer", "w1b": "writer", "w2": "writer", "r0": "follower", "t0": "trimmer"}
_THINK = 0.004
_HOLE_TIMEOUT = 0.1
_STRIPE_RECORDS = 200


def run_kills(folder: Path, seed: int, kills: int) -> Outcome:
    """Have processes use a store in ``folder``; kill that many of them; return what came of it."""
    chance = random.Random(seed)
    outcome = Outcome(seed)
    began = time.monotonic()
    with users(folder, chance) as clients:
        left = kills
        while left > 0:
            names = clients.names()
            if chance.random() > ALL_AT_ONCE:
                names = [chance.choice(names)]
            for name in names:
                clients.running(name).wait_until_it_works()
            time.sleep(chance.uniform(0, SECONDS_MAX))
            for name in names:
                clients.kill(name)
            if len(names) > 1:
                outcome.wrong += _audit(url_of(folder))
            for name in names:
                clients.replace(name)
            left -= len(names)
        outcome.faults = {"kill -9": kills - left}
        history = come_to_rest(clients, url_of(folder), folder)
        outcome.stripes = stripes_of(url_of(folder))
        outcome.wrong += clients.complaints
    outcome.judge(history)
    outcome.seconds = round(time.monotonic() - began, 1)
    return outcome


@contextmanager
def users(folder: Path, chance: random.Random) -> Iterator[Clients]:
    """Have processes use a new store in ``folder`` for the length of a ``with`` block."""
    url = url_of(folder)
    with zlog.connect(url) as store:
        zlog.Log.create(store, LOG, width=3, stripe_records=_STRIPE_RECORDS)
    clients = Clients(Load(url, LOG, _THINK, _HOLE_TIMEOUT), _ROLES, chance, folder)
    try:
        clients.wait_until_they_work()
        yield clients
    finally:
        clients.kill_all()


def url_of(folder: Path) -> str:
    """Return the store's URL."""
    return (folder / "store").as_uri()


def _audit(url: str) -> list[str]:
    """Open the store in a new process, and look at everything; returns what is wrong."""
    done = subprocess.run(
        [ZLOG, "--store", url, "check", LOG], capture_output=True, text=True, check=False
    )
    return [] if done.returncode == 0 else [f"P14: zlog check: {done.stdout}{done.stderr}"]
