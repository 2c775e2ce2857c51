"""Compaction by key that has no time to finish: the next call continues it."""

from __future__ import annotations

import pytest

import zlog
from zlog._trim import compact

from .test_compaction import AT_ONCE, held, kept, updates


class _Clock:
    """Steps on with each look at it."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.mark.parametrize("step", [0.2, 0.7, 3.0])
def test_where_the_time_is_up_the_next_call_goes_on(
    step: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compact, "_WINDOW", 8)
    monkeypatch.setattr(compact, "_OBJECTS_AT_ONCE", 1)
    with zlog.connect("mem://") as store, zlog.Log.create(store, "log", width=3, unit=4) as log:
        written = updates(log, 300, 20, several=False)
        log.reconfigure(width=2)
        written.update(updates(log, 100, 20, seed=1, several=False))
        log.set_retention(AT_ONCE)
        io = log._client.io
        calls = 0
        while log.retention_report().compacted < log.tail():
            monkeypatch.setattr(io, "monotonic", _Clock(step))
            log.apply_retention(timeout=60.0)
            monkeypatch.undo()
            monkeypatch.setattr(compact, "_WINDOW", 8)
            monkeypatch.setattr(compact, "_OBJECTS_AT_ONCE", 1)
            now = held(log)
            assert kept(written).items() <= now.items() <= written.items()
            calls += 1
            assert calls < 300
        assert held(log) == kept(written)
        assert not log.retention_report().compacting
        assert calls > 1 or step < 1


def test_what_there_was_no_time_for_the_next_call_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also to entries with several tags whose newer ones were found by different passes."""
    monkeypatch.setattr(compact, "_WINDOW", 8)
    with zlog.connect("mem://") as store, zlog.Log.create(store, "log", width=3, unit=4) as log:
        log.set_retention(AT_ONCE)
        written = updates(log, 200, 40)
        log.apply_retention()
        written.update(updates(log, 50, 40, seed=1))
        with monkeypatch.context() as patch:
            patch.setattr(compact, "_OBJECTS_AT_ONCE", 1)
            patch.setattr(log._client.io, "monotonic", _Clock(0.6))
            log.apply_retention(timeout=60.0)
        assert log.retention_report().compacting
        log.apply_retention()
        assert held(log) == kept(written)
