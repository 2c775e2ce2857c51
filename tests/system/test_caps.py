"""The caps that docs/operating.md recommends: each lets a client do what is said, and no more."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

import zlog
from zlog._base.codes import READING_METHODS
from zlog._base.names import directory_shard
from zlog._base.sequencer import LogAddress
from zlog._native import messages
from zlog.offload import Offloader
from zlog.templates import set_template

from ..conformance import hostile
from ..conformance.messages import METHODS
from ..docs.pages import DOCS, table
from ..support.logs import is_there
from ..support.sequencer import SequencerProcess

CLASS = "allow pool zlog class zlog"
LOCK = "allow pool zlog object_prefix zlog.directory class lock"

ENTRIES = [b"first", b"second", b"third"]
_EXTENDS = re.compile(r"([a-z, ]+), and ")


def documented() -> dict[str, set[str]]:
    """The methods of each role; a role may extend another one: "read, and `write`"."""
    sets: dict[str, set[str]] = {}
    for role, methods in table(DOCS / "operating.md", "| role | methods |"):
        named = {word for quoted in re.findall("`([^`]+)`", methods) for word in quoted.split()}
        extends = _EXTENDS.match(methods)
        others = set() if extends is None else sets[extends[1]]
        sets[role.partition("(")[0].strip()] = {*METHODS} & named | others
    return sets


SETS = documented()
EVERYTHING = SETS.pop("everything")
LOOKING, READING, APPENDING = (
    " ".join(SETS[role]) for role in ("inspect", "read", "append with a sequencer")
)


def allowed(methods: str) -> tuple[str, ...]:
    return tuple(f"{CLASS} {method}" for method in methods.split())


@pytest.fixture
def log(user: Callable[..., str]) -> Iterator[zlog.Log]:
    """A log with entries, of a user who may do everything."""
    with zlog.connect(user(CLASS, LOCK, name="owner")) as store:
        log = zlog.Log.create(store, "orders", width=2, stripe_unit=2)
        log.append_many(ENTRIES)
        yield log


def objects(log: zlog.Log) -> list[str]:
    """All objects of the log, and the directory."""
    address = LogAddress(log.store.pool, log.store.namespace, log.name, log.view.log_id)
    stripes = [ref.name for ref in log.view.objects(log.view.live_stripe)]
    return [*stripes, f"zlog.{address.name}.head", directory_shard("logs", log.name)]


def test_plain_rados_cannot_change_an_entry(user: Callable[..., str], log: zlog.Log) -> None:
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
    assert [entry.data for entry in log.read_range(0)] == ENTRIES
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


def test_inspect_caps_change_nothing(user: Callable[..., str], log: zlog.Log) -> None:
    assert {*LOOKING.split()} <= READING_METHODS
    with zlog.connect(user(*allowed(LOOKING), name="app")) as store:
        mine = zlog.Log.open(store, "orders", timeout=10)
        with SequencerProcess(log.store.url):
            assert log.append(b"fourth") == 3  # from now on the view names the sequencer
            assert mine.read(1).data == b"second"
            assert [entry.data for entry in mine.read_range(0)] == [*ENTRIES, b"fourth"]
            assert mine.tail() == mine.stat().tail == 4
            assert list(mine.check()) == []
        for attempt in (
            lambda: mine.append(b"x"),
            lambda: mine.trim_to(2),
            lambda: mine.trim(0),
            lambda: mine.fill(0),
            lambda: mine.reconfigure(width=4),
            lambda: zlog.Log.create(store, "another"),
            lambda: zlog.Log.remove(store, "orders"),
        ):
            with pytest.raises(zlog.ClassNotLoaded, match="the OSD refused the call"):
                attempt()
    assert [entry.data for entry in log.read_range(0)] == [*ENTRIES, b"fourth"]


def test_writer_cannot_seal_or_trim(user: Callable[..., str], log: zlog.Log) -> None:
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
                with pytest.raises(zlog.ClassNotLoaded, match="the OSD refused the call"):
                    attempt()
            assert [entry.data for entry in mine.read_range(3)] == [b"fourth", b"fifth"]
        assert log.append(b"sixth") == 5


def reads(mine: zlog.Log) -> None:
    assert [entry.data for entry in mine.read_range(0)] == ENTRIES
    assert mine.find_time(0) == 0
    assert mine.tail() == 3


def keeps_cursors(mine: zlog.Log) -> None:
    """Also those of other readers."""
    cursor = mine.cursor("mine", create=0)
    cursor.commit(2)
    assert [(each.name, each.position) for each in mine.cursors()] == [("mine", 2), ("theirs", 1)]
    for each in ("mine", "theirs"):
        mine.cursor(each).remove()
    assert mine.cursors() == []


def appends_anywhere(mine: zlog.Log) -> None:
    assert mine.append(b"fourth") == 3
    mine.reconfigure(width=3)
    assert mine.append(b"fifth") == 4


def ends_the_log(mine: zlog.Log) -> None:
    """By a view: the objects stay."""
    with pytest.raises(zlog.ClassNotLoaded, match="remove"):
        zlog.Log.remove(mine.store, mine.name)
    assert not is_there(mine.store, mine.name)


def delivers(mine: zlog.Log) -> None:
    """And has the deliveries of others forgotten."""
    assert mine.append_once([b"fourth"], producer="mine", sequence=0) == 1
    mine.complete_sequences("mine", before=1)
    assert {each.name for each in mine.producers()} == {"mine", "theirs"}
    for each in ("mine", "theirs"):
        mine.forget_producer(each)
    assert mine.producers() == []


def trims_what_need_not_be_kept(mine: zlog.Log) -> None:
    assert mine.apply_retention() == 1  # the cursor holds back the rest


def audits(mine: zlog.Log) -> None:
    assert list(mine.check()) == []


def repairs(mine: zlog.Log) -> None:
    assert list(mine.check(repair=True, replicas=2)) == []


def offloads(mine: zlog.Log, folder: Path) -> None:
    mine.reconfigure(width=3)
    assert [each.end for each in Offloader(mine, str(folder)).run()] == [3]
    reads(mine)


@pytest.mark.parametrize(
    ("role", "does"),
    [
        ("read", reads),
        ("read with cursors", keeps_cursors),
        ("append, with or without one", appends_anywhere),
        ("append, with or without one", ends_the_log),
        ("exactly-once append", delivers),
        ("enforce retention", trims_what_need_not_be_kept),
        ("offload", offloads),
        ("audit", audits),
        ("repair", repairs),
    ],
)
def test_caps_suffice(
    user: Callable[..., str],
    log: zlog.Log,
    role: str,
    does: Callable[..., None],
    tmp_path: Path,
) -> None:
    log.cursor("theirs", create=1)
    log.append_once([], producer="theirs", sequence=0)
    log.set_retention(zlog.Retention(entries=1))
    with zlog.connect(user(*allowed(" ".join(SETS[role])), "allow r", name="app")) as store:
        mine = zlog.Log.open(store, "orders", timeout=10)
        does(mine, tmp_path) if does is offloads else does(mine)


def test_appender_is_told_before_it_offloads_half_a_stripe(
    user: Callable[..., str], log: zlog.Log, tmp_path: Path
) -> None:
    log.roll()
    methods = " ".join(SETS["offload"] - {"freeze"})
    with zlog.connect(user(*allowed(methods), name="app")) as store:
        mine = zlog.Log.open(store, "orders", timeout=10)
        with pytest.raises(zlog.ClassNotLoaded, match="Nothing was changed"):
            next(Offloader(mine, str(tmp_path)).run())
    assert not log.view.offloads


def test_user_of_one_log_removes_nothing(user: Callable[..., str], log: zlog.Log) -> None:
    url = user(
        f"{CLASS.replace('class', 'object_prefix zlog.orders. class')}",
        f"{CLASS.replace('class', 'object_prefix zlog.directory class')} sequencer_find",
        name="app",
    )
    with zlog.connect(url) as store:
        mine = zlog.Log.open(store, "orders", timeout=10)
        with pytest.raises(zlog.ClassNotLoaded, match="Nothing was changed"):
            zlog.Log.remove(store, "orders")
        assert mine.append(b"fourth") == 3
        mine.reconfigure(width=3)
    assert [entry.data for entry in log.read_range(0)] == [*ENTRIES, b"fourth"]


def test_caps_table_is_complete() -> None:
    assert len(SETS) == 12
    assert not EVERYTHING  # no method is named: all are allowed


@pytest.mark.long
@pytest.mark.parametrize("role", SETS)
def test_caps_allow_nothing_else(user: Callable[..., str], log: zlog.Log, role: str) -> None:
    url = user(*allowed(" ".join(SETS[role])), name="app")
    assert refused(url, objects(log)) == {*METHODS} - SETS[role]


def test_user_of_one_log_creates_it_if_it_may_read_templates(user: Callable[..., str]) -> None:
    one = CLASS.replace("class", "object_prefix zlog.orders. class")
    directory = CLASS.replace("class", "object_prefix zlog.directory class")
    allowed = [one, *(f"{directory} {each}" for each in ("directory_list", "directory_add"))]
    with zlog.connect(user(CLASS, name="owner")) as store:
        set_template(store, "*", width=2)
    with zlog.connect(user(*allowed, name="app")) as store:
        with pytest.raises(zlog.ClassNotLoaded, match="templates") as refusal:
            zlog.Log.create(store, "orders")
        assert "`view_read` on the object zlog.directory/templates" in refusal.value.hint
    with zlog.connect(user(*allowed, f"{directory} view_read", name="other")) as store:
        assert zlog.Log.create(store, "orders").view.live_stripe.width == 2
