"""One call moves a log's tail or its epochs so far and no further; the log goes on behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import zlog
from zlog._base.codes import (
    EPOCH_MAX,
    EPOCHS_AHEAD_MAX,
    OBJECT_POSITIONS_MAX,
    OBJECT_TAIL_MAX,
    POSITION_MAX,
    Code,
)
from zlog._base.names import head_object, stripe_object
from zlog._layout.stripe_objects import make, seal
from zlog._native import messages

from ..conformance.stored import Door, MemoryDoor, envelope, fields_of
from ..support.local_sequencer import LocalSequencer
from ..support.logs import fill_at, raise_tail, write_at
from . import planted
from .faulty import FaultyStore, WithoutSequencer

UNITS = (1, 4)
WIDTH = 4
ENTRIES = [b"entry %d" % number for number in range(10)]
TAIL_MAX = WIDTH * OBJECT_TAIL_MAX
END = WIDTH * OBJECT_POSITIONS_MAX


def check_in_use(log: zlog.Log, end: int = len(ENTRIES)) -> None:
    """The log takes appends, and has lost nothing of what it held."""
    with zlog.Log.open(log.store, log.name, timeout=10) as opened:
        positions = [opened.append(b"on"), *opened.append_many([b"and", b"on"])]
        assert [opened.read(position).data for position in positions] == [b"on", b"and", b"on"]
        assert opened.tail() > positions[-1]
        assert [entry.data for entry in opened.read_range(0, end)] == ENTRIES[:end]


@pytest.fixture
def served(store: zlog.Store) -> Iterator[LocalSequencer | None]:
    """The sequencer of the logs of a store that has none of its own."""
    running = None if store.sequencer() else LocalSequencer(store)
    yield running
    if running is not None:
        running.stop()


@pytest.fixture(params=["with", "without"])
def filled(request: pytest.FixtureRequest, store: zlog.Store) -> zlog.Log:
    """A log with entries, with a sequencer and without any."""
    if request.param == "with":
        request.getfixturevalue("served")
    else:
        store = WithoutSequencer(store)
    log = zlog.Log.create(store, request.param, width=WIDTH, hole_timeout=0.05)
    log.append_many(ENTRIES)
    assert bool(log.view.sequencer) == (request.param == "with")
    return log


def test_tail_is_bounded_by_stripe(filled: zlog.Log) -> None:
    assert raise_tail(filled, POSITION_MAX) == Code.BEYOND_STRIPE
    assert raise_tail(filled, TAIL_MAX + 1) == Code.BEYOND_STRIPE
    assert raise_tail(filled, TAIL_MAX) == Code.OK
    filled.reconfigure(options={"a": "new epoch"})
    assert filled.view.live_stripe.start == TAIL_MAX
    check_in_use(filled)


@pytest.mark.parametrize(
    "touch", [write_at, lambda log, position: fill_at(log, [position])], ids=["write", "fill"]
)
def test_write_and_fill_are_bounded_by_stripe(
    filled: zlog.Log, touch: Callable[[zlog.Log, int], int]
) -> None:
    for position in (POSITION_MAX - WIDTH + 1, END):
        assert touch(filled, position) == Code.BEYOND_STRIPE
    assert touch(filled, END - 1) == Code.OK
    check_in_use(filled)
    filled.roll()
    assert filled.view.live_stripe.start >= END
    check_in_use(filled)


@pytest.mark.parametrize("far", [POSITION_MAX, 2**62, END, len(ENTRIES) + 1])
def test_trim_is_bounded_by_tail(filled: zlog.Log, far: int) -> None:
    """Else what is appended later would be hidden."""
    filled.tail()
    head = head_object(filled.name)
    request = messages.trim_point_raise(filled.view.log_id, far, True)
    code, _ = filled.store.execute(head, "trim_point_raise", request)
    assert code == Code.BEYOND_TAIL
    with pytest.raises(zlog.BeyondTail, match="the tail"):
        filled.trim_to(far)
    assert filled.earliest() == 0
    check_in_use(filled)


def test_layout_change_passes_unassigned_epochs(filled: zlog.Log) -> None:
    refs = list(filled.view.objects(filled.view.live_stripe))
    epoch = filled.view.epoch
    for step in range(1, 4):
        for ref, ahead in zip(refs, (2**62, EPOCHS_AHEAD_MAX + 1, EPOCHS_AHEAD_MAX), strict=False):
            sealed = epoch + EPOCHS_AHEAD_MAX * (step - 1) if ref is refs[2] else epoch
            request = planted.seal(ref, sealed + ahead)
            code, _ = filled.store.execute(ref.name, "seal", request)
            assert code == (Code.OK if ahead == EPOCHS_AHEAD_MAX else Code.INVALID_EPOCH)
    check_in_use(filled)
    newest = filled.views()[-1].epoch
    assert newest > epoch + 3 * EPOCHS_AHEAD_MAX
    filled.roll()
    assert filled.view.epoch <= newest + 2


def test_ended_stripe_sealed_with_unassigned_epoch_is_readable(
    filled: zlog.Log,
) -> None:
    """No change of the layout asks its objects, so those who read there tell of the epoch."""
    sealed = filled.view.epoch + EPOCHS_AHEAD_MAX
    filled.roll()
    for number in (2, 3):
        ref = filled.view.object_at(filled.view.stripes[0], number)
        request = planted.seal(ref, sealed - number)
        planted.call(filled.store, ref.name, "seal", request)
    check_in_use(filled)
    assert sealed - 2 < filled.views()[-1].epoch < sealed + 20


@pytest.mark.parametrize(
    ("epoch", "width", "start", "other_unit"),
    [
        (EPOCH_MAX, WIDTH, 0, None),
        (1, WIDTH, POSITION_MAX, None),
        (1, WIDTH + 1, 0, None),
        (1, WIDTH, 0, 2),
    ],
    ids=["epoch", "start", "width", "stripe_unit"],
)
def test_a_stripe_uses_only_objects_that_its_creator_made(
    filled: zlog.Log, epoch: int, width: int, start: int, other_unit: int | None
) -> None:
    """Their names can be guessed, and others may seal a new object as they like."""
    view = filled.view
    stripe_unit = other_unit or view.live_stripe.stripe_unit
    for id_ in range(view.epoch + 1, view.epoch + 20):
        for residue in range(WIDTH):
            name = stripe_object(view.log, view.log_id, id_, residue)
            request = messages.seal(epoch, width, residue, True, start, stripe_unit)
            planted.call(filled.store, name, "seal", request)
    filled.roll()
    filled.reconfigure(width=2)
    live = filled.view.live_stripe
    assert write_at(filled, POSITION_MAX) == Code.BEYOND_STRIPE
    check_in_use(filled)
    assert live.id >= view.epoch + 20


def test_advanced_epoch_counter_is_tolerated(filled: zlog.Log) -> None:
    for _ in range(5):
        request = messages.epoch_next(0, 2**62)
        code, _ = filled.store.execute(head_object(filled.name), "epoch_next", request)
        assert code == Code.OK
    filled.roll()
    check_in_use(filled)
    assert filled.views()[-1].epoch > 5 * EPOCHS_AHEAD_MAX


def test_writer_passes_prefilled_positions(sequenced: zlog.Log) -> None:
    """One call fills 65,536 positions of an object before their writer comes to them."""
    sequenced.append_many(ENTRIES)
    with zlog.Log.open(sequenced.store, "orders") as attacker:
        for ref in attacker.view.objects():
            assert fill_at(attacker, ref.positions(12, POSITION_MAX)[:65536]) == Code.OK
    operations = 0

    def count(*_: object) -> None:
        nonlocal operations
        operations += 1

    with zlog.Log.open(FaultyStore(sequenced.store, count), "orders") as victim:
        position = victim.append(b"passed")
        assert victim.read(position).data == b"passed"
    assert operations < 100


@pytest.fixture
def ahead(log: zlog.Log, served: LocalSequencer | None) -> zlog.Log:
    """A log whose sequencer has handed out more than the stripe takes."""
    log.append_many(ENTRIES)
    if served is not None:
        served.hand_out(END)
    elif shared := log.store.sequencer():
        assert shared.next(log.view.log_id, log.view.epoch, END)
    return log


@pytest.mark.parametrize(
    "use",
    [
        lambda log: log.append(b"x"),
        lambda log: log.append_many([b"x"] * 100)[0],
        lambda log: log.reserve(10).start,
        lambda log: log.tail(),
        lambda log: log.append_once([b"x"], producer="query", sequence=1) and 0,
    ],
    ids=["append", "append_many", "reserve", "tail", "deliver"],
)
def test_positions_beyond_the_stripe_are_abandoned(
    ahead: zlog.Log, use: Callable[[zlog.Log], int]
) -> None:
    epoch = ahead.view.epoch
    assert use(ahead) < END
    assert ahead.view.epoch > epoch
    check_in_use(ahead)


@pytest.fixture
def unbounded(store: zlog.Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[zlog.Log]:
    """A log with entries, made by a client that does not say where its stripe starts."""
    with monkeypatch.context() as patch:
        patch.setattr("zlog._layout.views.seal", _without_start(seal))
        for module in ("_lifecycle", "_layout.views"):
            patch.setattr(f"zlog.{module}.make", _without_start(make))
        log = zlog.Log.create(WithoutSequencer(store), "old", width=WIDTH, hole_timeout=0.05)
        log.append_many(ENTRIES)
        yield log


def _without_start(function):  # type: ignore[no-untyped-def]
    async def call(*arguments, **named):  # type: ignore[no-untyped-def]
        return await function(*arguments, **{**named, "start": None})

    return call


@pytest.mark.parametrize("poison", [write_at, lambda log, p: fill_at(log, [p])])
def test_an_exhausted_log_is_reported_and_rescued(
    unbounded: zlog.Log, poison: Callable[[zlog.Log, int], int]
) -> None:
    assert poison(unbounded, POSITION_MAX) == Code.OK
    for attempt in (
        lambda: unbounded.append(b"x"),
        lambda: unbounded.append_many([b"x", b"y"]),
        lambda: unbounded.roll(),
        lambda: unbounded.reconfigure(width=2),
    ):
        with pytest.raises(zlog.LogExhausted) as caught:
            attempt()
        assert "reconfigure LOG --rescue" in caught.value.hint
    view = unbounded.roll(rescue=True)
    assert view.live_stripe.start == len(ENTRIES)
    assert unbounded.append(b"on") == len(ENTRIES)
    check_in_use(unbounded)
    assert [entry.data for entry in unbounded.read_range(0, 11)] == [*ENTRIES, b"on"]


def test_rescue_keeps_entries_above_hole(unbounded: zlog.Log) -> None:
    """As writers leave it that died, and not as a hostile one makes it."""
    assert write_at(unbounded, 100_001) == Code.OK
    assert fill_at(unbounded, [300_000]) == Code.OK
    assert write_at(unbounded, 2**50) == Code.OK
    unbounded.roll(rescue=True)
    assert unbounded.view.live_stripe.start == 300_001
    assert unbounded.read(100_001).data == b"far"
    check_in_use(unbounded)


def test_rescuing_a_sound_log_keeps_its_entries(filled: zlog.Log) -> None:
    filled.trim_to(3)
    view = filled.roll(rescue=True)
    assert view.live_stripe.start == len(ENTRIES)
    assert [entry.data for entry in filled.read_range(3)] == ENTRIES[3:]


def test_rescue_fixes_excessive_tail_floor(memory: zlog.Store) -> None:
    log = zlog.Log.create(WithoutSequencer(memory), "orders", width=WIDTH)
    log.append_many(ENTRIES)
    _overwrite(MemoryDoor(memory), head_object("orders"), b"zlog.head", 24, POSITION_MAX + 1)
    with pytest.raises(zlog.LogExhausted):
        log.roll()
    assert log.roll(rescue=True).live_stripe.start == len(ENTRIES)
    check_in_use(log)


def test_object_with_excessive_epoch_is_replaced(memory: zlog.Store) -> None:
    log = zlog.Log.create(WithoutSequencer(memory), "orders", width=WIDTH)
    log.append_many(ENTRIES)
    name = log.view.object_of(2).name
    _overwrite(MemoryDoor(memory), name, b"zlog.header", 0, 2**64 - 1)
    check_in_use(log)


def _overwrite(door: Door, name: str, attribute: bytes, at: int, number: int) -> None:
    """Put a number into a stored value, as a class from before there were bounds would have."""
    content = door.load(name)
    value = content.attrs[attribute]
    fields, _ = fields_of(value)
    changed = fields[:at] + number.to_bytes(8, "little") + fields[at + 8 :]
    door.save(name, content.with_attr(attribute, envelope(attribute, changed, b"", value[0])))


def test_trimmed_stripe_ends_by_position_limit(
    store: zlog.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zlog._base.options.STRIPE_OBJECT_POSITIONS", 50)
    log = zlog.Log.create(store, "trimmed", width=WIDTH)
    for _ in range(10):
        end = log.append_many([b"x"] * WIDTH * 10)[-1] + 1
        log.trim_to(end)
    log.append(b"and on")
    assert log.view.live_stripe.start >= 50 * WIDTH
