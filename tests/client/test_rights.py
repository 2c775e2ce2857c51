"""A client that may take only the first steps of a change takes none, or reports what is left."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import zlog
from zlog.admin import unfinished_removals

from ..support.logs import is_there
from .faulty import Refusing


@pytest.mark.parametrize(
    "method", ["remove", "stripe_forget", "directory_remove", "head_remove", "view_propose"]
)
def test_removal_without_all_rights_is_refused(memory: zlog.Store, method: str) -> None:
    log = zlog.Log.create(memory, "orders", width=2)
    log.append(b"entry")
    epoch = log.view.epoch
    with pytest.raises(zlog.ClassNotLoaded, match="Nothing was changed") as refused:
        zlog.Log.remove(Refusing(memory, method), "orders")
    assert method in refused.value.call
    assert log.append(b"more") == 1
    assert log.view.epoch == epoch
    assert [entry.data for entry in log.read_range()] == [b"entry", b"more"]


@pytest.mark.parametrize(
    "change",
    [lambda log: log.reconfigure(width=3), zlog.Log.writer, zlog.Log.read_only, zlog.Log.roll],
)
def test_layout_change_without_view_right_is_refused(
    memory: zlog.Store, change: Callable[[zlog.Log], object]
) -> None:
    log = zlog.Log.create(memory, "orders", width=2)
    view = log.view
    mine = zlog.Log.open(Refusing(memory, "view_propose"), "orders")
    with pytest.raises(zlog.ClassNotLoaded, match="Nothing was changed"):
        change(mine)
    assert log.append(b"entry") == 0
    assert log.view == view  # no object has refused its epoch


def test_promotion_without_trim_right_is_refused(memory: zlog.Store) -> None:
    source = zlog.Log.create(memory, "orders", width=2)
    source.append(b"entry")
    assert [*zlog.mirror_log(source, memory, "copy")]
    with pytest.raises(zlog.ClassNotLoaded, match="Nothing was changed"):
        zlog.Log.open(Refusing(memory, "trim"), "copy").promote()
    source.append(b"more")
    assert [*zlog.mirror_log(source, memory, "copy")]  # it is a mirror as before
    mirror = zlog.Log.open(memory, "copy")
    assert [entry.data for entry in mirror.read_range()] == [b"entry", b"more"]


def test_interrupted_removal_is_reported(
    memory: zlog.Store,
) -> None:
    zlog.Log.create(memory, "orders", width=2).append(b"entry")
    asked = 2  # for the right to do so, at two objects
    with pytest.raises(zlog.ClassNotLoaded, match="were removed, but some objects remain") as error:
        zlog.Log.remove(Refusing(memory, "directory_remove", first=asked), "orders")
    assert "`zlog rm orders` removes the rest" in error.value.hint
    assert not is_there(memory, "orders")
    (found,) = unfinished_removals(memory, zlog.Log.list(memory)).values()
    assert "its removal is not finished" in str(found)
    assert "`zlog rm orders`" in found.hint
    zlog.Log.remove(memory, "orders")
    assert zlog.Log.list(memory) == []
