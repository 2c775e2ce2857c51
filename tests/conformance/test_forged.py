"""An append's identity includes its data: another writer's is never taken for it, whatever its id.

Also where both have the same checksum, which is no secret and easy to meet.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from .objects import Store, Stripe
from .replies import WRITTEN, Answer, Code, State
from .requests import Entry
from .stored import STORES_WITH_DOORS, Door
from .wire import entry_crc, with_same_checksum

INLINE, STREAM = 100, 40_000
"""Bytes of entries that are stored in the two ways that there are."""


@pytest.mark.parametrize("size", [INLINE, STREAM])
def test_same_checksum_is_another_entry(store: Store, prefix: str, size: int) -> None:
    own = bytes(size)
    forged = with_same_checksum(own)
    assert forged != own
    assert entry_crc(1, forged) == entry_crc(1, own)
    stripe = Stripe(store, prefix)
    stripe.seal(1)
    first, last = Entry(0, 0, b"0" * size), Entry(2, 2, b"2" * size)
    assert stripe.write(1, [first, Entry(1, 1, forged), last]) == WRITTEN

    batch = [first, Entry(1, 1, own), last]
    assert stripe.write(1, batch) == Answer(Code.READ_ONLY, 1)
    assert stripe.write(0, batch) == Answer(Code.STALE_EPOCH, 1)  # it is not there
    assert stripe.write(0, [first, last]) == WRITTEN
    assert stripe.write(0, [first, Entry(1, 1, forged), last]) == WRITTEN


@pytest.mark.parametrize("store_url", STORES_WITH_DOORS, indirect=True)
@pytest.mark.parametrize("size", [INLINE, STREAM])
def test_damaged_entry_keeps_its_writer(store: Store, prefix: str, door: Door, size: int) -> None:
    """No write makes one; were it taken for another's, it might be fixed and stand twice."""
    stripe = Stripe(store, prefix)
    stripe.seal(1)
    entry = Entry(0, 0, b"0" * size)
    stripe.write(1, [entry])
    sound = door.load(prefix)
    (key, value), *_ = sound.omap.items()
    stream = sound.stream.replace(b"0", b"1")
    door.save(prefix, replace(sound.with_value(key, value.replace(b"00", b"11")), stream=stream))
    (slot,) = stripe.read(1, [0]).value.slots
    assert slot.state == State.LOST
    assert stripe.write(0, [entry]) == WRITTEN
