"""OSDs that are upgraded one after the other: classes of two versions under load."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import zlog

from ..conformance.objects import Stripe
from ..conformance.replies import Answer, Code, State
from ..conformance.requests import Entry
from ..conformance.stored import HEADER, door_to, fields_of
from ..support.ceph import CephCluster, ClusterSpec
from . import second

OBJECTS = 24
FILLED, WRITTEN = 5, 3
ASKED = 2


@pytest.fixture(scope="module")
def second_class(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return second.build(tmp_path_factory.mktemp("second"))


class Load:
    """Appends and reads all the time, and notes what was acknowledged and what was seen."""

    def __init__(self, url: str) -> None:
        self.acknowledged: dict[int, bytes] = {}
        self.kinds: set[zlog.GapKind] = set()
        self.failure: Exception | None = None
        self._url = url
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            with zlog.connect(self._url) as store, zlog.Log.open(store, "orders") as log:
                number = 0
                while not self._stop.is_set():
                    batch = [b"entry %d" % (number + i) for i in range(8)]
                    number += len(batch)
                    for position, entry in zip(log.append_many(batch), batch, strict=True):
                        self.acknowledged[position] = entry
                    for item in log.read_range(max(log.tail() - 16, 0), None):
                        if isinstance(item, zlog.Gap):
                            self.kinds.add(item.kind)
        except Exception as error:  # noqa: BLE001 - told by the test
            self.failure = error


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


def upgrade(cluster: CephCluster, osd: int, library: Path) -> None:
    """Give an OSD another class: it loads what lies there when it starts."""
    place = cluster.conf.parent / "classes" / "libcls_zlog.so"
    fresh = place.with_suffix(".new")
    shutil.copyfile(library, fresh)
    fresh.replace(place)  # the others go on with what they have mapped
    cluster.osd("stop", osd, wait=60)
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


@pytest.mark.parametrize("ceph_cluster", [OWN], indirect=True)
def test_classes_of_two_versions_serve_one_log(
    ceph_cluster: CephCluster, second_class: Path, primaries: Any
) -> None:
    url = ceph_cluster.url("versions")
    with zlog.connect(url) as store, zlog.Log.create(store, "orders", width=4) as log:
        stripes = [Stripe(store, f"side.{i}") for i in range(OBJECTS)]
        with Load(url) as load:
            upgrade(ceph_cluster, 0, second_class)
            for stripe in stripes:
                assert stripe.seal(1).code == Code.OK
                assert stripe.write(1, [Entry(WRITTEN, 1, b"three")]).code == Code.OK
                assert stripe.fill(1, [FILLED], reason=ASKED).code == Code.OK
            primaries(1, 2)
            older = settled(stripes, {State.FILLED, State.UNREADABLE})
            for stripe, state in zip(stripes, older, strict=True):
                refused = Answer(Code.UNREADABLE, FILLED)
                newer = state == State.UNREADABLE
                assert (stripe.trim(1, [FILLED]) == refused) == newer
                assert (stripe.put(1, FILLED, b"x").code == Code.UNREADABLE) == newer
                assert stripe.put(1, FILLED + 1, b"goes on").code == Code.OK
            primaries(0)
            newer_only = settled(stripes, {State.FILLED, State.TRIMMED})
            for before, after in zip(older, newer_only, strict=True):
                assert (before, after) in {
                    (State.UNREADABLE, State.FILLED),
                    (State.FILLED, State.TRIMMED),
                }
            upgrade(ceph_cluster, 1, second_class)
            upgrade(ceph_cluster, 2, second_class)
            primaries(0, 1, 2)
            settled(stripes, {State.FILLED, State.TRIMMED})
        assert load.failure is None, load.failure
        assert load.kinds <= {zlog.GapKind.FILLED}
        assert len(load.acknowledged) > 100
        entries = {item.position: item.data for item in log.read_range(0, None) if item}
        assert load.acknowledged.items() <= entries.items()
        assert [finding for finding in log.check() if finding.serious] == []
        with door_to(store) as door:  # the older classes have kept the newer one's field
            headers = [door.load(stripe.name).attrs[HEADER] for stripe in stripes]
        assert {len(fields_of(header)[0]) for header in headers} >= {142}
