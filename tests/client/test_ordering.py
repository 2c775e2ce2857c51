"""Logs ordered by their objects: how a log gets this mode and keeps it, and what it rules out."""

from __future__ import annotations

import threading

import pytest

import zlog
from zlog import AppendRefused, SequencerUnavailable
from zlog._catalog.head import Head
from zlog._io import drive
from zlog._native import messages
from zlog.errors import NotLeader
from zlog.templates import Template, apply_template, set_template, settings_of

from ..support.local_sequencer import LocalSequencer
from ..support.logs import data_without_gap
from .planted import leave_sealed, seal
from .transfers import exported, imported, mirrored


def layout(view: zlog.View) -> tuple[bool, str, list[tuple[int, int]]]:
    return view.ordered, view.sequencer, [(each.start, each.width) for each in view.stripes]


def sealed_start(log: zlog.Log) -> int | None:
    """Where the live stripe's only object has its start; it is sealed with a higher epoch."""
    (ref,) = log.view.objects(log.view.live_stripe)
    code, reply = log.store.execute(ref.name, "seal", seal(ref, log.view.epoch + 1))
    assert code == 0
    return messages.seal_reply(reply).start


def test_ordering_survives_changes_of_the_layout(store: zlog.Store) -> None:
    log = zlog.Log.create(store, "orders", ordering="object", stripe_records=5)
    assert layout(log.view) == (True, "", [(0, 1)])
    assert log.append_many([b"%d" % i for i in range(4)]) == [*range(4)]
    assert layout(log.roll()) == (True, "", [(0, 1), (4, 1)])
    leave_sealed(store, log.view.objects(log.view.live_stripe))  # that client dies
    other = zlog.Log.open(store, "orders")
    assert [other.append(b"%d" % i) for i in range(4, 24)] == [*range(4, 24)]
    ordered, sequencer, stripes = layout(other.view)
    assert (ordered, sequencer, {width for _, width in stripes}) == (True, "", {1})
    assert len(stripes) > 2  # some were full
    epoch = other.view.epoch
    assert other.reconfigure(ordering="object", width=1).epoch == epoch
    assert other.read_only().ordered
    assert layout(other.writable())[:2] == (True, "")
    other.fence()
    assert other.append(b"24") == 24
    assert data_without_gap(log) == [b"%d" % i for i in range(25)]
    assert list(log.check()) == []
    with pytest.raises(SequencerUnavailable) as raised:
        log.reserve(1)
    assert "--ordering sequencer" in raised.value.hint


def test_ordering_changes_while_others_append(sequenced: zlog.Log) -> None:
    going, appended, failures = True, list[tuple[int, bytes]](), list[Exception]()

    def append(name: bytes) -> None:
        with zlog.Log.open(sequenced.store, "orders") as log:
            try:
                while going:
                    data = b"%s-%d" % (name, len(appended))
                    appended.append((log.append(data), data))
            except Exception as error:  # noqa: BLE001
                failures.append(error)

    threads = [threading.Thread(target=append, args=(name,)) for name in (b"a", b"b")]
    for thread in threads:
        thread.start()
    found = []
    for ordering, width in [("object", None), ("sequencer", None), ("object", None)] * 2:
        count = len(appended)
        found.append(sequenced.reconfigure(ordering=ordering, width=width))
        while len(appended) < count + 5 and not failures:
            sequenced.tail()
    last = sequenced.reconfigure(ordering="sequencer", width=3)
    going = False
    for thread in threads:
        thread.join()
    assert failures == []
    assert [each.ordered for each in found] == [True, False, True] * 2
    assert {each.live_stripe.width for each in found} == {1}
    assert (last.ordered, last.live_stripe.width) == (False, 3)
    stored = {
        entry.position: entry.data
        for entry in sequenced.read_range(0, sequenced.tail())
        if isinstance(entry, zlog.Entry)
    }
    assert stored == dict(appended)
    assert list(sequenced.check()) == []


def test_sequencers_ignore_log(plain: zlog.Store, sequencer: LocalSequencer) -> None:
    log = zlog.Log.create(plain, "orders", width=2)
    log.append(b"0")
    assert log.view.sequencer == sequencer.address
    stale = zlog.Log.open(plain, "orders")
    log.reconfigure(ordering="object")
    assert (stale.append(b"1"), log.append(b"2")) == (1, 2)
    assert layout(zlog.Log.open(plain, "orders").view) == (True, "", [(0, 2), (1, 1)])
    client = stale._client
    asked = client.io.sequencer(sequencer.address)
    with pytest.raises(NotLeader):
        drive(asked.open(client.layout.address, stale.view.epoch, client.deadline()))
    log.reconfigure(ordering="sequencer")
    assert (stale.append(b"3"), stale.append(b"4")) == (3, 4)
    assert stale.view.sequencer == sequencer.address


def test_object_begins_at_the_tail(memory: zlog.Store) -> None:
    """Else it would assign positions that the log already has, or that are below a tail."""
    log = zlog.Log.create(memory, "orders", width=2)
    log.append_many([b"x"] * 10)
    assert log.reconfigure(ordering="object").live_stripe.start == 10
    assert sealed_start(log) == 10
    log.append(b"10")  # in a view that repairs the seal
    deadline = log._client.deadline()
    head = Head(log._client.io, "orders")
    drive(head.tail_raise(log.view.log_id, log.view.epoch, 20, deadline))
    assert log.reconfigure(options={"a": "b"}).live_stripe.start == 20
    assert sealed_start(log) == 20


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"ordering": "objects"}, "must be 'sequencer', or 'object'"),
        ({"ordering": "object", "width": 2}, "width 1, not 2"),
        ({"ordering": "object", "mac_key": bytes(16)}, "cannot have MACs"),
    ],
)
def test_impossible_log_is_not_created(
    memory: zlog.Store, wrong: dict[str, object], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        zlog.Log.create(memory, "orders", **wrong)
    with pytest.raises(ValueError, match=why):
        zlog.Log.open(memory, "orders", create=True, **wrong)
    assert zlog.Log.list(memory) == []


def test_log_that_cannot_be_ordered_is_not_changed(memory: zlog.Store, target: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders", width=2)
    with zlog.Log.create(memory, "authentic", mac_key=bytes(16)) as authentic:
        mirrored(log, target, "copy")
        for other, why in [(authentic, "MACs"), (zlog.Log.open(target, "copy"), "mirror")]:
            with pytest.raises(ValueError, match=why):
                other.reconfigure(ordering="object", options={"a": "b"})
            assert not other.view.options.get("a")
    with log.writer(), pytest.raises(ValueError, match="zlog access fence"):
        zlog.Log.open(memory, "orders").reconfigure(ordering="object")
    log.fence()
    view = log.reconfigure(ordering="object")
    with pytest.raises(ValueError, match="its width is 1, not 2"):
        log.reconfigure(width=2)
    with pytest.raises(AppendRefused) as raised:
        log.writer()
    assert "zlog reconfigure LOG --ordering sequencer" in raised.value.hint
    assert zlog.Log.open(memory, "orders").view == view


def test_copies_are_not_ordered_by_their_objects(memory: zlog.Store, target: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders", ordering="object")
    log.append_many([b"0", b"1"])
    mirrored(log, target, "mirror")
    imported(target, "import", exported(log))
    for name in ("mirror", "import"):
        copy = zlog.Log.open(target, name)
        assert (copy.view.mirror, copy.view.ordered) == (name == "mirror", False)
        copy.promote()
        assert copy.append(b"2") == 2
        assert layout(copy.reconfigure(ordering="object")) == (True, "", [(0, 1), (3, 1)])
        assert copy.append(b"3") == 3
        assert data_without_gap(copy) == [b"0", b"1", b"2", b"3"]


def test_templates_set_the_ordering(memory: zlog.Store) -> None:
    def shown(log: zlog.Log) -> dict[str, tuple[str | None, str]]:
        found = settings_of(log.view, memory)
        return {s.name: (s.value, s.origin) for s in found if s.name in ("width", "ordering")}

    set_template(memory, "*", ordering="object")
    log = zlog.Log.create(memory, "a")
    assert shown(log) == {"width": ("1", "template"), "ordering": ("object", "template")}
    assert not zlog.Log.create(memory, "b", ordering="sequencer").view.ordered
    for given in ({"width": 2}, {"mac_key": bytes(16)}):
        with pytest.raises(ValueError, match="let a sequencer order the log"):
            zlog.Log.create(memory, "c", **given)
    template = set_template(memory, "*", width=4)
    assert Template.decode(template.encode()) == template
    assert apply_template(log).changed == {}  # its width can only be 1
    ordered = zlog.Log.create(memory, "d", ordering="object")
    assert shown(ordered) == {"width": ("1", "default"), "ordering": ("object", "log")}
    set_template(memory, "*", width=4, ordering="sequencer")
    changed = {"ordering": ("object", "sequencer"), "width": ("1", "4")}
    assert apply_template(ordered).changed == changed
    assert layout(ordered.view) == (False, "store:", [(0, 4)])
