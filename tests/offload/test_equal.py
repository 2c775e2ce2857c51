"""Offloading a log changes nothing that its readers see."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import zlog
from zlog import Retention
from zlog._native.writes import encode_write

from ..client.test_macs import KEY
from ..support.logs import leave_hole
from .offloading import TAGS, offload, seen

Action = Callable[[zlog.Log, int], object]

_ODD = (0, 1, 1 << 63, (1 << 64) - 1)


def append(log: zlog.Log, number: int) -> None:
    data = [b"", b"x" * (1 + number % 50), b"%d" % number] * (1 + number % 3)
    log.append_many(data, tags_each=[TAGS[: (number + i) % 4] for i in range(len(data))])


def append_oddly(log: zlog.Log, number: int) -> None:
    """Store an append with a number and a time that another client may choose."""
    position = leave_hole(log)
    ref = log.view.object_of(position)
    append_id = bytes(16), ref.striping.packed, [position], [_ODD[number % 4]]
    key = log._client.layout.macs.key
    request = encode_write(log.view.epoch, _ODD[number // 4 % 4], *append_id, [b"odd"], mac=key)
    assert log.store.execute(ref.name, "write", request)[0] == 0


def fill(log: zlog.Log, number: int) -> None:
    first = leave_hole(log, 1 + number % 4)
    if number % 2:
        log.fill(first)


def change(log: zlog.Log, number: int) -> None:
    how = ("none", "zstd", "lz4")[number % 3]
    log.reconfigure(width=1 + number % 4, stripe_unit=1 << number % 3, compression=how)


def compact(log: zlog.Log, _: int) -> None:
    log.set_retention(Retention(compact_after=0))
    log.apply_retention()
    log.set_retention(Retention())


def append_exclusively(log: zlog.Log, number: int) -> None:
    with log.writer() as writer:
        writer.append_many([b"exclusive"] * (number % 5))
    log.fence()


ACTIONS: list[Action] = [append, append, append_oddly, fill, change, change, compact]
ACTIONS += [
    append_exclusively,
    lambda log, _: log.append(bytes(1 << 20), tags=["a"]),
    lambda log, number: log.trim(number % log.tail()) if log.tail() else None,
    lambda log, number: log.trim_to(max(log.earliest(), min(log.tail(), number % 20))),
]
HISTORIES = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 99)), max_size=25)


@pytest.mark.usefixtures("small_windows")
@settings(
    max_examples=30,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
@given(HISTORIES, st.integers(0, 255), st.booleans(), st.booleans())
def test_readers_see_the_same_log(
    history: list[tuple[Action, int]], chosen: int, with_macs: bool, promoted: bool
) -> None:
    options: dict[str, Any] = {"mac_key": KEY if with_macs else None}
    with ExitStack() as stack:
        root = Path(stack.enter_context(TemporaryDirectory()))
        store, other = (stack.enter_context(zlog.connect("mem://")) for _ in range(2))
        log = zlog.Log.create(store, "orders", width=3, hole_timeout=0.0, **options)
        for action, number in [*history, (append, 3), (change, 1), (append, 5)]:
            action(log, number)
        if promoted:
            for _ in zlog.mirror_log(log, other, "copy", **options):
                pass
            log = zlog.Log.open(other, "copy", **options)
            log.promote()
            change(log, 1)
            append(log, 1)
        stale, before = zlog.Log.open(log.store, log.name, **options), seen(log, **options)
        assert seen(stale, **options) == before
        offload(log, root, lambda stripe: bool(chosen >> stripe.id % 8 & 1))
        assert seen(stale, **options) == before
        offload(log, root)
        assert len(log.stripes()) == 1 + log.stat().offloaded.stripes
        fresh = zlog.Log.open(log.store, log.name, **options)
        assert seen(stale, **options) == seen(fresh, **options) == before
