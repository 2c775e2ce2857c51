"""Several callers at once: what is atomic for one caller is atomic for all, on every host.

Threads, because a store lets go of the interpreter's lock while it works; submitted operations,
because hosts may put many of them into one transaction.
"""

from __future__ import annotations

from itertools import chain
from random import Random

from zlog import Store
from zlog._native.completions import CompletionQueue

from ..support.threads import at_once
from . import messages, replies, requests
from .objects import Head, Stripe
from .replies import WRITTEN, Answer, Code, State
from .requests import TIME, Entry, writer_id

CALLERS = 4
POSITIONS = 60


def test_racing_writes_have_one_winner_per_position(store: Store, prefix: str) -> None:
    """Writers and fillers race for the same positions, each in an order of its own."""
    Stripe(store, prefix).seal(1)

    def race(caller: int) -> dict[int, int]:
        stripe = Stripe(store, prefix)
        order = list(range(POSITIONS))
        Random(caller).shuffle(order)
        writer = writer_id("abcd"[caller])
        codes = {}
        for p in order:
            junk = caller == CALLERS - 1
            answer = stripe.fill(1, [p], writer) if junk else stripe.put(1, p, writer, writer)
            codes[p] = answer.code
        return codes

    results = at_once(race, CALLERS)
    slots = Stripe(store, prefix).read(1, range(POSITIONS), with_ids=True).value.slots
    for p in range(POSITIONS):
        winners = [caller for caller in range(CALLERS) if results[caller][p] == Code.OK]
        assert len(winners) == 1, p
        writer = writer_id("abcd"[winners[0]])
        junk = winners == [CALLERS - 1]
        assert slots[p].state == (State.FILLED if junk else State.WRITTEN)
        assert slots[p].writer == writer
        assert slots[p].data == (b"" if junk else writer)


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


def test_every_epoch_is_granted_once(store: Store, prefix: str) -> None:
    Head(store, prefix).create("log", 7)

    def race(_caller: int) -> list[int]:
        head = Head(store, prefix)
        return [head.epoch_next().value[0] for _ in range(20)]

    results = at_once(race, CALLERS)
    assert all(result == sorted(result) for result in results)
    assert sorted(chain(*results)) == list(range(1, 20 * CALLERS + 1))


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
    found: dict[int, Answer] = {}
    while len(found) < len(calls):
        assert queue.wait(30)
        for token, code, reply in queue.drain():
            found[token] = replies.parse(calls[token][0], code, bytes(reply))
    assert [found[token] for token in range(len(calls))] == [answer for _, _, answer in calls]
    slots = stripe.read(2, range(40)).value.slots
    assert [slot.data for slot in slots] == [b"", b"a", b"d", b""] * 10
