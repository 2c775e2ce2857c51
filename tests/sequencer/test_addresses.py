"""How addresses and budgets are written and read."""

from __future__ import annotations

import pytest

from zlog._base.deadline import Deadline
from zlog._base.sequencer import (
    LogAddress,
    format_address,
    parse_address,
    parse_given_address,
    parse_host_port,
)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:7460", "127.0.0.1", 7460),
        ("[::1]:0", "::1", 0),
        ("seqr.example:1", "seqr.example", 1),
    ],
)
def test_host_and_port_round_trip(text, host, port):
    assert parse_host_port(text) == (host, port)
    assert format_address(host, port) == f"tcp://{text}"
    assert parse_address(f"tcp://{text}") == (host, port, False)
    assert format_address(host, port, tls=True) == f"tls://{text}"
    assert parse_address(f"tls://{text}") == (host, port, True)
    assert parse_given_address(text) == f"tcp://{text}"
    assert parse_given_address(f"tls://{text}") == f"tls://{text}"


@pytest.mark.parametrize(
    "text", ["", "host", ":1", "host:", "host:x", "host:-1", "host:65536", "h:²"]
)
def test_invalid_host_and_port_is_refused(text):
    with pytest.raises(ValueError, match="HOST:PORT"):
        parse_host_port(text)


@pytest.mark.parametrize("address", ["store:", "127.0.0.1:7460", "udp://127.0.0.1:7460"])
def test_invalid_tcp_address_is_refused(address):
    with pytest.raises(ValueError, match="tcp://HOST:PORT"):
        parse_address(address)


def test_unknown_address_scheme_is_refused():
    with pytest.raises(ValueError, match=r"'udp://h:1' is not an address of the form tcp://"):
        parse_given_address("udp://h:1")


def test_log_address_includes_pool_and_namespace():
    assert str(LogAddress("", "", "orders", 1)) == "orders"
    assert str(LogAddress("pool", "", "orders", 1)) == "pool/orders"
    assert str(LogAddress("pool", "space", "orders", 1)) == "pool/space/orders"


class Clock:
    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


def test_deadline_stops_at_zero():
    clock = Clock()
    deadline = Deadline(2.0, clock)
    assert (deadline.remaining(), deadline.expired) == (2.0, False)
    clock.now += 1.5
    assert deadline.within(9.0) == 0.5
    assert deadline.within(0.25) == 0.25
    clock.now += 5
    assert (deadline.remaining(), deadline.expired) == (0.0, True)


def test_shorter_deadline_never_outlives_original():
    clock = Clock()
    deadline = Deadline(2.0, clock)
    assert deadline.sooner(1.0).remaining() == 1.0
    assert deadline.sooner(3.0).remaining() == 2.0
    assert Deadline(None, clock).sooner(3.0).remaining() == 3.0


def test_deadline_without_limit_never_expires():
    assert Deadline(None).remaining() is None
    assert not Deadline(None).expired
    assert Deadline(None).within(3.0) == 3.0
