"""What the tests of damaged storage share: an object of known content, and ways to damage it."""

from __future__ import annotations

import errno
from collections.abc import Iterator

from .hostile import SOUND
from .objects import Head, Store, Stripe, _Object
from .replies import Answer, Code, Read, State
from .requests import Entry, StripeView, View
from .victims import kind_of
from .wire import OPEN_END

EPOCH = 5
POSITIONS = range(20)
LARGE = [bytes([65 + i]) * 9_000 for i in range(4)]  # 36 KB: goes to the bytestream
DATA = {0: b"zero", 1: b"one", 2: b"", 5: b"five", **{8 + i: LARGE[i] for i in range(4)}}
STATES = {**dict.fromkeys(DATA, State.WRITTEN), 3: State.FILLED, 4: State.FILLED, 6: State.TRIMMED}
# Which positions each record covers, by its key.
SPANS = {
    b"e.0000000000000002.3": range(3),
    b"e.0000000000000004.2": range(3, 5),
    b"e.0000000000000005.1": range(5, 6),
    b"e.0000000000000006.1": range(6, 7),
    b"e.000000000000000b.4": range(8, 12),
}
INDEX_BYTES = {b"e.0000000000000002.3": 7, b"e.0000000000000005.1": 4}  # data behind the index
EIO = Answer(-errno.EIO)
_ABOUT_DAMAGE = ("damaged", "salvage", "heal", "version")


def make(store: Store, name: str) -> Stripe:
    """An object with records of every kind."""
    stripe = Stripe(store, name)
    first = [Entry(p, p, DATA[p]) for p in (0, 1, 2)]
    answers = [
        stripe.seal(EPOCH),
        stripe.write(EPOCH, first),
        stripe.fill(EPOCH, [3, 4]),
        stripe.write(EPOCH, [Entry(5, 5, DATA[5])]),
        stripe.trim(EPOCH, [6]),
        stripe.write(EPOCH, [Entry(p, p, DATA[p]) for p in range(8, 12)]),
    ]
    assert {answer.code for answer in answers} == {Code.OK}
    return stripe


def make_head(store: Store, name: str) -> Head:
    """A head with two views."""
    head = Head(store, name)
    stripes = (StripeView(1, 0, OPEN_END, 8),)
    assert head.create("orders", 7).code == Code.OK
    for epoch in (1, 2):
        assert head.epoch_next(8 if epoch == 1 else 0).code == Code.OK
        assert head.view_propose(epoch - 1, View(epoch, 7, stripes=stripes)).code == Code.OK
    return head


def salvaged(
    made: _Object, name: bytes = b"", position: int | None = None
) -> tuple[bytes, bytes, bytes]:
    """What `heal` takes of a sound object."""
    answer = made.salvage(name, position)
    assert answer.code == Code.OK, answer
    return answer.value.name, answer.value.value, answer.value.data


def states(answer: Answer) -> list[State]:
    """The states of a read that must have worked, after a look at the data of what is written."""
    assert isinstance(answer.value, Read), answer
    slots = answer.value.slots
    for position, slot in zip(POSITIONS, slots, strict=True):
        expected = STATES.get(position, State.UNWRITTEN)
        assert slot.state in (expected, State.LOST), position
        assert slot.state != State.WRITTEN or slot.data == DATA[position], position
    return [slot.state for slot in slots]


def lost(answer: Answer) -> list[int]:
    """Which positions of a read are lost; all others must be as they were."""
    return [p for p, state in zip(POSITIONS, states(answer), strict=True) if state == State.LOST]


def assert_taken_for_good(stripe: Stripe, position: int) -> None:
    """A write hears that its entry may be there, whatever its epoch: the identity is lost."""
    for epoch in (EPOCH, EPOCH - 1):
        assert stripe.put(epoch, position, b"x", b"o" * 16) == Answer(Code.LOST, position)
        assert stripe.put(epoch, position, DATA.get(position, b"")) == Answer(Code.LOST, position)
    assert stripe.fill(EPOCH, [position]) == Answer(Code.LOST, position)


def flip(value: bytes, at: int, bit: int = 0) -> bytes:
    """The value with one bit flipped."""
    return value[:at] + bytes([value[at] ^ 1 << bit]) + value[at + 1 :]


def damages(value: bytes, host: str) -> Iterator[tuple[str, bytes]]:
    """Ways in which a value may be damaged: all of them in memory, some on Ceph."""
    step = 1 if host == "mem" else max(len(value) // 6, 1)
    for at in range(0, len(value), step):
        yield f"bit {at % 8} of byte {at} flipped", flip(value, at, at % 8)
        yield f"cut to {at}", value[:at]
    yield "one byte more", value + b"\0"
    yield "zeros", bytes(len(value))
    yield "another version", bytes([value[0] + 1]) + value[1:]


def calls(made: _Object) -> Iterator[tuple[str, Answer]]:
    """Call each method of an object's kind, but those that look for damage and repair it."""
    for method, request in SOUND.items():
        if kind_of(method) is type(made) and method not in _ABOUT_DAMAGE:
            yield method, made.send(method, request)
