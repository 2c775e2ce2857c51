"""Several callers at once: what is atomic for one caller is atomic for all, on every host.

Threads, because a store lets go of the interpreter's lock while it works; submitted operations,
because hosts may put many of them into one transaction.
"""

from __future__ import annotations

from random import Random

from zlog import Store
from zlog._native.completions import CompletionQueue

from ..native.support import answers
from ..support.threads import at_once
from . import messages, replies, requests
from .objects import Stripe
from .replies import WRITTEN, Answer, Code, State
from .requests import TIME, Entry, writer_id

CALLERS = 4
POSITIONS = 60


def test_overlapping_batches_are_not_mixed(store: Store, prefix: str) -> None:
    Stripe(store, prefix).seal(1)
    batches = [range(start, start + 5) for start in range(0, POSITIONS, 3)]

    def race(caller: int) -> list[tuple[range, Answer]]:
        stripe, writer = Stripe(store, prefix), writer_id("abcd"[caller])
        order = list(batches)
        Random(caller).shuffle(order)
        return [(b, stripe.write(1, [Entry(p, p, writer) for p in b], writer)) for b in order]

    results = at_once(race, CALLERS)
    slots = Stripe(store, prefix).read(1, range(POSITIONS + 5), with_ids=True).value.slots
    held = {(p, slot.writer) for p, slot in enumerate(slots) if slot.state == State.WRITTEN}
    won = set()
    for caller, result in enumerate(results):
        writer = writer_id("abcd"[caller])
        for batch, answer in result:
            if answer.code == Code.OK:
                won |= {(p, writer) for p in batch}
            else:
                assert answer.code == Code.READ_ONLY
                assert slots[answer.value].writer not in (None, writer)
    assert held == won  # all of each batch that won, and nothing of those that lost


def test_no_write_of_older_epoch_after_seal(store: Store, prefix: str) -> None:
    """Fencing: what the seal answered is all there is of older epochs, while clients write on."""
    Stripe(store, prefix).seal(1)

    def race(caller: int) -> tuple[list[int], int | None]:
        stripe = Stripe(store, prefix)
        if caller == 0:
            while stripe.max_position(1).value.highest is None:
                pass  # until the writers have begun
            return [], stripe.seal(2).value.highest
        written = []
        for p in range(caller, 10_000, CALLERS):
            answer = stripe.put(1, p, b"x")
            if answer.code == Code.STALE_EPOCH:
                break
            assert answer.code == Code.OK
            written.append(p)
        return written, None

    results = at_once(race, CALLERS)
    acknowledged = sorted(p for written, _ in results for p in written)
    highest = results[0][1]
    assert highest == acknowledged[-1]
    slots = Stripe(store, prefix).read(2, range(highest + 5)).value.slots
    assert [p for p, slot in enumerate(slots) if slot.state == State.WRITTEN] == acknowledged


def test_submitted_operations_are_serial(store: Store, prefix: str) -> None:
    """Many at once, some refused: each sees those before it, and a refused one leaves nothing."""
    stripe = Stripe(store, prefix)
    stripe.seal(2)
    queue = CompletionQueue()

    def write(epoch: int, positions: list[int], letter: str) -> bytes:
        entries = [Entry(p, p, letter.encode()) for p in positions]
        return requests.write(epoch, TIME, writer_id(letter), 1, entries)

    calls: list[tuple[str, bytes, Answer]] = []
    for base in range(0, 40, 4):
        calls += [
            ("write", write(2, [base, base + 1], "a"), WRITTEN),
            ("write", write(2, [base + 1, base + 2], "b"), Answer(Code.READ_ONLY, base + 1)),
            ("write", write(1, [base + 2], "c"), Answer(Code.STALE_EPOCH, 2)),
            ("write", b"", Answer(-22)),
            ("write", write(1, [base], "a"), WRITTEN),
            ("trim", messages.request("trim", 2, (1, [base])), Answer(Code.OK)),
            ("write", write(2, [base + 2], "d"), WRITTEN),
        ]
    for token, (method, request, _) in enumerate(calls):
        store.submit(queue, token, [(prefix, method, request)])
    found = answers(queue, len(calls))
    for token, (method, _, expected) in enumerate(calls):
        assert replies.parse(method, *found[token]) == expected
    slots = stripe.read(2, range(40)).value.slots
    assert [slot.data for slot in slots] == [b"", b"a", b"d", b""] * 10
