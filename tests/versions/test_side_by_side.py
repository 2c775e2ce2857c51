"""Versions side by side, under load: of the class, of clients and of sequencers."""

from __future__ import annotations

import errno
import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import zlog
from zlog.cli.commands.doctor import service, versions
from zlog.cli.commands.doctor.diagnosis import Level

from ..conformance.objects import Stripe
from ..conformance.replies import Answer, Code, State
from ..conformance.requests import Entry
from ..conformance.stored import HEADER, door_to, fields_of
from ..support.ceph import CephCluster, ClusterSpec
from ..support.sequencer import SequencerProcess
from . import newer, second
from .crowd import Crowd, packages_from

OBJECTS = 24
FILLED, WRITTEN = 5, 3
WRITER_GAVE_UP = 3
CLASS = "allow pool zlog class zlog"


@pytest.fixture(scope="module")
def second_class(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return second.build(tmp_path_factory.mktemp("second"))


@pytest.fixture(scope="module")
def newer_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return newer.install(tmp_path_factory.mktemp("newer"))


@pytest.fixture
def primaries(ceph_cluster: CephCluster) -> Iterator[Any]:
    """Moves primaries: to the OSDs that are given, and away from all others."""
    import rados

    with rados.Rados(conffile=str(ceph_cluster.conf)) as cluster:

        def command(**words: object) -> None:
            code, _, problem = cluster.mon_command(json.dumps(words), b"")
            assert code == 0, problem

        def move(*osds: int) -> None:
            for osd in range(ceph_cluster.spec.osds):
                weight = 1.0 if osd in osds else 0.0
                command(prefix="osd primary-affinity", id=osd, weight=weight)

        yield move


def restart(cluster: CephCluster, osd: int, library: Path | None) -> None:
    """Give an OSD another class, or none: it loads what lies there when it starts."""
    place = cluster.conf.parent / "classes" / "libcls_zlog.so"
    place.unlink(missing_ok=True)  # the others go on with what they have mapped
    cluster.osd("stop", osd, wait=60)
    if library is not None:
        # An OSD that has no class looks for one at each call, and dies of half a file.
        whole = place.with_suffix(".new")
        shutil.copyfile(library, whole)
        whole.replace(place)
    cluster.osd("start", osd, wait=60)


def states(stripes: list[Stripe]) -> list[State]:
    found = []
    for stripe in stripes:
        written, filled = stripe.read(1, [WRITTEN, FILLED]).value.slots
        assert written.data == b"three"
        found.append(filled.state)
    return found


def settled(stripes: list[Stripe], wanted: set[State]) -> list[State]:
    """Return the states once the primaries have moved."""
    end = time.monotonic() + 60
    while set(found := states(stripes)) != wanted:
        assert time.monotonic() < end, found
        time.sleep(0.2)
    return found


OWN = ClusterSpec("bluestore", osds=3, options=("mon_osd_down_out_interval=3600",))


@pytest.mark.long
@pytest.mark.parametrize("ceph_cluster", [OWN], indirect=True)
def test_classes_of_two_versions_serve_one_log(
    ceph_cluster: CephCluster,
    second_class: Path,
    newer_package: Path,
    primaries: Any,
    user: Callable[..., str],
    tmp_path: Path,
) -> None:
    url = user(CLASS, "allow rw pool=zlog", name="both")
    class_alone = user(CLASS, name="class")
    with (
        zlog.connect(url) as store,
        zlog.Log.create(store, "orders", width=4, stripe_unit=2) as log,
        Crowd(tmp_path) as crowd,
    ):
        crowd.add(url, "writer", "olderb")
        crowd.add(url, "writer", "newer", newer_package)
        crowd.add(f"{url}&class=never", "writer", "plain")
        crowd.add(url, "follower", "follower")
        crowd.add(url, "trimmer", "trimmer", newer_package)
        crowd.begin()
        restart(ceph_cluster, 0, None)
        stripes = [Stripe(store, f"side.{i}") for i in range(OBJECTS)]
        for stripe in stripes:
            assert stripe.seal(1).code == Code.OK
        for refused_url in (class_alone, f"{url}&class=require"):
            with zlog.connect(refused_url) as refused:
                codes = {Stripe(refused, stripe.name).stat(1).code for stripe in stripes}
            assert codes == {Code.OK, -errno.EOPNOTSUPP}
        lacking, others = versions.examine_osds(url, 10)
        assert lacking.text.startswith("no object class in osd.0")
        assert others.text.endswith(" in osd.1, osd.2")
        log.reconfigure(width=3, stripe_unit=1)
        crowd.each_appends(20)

        restart(ceph_cluster, 0, second_class)
        for stripe in stripes:
            assert stripe.write(1, [Entry(WRITTEN, 1, b"three")]).code == Code.OK
            assert stripe.fill(1, [FILLED], reason=WRITER_GAVE_UP).code == Code.OK
        older_class, newer_class = versions.examine_osds(class_alone, 10)
        assert older_class.text.endswith(" in osd.1, osd.2, older than on other OSDs")
        assert (older_class.level, newer_class.level) == (Level.WARNING, Level.OK)
        primaries(1, 2)
        older = settled(stripes, {State.FILLED, State.UNREADABLE})
        for stripe, state in zip(stripes, older, strict=True):
            refused = Answer(Code.UNREADABLE, FILLED)
            unreadable = state == State.UNREADABLE
            assert (stripe.trim(1, [FILLED]) == refused) == unreadable
            assert (stripe.put(1, FILLED, b"x").code == Code.UNREADABLE) == unreadable
            assert stripe.put(1, FILLED + 1, b"goes on").code == Code.OK
        primaries(0)
        newer_only = settled(stripes, {State.FILLED, State.TRIMMED})
        for before, after in zip(older, newer_only, strict=True):
            assert (before, after) in {
                (State.UNREADABLE, State.FILLED),
                (State.FILLED, State.TRIMMED),
            }
        primaries(0, 1, 2)
        settled(stripes, {State.FILLED, State.TRIMMED})
        log.reconfigure(width=4, stripe_unit=8)
        crowd.each_appends(20)
        crowd.finish(url)
        with zlog.connect(ceph_cluster.url(tmp_path.name)) as own, door_to(own) as door:
            # The older classes have kept the newer one's field.
            headers = [door.load(stripe.name).attrs[HEADER] for stripe in stripes]
        assert {len(fields_of(header)[0]) for header in headers} >= {192}


@pytest.mark.long
def test_sequencers_and_clients_of_two_versions_coexist(
    ceph_cluster: CephCluster, newer_package: Path, tmp_path: Path
) -> None:
    """A client appends without a sequencer that speaks another version, also beside its users."""
    with ExitStack() as stack:
        for package in (None, newer_package):
            name = "newer" if package else "older"
            url = ceph_cluster.url(f"sequencer-{name}")
            store = stack.enter_context(zlog.connect(url))
            zlog.Log.create(store, "orders", width=2, stripe_unit=2)
            with packages_from(package):
                stack.enter_context(SequencerProcess(url))
            (tmp_path / name).mkdir()
            crowd = stack.enter_context(Crowd(tmp_path / name))
            crowd.add(url, "writer", "older")
            crowd.add(url, "writer", "newer", newer_package)
            stack.callback(crowd.finish, url)
            crowd.begin()
            crowd.each_appends(3)
            found = {each.part: each for each in service.examine_logs(store, url, 10)}
            assert ("speaks protocol version 2" in found["sequencer"].text) == (package is not None)
