"""Templates: the settings that new logs get from patterns of their names."""

from __future__ import annotations

import asyncio
import io
import threading

import pytest

import zlog
from zlog import Retention, aio
from zlog._base.names import TEMPLATES_OBJECT
from zlog.aio import templates as aio_templates
from zlog.templates import (
    Template,
    apply_template,
    list_templates,
    remove_template,
    set_template,
    settings_of,
)
from zlog.testing import AT_ONCE, Fate, StoreCall
from zlog.testing import FaultyStore as AnyFaults

from .faulty import Died, FaultyStore, Refusing


@pytest.fixture
def stripe_unit() -> None:
    """zlog's own stripe unit, so that it is the default."""


def origins(log: zlog.Log) -> dict[str, tuple[str | None, str]]:
    """The settings that are not defaults, with their values and their patterns or origins."""
    found = settings_of(log.view, log.store)
    return {s.name: (s.value, s.pattern or s.origin) for s in found if s.origin != "default"}


def test_new_log_gets_settings_of_its_template(store: zlog.Store) -> None:
    async def by_tasks() -> dict[str, tuple[str | None, str]]:
        await aio_templates.set_template(store, "web-*", width=2, hole_timeout=None)
        async with aio.Log.open(store, "web-2", create=True, width=3) as log:
            return {s.name: (s.value, s.pattern) for s in settings_of(log.view, store) if s.pattern}

    set_template(store, "*", width=5, compression="lz4")
    set_template(store, "web-*", width=1, compression="zstd", retention=Retention(age=60))
    with zlog.Log.create(store, "web-1", compression="none", options={"own": "1"}) as log:
        log.append(b"first")
        assert origins(log) == {
            "width": ("1", "web-*"),
            "compression": ("none", "log"),
            "retention_age_s": ("60", "web-*"),
            "own": ("1", "log"),
        }
        assert log.retention == Retention(age=60)
        assert asyncio.run(by_tasks()) == {"hole_timeout": ("never", "web-*")}
        assert zlog.Log.open(store, "web-1", create=True).view == log.view
        log.reconfigure(width=4)
        assert origins(log)["width"] == ("4", "log")
        assert origins(log)["retention_age_s"] == ("60", "web-*")  # which the template had then
        assert list(log.check()) == []
    assert zlog.Log.list(store) == ["web-1", "web-2"]
    assert [each.pattern for each in list_templates(store)] == ["*", "web-*"]
    assert remove_template(store, "web-*")
    assert not remove_template(store, "web-*")
    assert zlog.Log.create(store, "web-3").view.live_stripe.width == 5


def test_most_specific_template_applies(memory: zlog.Store) -> None:
    patterns = ["*", "w*", "[vw]eb-[!2]", "web-?", "web-*", "web-1", "web-1*", "x" * 256]
    for number, pattern in enumerate(patterns, start=1):
        set_template(memory, pattern, width=number)
    expected = {"web-1": "web-1", "web-10": "web-1*", "web-2": "web-*", "we": "w*", "db": "*"}
    found = {}
    for name in expected:
        with zlog.Log.create(memory, name) as log:
            found[name] = patterns[log.view.live_stripe.width - 1]
    assert found == expected


def test_concurrent_changes_are_all_kept(store: zlog.Store) -> None:
    def change(number: int) -> None:
        set_template(store, f"{number}-*", width=number + 1)
        set_template(store, f"{number}-temporary", width=1)
        assert remove_template(store, f"{number}-temporary")

    threads = [threading.Thread(target=change, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list_templates(store) == [Template(f"{n}-*", n + 1) for n in range(4)]


@pytest.mark.parametrize("fault", ["die", "lose", "twice"])
@pytest.mark.parametrize("at", range(6))
def test_interrupted_change_is_finished_by_next(memory: zlog.Store, at: int, fault: str) -> None:
    faulty = FaultyStore(memory, lambda number, _: fault if number == at else None)
    try:
        set_template(faulty, "a-*", width=1, timeout=0.2)
        set_template(faulty, "b-*", width=2, timeout=0.2)
    except (Died, zlog.StoreTimeout):
        pass
    set_template(memory, "b-*", width=3)
    set_template(memory, "a-*", width=1)
    assert list_templates(memory) == [Template("a-*", 1), Template("b-*", 3)]


def test_templates_cost_one_request_at_creation_only(memory: zlog.Store) -> None:
    def count(call: StoreCall) -> Fate:
        asked.append(call.method) if call.object == TEMPLATES_OBJECT else None
        return AT_ONCE

    asked: list[str] = []
    counted = AnyFaults(memory, count)
    zlog.Log.open(counted, "orders", create=True).close()
    assert asked == ["view_read"]
    zlog.Log.open(counted, "orders", create=True).append(b"first")
    zlog.Log.open(counted, "orders").close()
    assert asked == ["view_read"]


def test_creation_fails_without_access_to_templates(memory: zlog.Store) -> None:
    """Otherwise the log would have other settings than its template says."""
    store = Refusing(memory, "view_read")
    with pytest.raises(zlog.ClassNotLoaded, match="cannot read or change the templates") as raised:
        zlog.Log.create(store, "orders")
    assert "`view_read` on the object zlog.directory/templates" in raised.value.hint
    assert zlog.Log.list(memory) == []


def test_apply_changes_existing_log(store: zlog.Store) -> None:
    with (
        zlog.Log.create(store, "web-1", width=2, options={"own": "1", "team": "a"}) as log,
        zlog.Log.open(store, "web-1") as other,
    ):
        assert apply_template(log).template is None
        set_template(store, "web-*", width=1, compression="zstd", options={"team": "b"})
        expected = {"width": ("2", "1"), "compression": (None, "zstd"), "team": ("a", "b")}
        before = log.view
        assert apply_template(log, dry_run=True).changed == expected
        assert log.view == before
        assert apply_template(log).changed == expected
        assert apply_template(log).changed == {}
        own = {"width": ("1", "web-*"), "team": ("b", "web-*"), "own": ("1", "log")}
        assert origins(log) == {**own, "compression": ("zstd", "web-*")}
        set_template(store, "web-*", width=1, options={"team": "b"}, entry_bytes_max=4)
        changed = {"compression": ("zstd", None), "entry_bytes_max": (None, "4")}
        assert apply_template(log).changed == changed
        assert origins(log) == {**own, "entry_bytes_max": ("4", "web-*")}
        other.append(b"1234")
        with pytest.raises(zlog.EntryTooLarge):
            other.append(b"12345")


def test_copies_get_settings_of_their_source(memory: zlog.Store, target: zlog.Store) -> None:
    set_template(memory, "*", compression="zstd")
    set_template(target, "*", width=1, compression="lz4")
    file = io.BytesIO()
    with zlog.Log.create(memory, "orders", width=3) as source:
        source.append(b"first")
        zlog.export_log(source, file)
        assert [*zlog.mirror_log(source, target, "mirror", follow=False)]
    file.seek(0)
    zlog.import_log(target, "imported", file)
    for name in ("mirror", "imported"):
        with zlog.Log.open(target, name) as log:
            found = origins(log)
            assert (found["width"], found["compression"]) == (("3", "log"), ("zstd", "log"))
            assert (apply_template(log).template is None) == log.view.mirror


def test_invalid_templates_are_refused(memory: zlog.Store) -> None:
    with pytest.raises(ValueError, match="a width must be 1 to 1024 stripe objects, not 0"):
        set_template(memory, "*", width=0)
    with pytest.raises(ValueError, match="at most 256 characters"):
        set_template(memory, "x" * 257)
    with pytest.raises(ValueError, match="'mirror_of' is reserved for zlog"):
        set_template(memory, "*", options={"mirror_of": "file"})
    with pytest.raises(ValueError, match="at most 4096 bytes"):
        set_template(memory, "*", options={"long": "x" * 4096})
    assert list_templates(memory) == []
    for number in range(128):
        set_template(memory, f"{number}", width=1)
    with pytest.raises(zlog.LimitReached, match="128 templates"):
        set_template(memory, "*")
    set_template(memory, "127", width=2)
