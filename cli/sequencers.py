"""Asking sequencers how they are, and the store which one it has."""

from __future__ import annotations

from typing import Any

from zlog import Store
from zlog._base.deadline import Deadline
from zlog._base.io import deadline_of
from zlog._io import BlockingIo, drive
from zlog._layout.head import Directory
from zlog._native import core
from zlog._sequencer import BlockingSequencer, Credentials


def idle_call() -> tuple[str, bytes]:
    """Return a method of the object class that may write but changes nothing, and its request.

    It withdraws an address that nobody announces, and does so on any object.
    """
    return "sequencer_withdraw", core.encode_address("tcp://nobody.invalid:1")


def announced(store: Store, timeout: float | None) -> str:
    """Return the address of the sequencer that offers itself in the store; empty if none does."""
    io = BlockingIo(store)
    return drive(Directory(io).sequencer(deadline_of(io, timeout)))


def status_of(address: str, timeout: float | None, url: str = "") -> dict[str, Any]:
    """Return what the sequencer at an address says of itself.

    Args:
        address: ``tcp://HOST:PORT`` or ``tls://HOST:PORT``.
        timeout: seconds for all of it; None for no limit.
        url: of a store, which may name what to show and to trust; else the environment does.

    Raises:
        SequencerUnavailable: nobody answers there.
    """
    client = BlockingSequencer(address, Credentials.of(url))
    try:
        return drive(client.status(Deadline(timeout)))
    finally:
        drive(client.close())
