"""Hostile input: whatever is sent to whichever method, a host answers, and what it holds is
unharmed.

An exception or an abort in a class method kills the OSD, and the client's resend kills the next
one; so the same burst goes to a live OSD, which must still be the same process afterwards.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from . import hostile
from .messages import METHODS
from .objects import Store, Stripe
from .replies import Code, State
from .requests import Entry
from .victims import Victims

# A request larger than the wire allows may be cut off by the host or the transport.
TOO_LARGE = frozenset({-errno.EINVAL, -errno.E2BIG, -errno.EMSGSIZE, -errno.EFBIG})


@pytest.fixture
def unharmed(store: Store, prefix: str) -> Iterator[None]:
    """An entry, a view's head and a name from before; all must be there afterwards."""
    stripe = Stripe(store, f"{prefix}.bystander", 4, 1)
    assert stripe.seal(3).code == Code.OK
    assert stripe.write(3, [Entry(1, 1, b"first"), Entry(9, 2, b"x" * 40_000)]).code == Code.OK
    yield
    answer = stripe.read(3, [1, 5, 9])
    states = [State.WRITTEN, State.UNWRITTEN, State.WRITTEN]
    assert [slot.state for slot in answer.value.slots] == states
    assert [slot.data for slot in answer.value.slots] == [b"first", b"", b"x" * 40_000]
    assert stripe.put(3, 5, b"and on it goes").code == Code.OK


@pytest.mark.usefixtures("unharmed", "daemons_stay_up")
def test_malformed_requests_return_einval(store: Store, prefix: str) -> None:
    victims = Victims(store, prefix)
    sent = [
        (victims.name_of(method), method, request)
        for method in METHODS
        for request in hostile.malformed(method)
    ]
    with ThreadPoolExecutor(16) as pool:
        replies = pool.map(lambda words: store.execute(*words), sent)
        for each, reply in zip(sent, replies, strict=True):
            assert reply == (-errno.EINVAL, b""), each


@pytest.mark.usefixtures("unharmed", "daemons_stay_up")
def test_lying_counts_are_refused(store: Store, prefix: str) -> None:
    victims = Victims(store, prefix)
    for method, request in hostile.lies():
        code, _ = store.execute(victims.name_of(method), method, request)
        sound = (method, code) in {(each, 0) for each in ("compact", "read", "verify", "trim")}
        sound = sound or (method, code) == ("fill", Code.READ_ONLY)
        assert sound or code == -errno.EINVAL, f"{method} {request.hex()}: {code}"


@pytest.mark.usefixtures("unharmed", "daemons_stay_up")
def test_requests_above_the_limit_are_refused(store: Store, prefix: str) -> None:
    """32 MiB is the most that a request may hold; one byte more is refused, not stored."""
    stripe = Victims(store, prefix).stripe
    for size in ((32 << 20) + 1, (48 << 20)):
        code, _ = store.execute(stripe.name, "write", hostile.SOUND["write"].ljust(size, b"\0"))
        assert code in TOO_LARGE
    assert stripe.stat(1).value.entries == 6
