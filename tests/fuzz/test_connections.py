"""Hostile streams at the sequencer's connections; `make fuzz` has millions of them."""

from __future__ import annotations

import asyncio

import pytest

from zlog import testing
from zlog._base.sequencer import Grant, LogAddress
from zlog._sequencer.frames import FRAME, Kind
from zlog.seqr.machine import admission
from zlog.seqr.machine.state import LogState
from zlog.seqr.peer import Peer
from zlog.seqr.server import Server

from ..support.programs import run_module
from .connections import LIMITS, World, run
from .streams import hello
from .transport import Broken, Transport

INPUTS = 10_000


# Without a token, with one, and with one that is optional; and again.
@pytest.mark.parametrize(
    "seed", [0, 1, 2, *(pytest.param(n, marks=pytest.mark.long) for n in (3, 4, 5))]
)
def test_sequencer_serves_valid_clients_under_hostile_input(seed: int) -> None:
    outcome = run(seed, INPUTS)
    assert outcome.answers > INPUTS
    assert outcome.epochs > INPUTS / 20  # logs were taken over again and again
    assert {"malformed", "limit", "idle"} <= outcome.closed.keys()


_decode = LogAddress.decode


def _fragile(payload: bytes) -> LogAddress:
    if payload.startswith(b"\xff"):
        raise LookupError("no such letter")
    return _decode(payload)


def _activate_again(self: LogState, grant: Grant) -> None:
    self.epoch = self.epoch_last = self.epoch_last or grant.epoch
    self.first = self.tail = grant.position


@pytest.mark.parametrize(
    ("owner", "name", "broken", "seed", "words"),
    [
        (admission, "same", lambda *_: True, 1, "to a untrusted"),
        (LogAddress, "decode", _fragile, 0, "no such letter"),
        (LogState, "activate", _activate_again, 0, "granted before"),
        (Server, "_set_timer", lambda _: None, 0, "should have ended"),
        (Peer, "pause_writing", lambda _: None, 1, "does not read"),
    ],
)
def test_fuzzer_detects_broken_code(
    monkeypatch: pytest.MonkeyPatch, owner: object, name: str, broken: object, seed: int, words: str
) -> None:
    monkeypatch.setattr(owner, name, broken)
    with pytest.raises(Broken, match=words):
        run(seed, INPUTS)


def test_slow_reader_cannot_keep_closed_connection() -> None:
    async def work() -> None:
        world = World(0)
        link = Transport(world, "10.0.0.1", reads=False)
        link.send(hello(0))
        status, nonsense = (FRAME.pack(kind, 0, 0, 1, 0, 0) for kind in (Kind.STATUS, 77))
        link.send(status + nonsense)
        assert link.is_closing()
        link.catch_up(0.9)
        assert not link.gone
        await asyncio.sleep(2 * LIMITS.stall_s_max)
        assert link.gone

    testing.run_virtually(work())


def test_single_seed_can_be_rerun() -> None:
    done = run_module("tests.fuzz", "--seed", "3", "--inputs", "500")
    assert "500 inputs" in done.stdout
    assert "0 of 1 seeds failed" in done.stdout
