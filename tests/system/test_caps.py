"""The caps that docs/operating.md recommends: what they let a hostile client do, and what not."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from urllib.parse import parse_qs, urlsplit

import pytest

import zlog
from zlog._base.sequencer import LogAddress
from zlog._native import messages

from ..conformance import hostile
from ..conformance.messages import METHODS
from ..support.sequencer import SequencerProcess

CLASS = "allow pool zlog class zlog"
LOCK = "allow pool zlog object_prefix zlog.directory class lock"

LOOKING = "view_read stripes_read read verify max_position stat directory_list sequencer_find"
READING = f"{LOOKING} tail_raise fill"
APPENDING = f"{READING} write"
READING_METHODS = {
    "damaged",
    "salvage",
    "epoch_read",
    "stripes_loose",
    "count",
    "retention_read",
    "cursor_read",
    "cursor_list",
    *LOOKING.split(),
}
"""Every method that a host lets change nothing."""


def allowed(methods: str) -> tuple[str, ...]:
    return tuple(f"{CLASS} {method}" for method in methods.split())


@pytest.fixture
def log(user: Callable[..., str]) -> Iterator[zlog.Log]:
    """A log with entries, of a user who may do everything."""
    with zlog.connect(user(CLASS, LOCK, name="owner")) as store:
        log = zlog.Log.create(store, "orders", width=2)
        log.append_many([b"first", b"second", b"third"])
        yield log


def objects(log: zlog.Log) -> list[str]:
    """All objects of the log, and the directory."""
    address = LogAddress(log.store.pool, log.store.namespace, log.name, log.view.log_id)
    stripes = [ref.name for ref in log.view.objects(log.view.live_stripe)]
    return [*stripes, f"zlog.{address.name}.head", "zlog.directory"]


def test_without_the_class_nothing_that_rados_can_do_touches_an_entry(
    user: Callable[..., str], log: zlog.Log
) -> None:
    """Write-once holds against a program of one's own: the class is the only way in."""
    rados = pytest.importorskip("rados")
    url = urlsplit(user(CLASS, name="app"))
    query = {key: value[0] for key, value in parse_qs(url.query).items()}
    with (
        rados.Rados(conffile=query["conf"], rados_id=query["id"]) as cluster,
        cluster.open_ioctx(url.netloc) as ioctx,
    ):
        ioctx.set_namespace(url.path.strip("/"))

        def set_omap(name: str) -> None:
            with rados.WriteOpCtx() as op:
                ioctx.set_omap(op, ("key",), (b"value",))
                ioctx.operate_write_op(op, name)

        def clear_omap(name: str) -> None:
            with rados.WriteOpCtx() as op:
                ioctx.clear_omap(op)
                ioctx.operate_write_op(op, name)

        attempts: dict[str, Callable[[str], object]] = {
            "write": lambda name: ioctx.write(name, b"x"),
            "write_full": lambda name: ioctx.write_full(name, b"x"),
            "append": lambda name: ioctx.append(name, b"x"),
            "truncate": lambda name: ioctx.trunc(name, 0),
            "remove": ioctx.remove_object,
            "set_xattr": lambda name: ioctx.set_xattr(name, "x", b"x"),
            "rm_xattr": lambda name: ioctx.rm_xattr(name, "x"),
            "omap_set": set_omap,
            "omap_clear": clear_omap,
            "read": lambda name: ioctx.read(name),
            "lock": lambda name: ioctx.lock_exclusive(name, "lock", "cookie"),
        }
        for name in objects(log):
            for what, attempt in attempts.items():
                with pytest.raises(rados.Error) as caught:
                    attempt(name)
                assert abs(caught.value.errno) == errno.EPERM, (what, name, caught.value)
        assert [*ioctx.list_objects()] == []  # refused, of which python-rados says nothing
    assert [entry.data for entry in log.read_range(0)] == [b"first", b"second", b"third"]
    assert list(log.check()) == []


def refused(url: str, names: list[str]) -> set[str]:
    """The methods of the class that a user may call on none of these objects."""
    with zlog.connect(url) as store:
        answers = {
            method: {store.execute(name, method, b"", timeout=30)[0] for name in names}
            for method in METHODS
        }
    for method, codes in answers.items():  # an empty request is malformed, where it arrives
        assert codes in ({-errno.EPERM}, {-errno.EINVAL}), (method, codes)
    return {method for method, codes in answers.items() if codes == {-errno.EPERM}}


@pytest.mark.parametrize("methods", [LOOKING, READING, APPENDING], ids=["look", "read", "append"])
def test_a_user_may_call_what_its_caps_name_and_nothing_else(
    user: Callable[..., str], log: zlog.Log, methods: str
) -> None:
    url = user(*allowed(methods), name="app")
    assert refused(url, objects(log)) == {*METHODS} - {*methods.split()}


def test_who_may_only_look_changes_nothing(user: Callable[..., str], log: zlog.Log) -> None:
    assert {*LOOKING.split()} <= READING_METHODS
    with zlog.connect(user(*allowed(LOOKING), name="app")) as store:
        mine = zlog.Log.open(store, "orders", timeout=10)
        assert mine.read(1).data == b"second"
        for attempt in (
            lambda: mine.append(b"x"),
            lambda: mine.trim_to(2),
            lambda: mine.trim(0),
            lambda: mine.fill(0),
            lambda: mine.reconfigure(width=4),
            lambda: zlog.Log.create(store, "another"),
            lambda: zlog.Log.remove(store, "orders"),
        ):
            with pytest.raises(zlog.ClassNotLoaded, match="refused to run"):
                attempt()
    assert [entry.data for entry in log.read_range(0)] == [b"first", b"second", b"third"]


def test_a_writer_behind_a_sequencer_appends_and_can_neither_seal_nor_trim(
    user: Callable[..., str], log: zlog.Log
) -> None:
    with SequencerProcess(log.store.url) as sequencer:
        assert log.append(b"fourth") == 3  # from now on the view names the sequencer
        with zlog.connect(user(*allowed(APPENDING), name="app")) as store:
            mine = zlog.Log.open(store, "orders")
            assert mine.append(b"fifth") == 4
            assert mine.view.sequencer == sequencer.address
            epoch = mine.view.epoch
            seal = messages.seal(epoch + 1, 2, 0, False)
            for name in objects(log)[:2]:
                for method, request in (("seal", seal), ("trim_to", hostile.SOUND["trim_to"])):
                    assert store.execute(name, method, request)[0] == -errno.EPERM
            for attempt in (lambda: mine.trim_to(2), lambda: mine.reconfigure(width=4)):
                with pytest.raises(zlog.ClassNotLoaded, match="refused to run"):
                    attempt()
            assert [entry.data for entry in mine.read_range(3)] == [b"fourth", b"fifth"]
        assert log.append(b"sixth") == 5
