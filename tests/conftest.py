"""Fixtures for all suites: stores on every host, and real Ceph clusters.

`store_url` runs a test on every host. `ceph_cluster` gives a running cluster; another kind by

    @pytest.mark.parametrize("ceph_cluster", [ClusterSpec("bluestore", osds=3)], indirect=True)

Both are shared by the session, so a test leaves them as it found them. A test that breaks its
cluster takes one of its own from `new_ceph_cluster`.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from hypothesis.internal.conjecture import engine
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from .support.ceph import (
    SKIP_PREFIX,
    CephCluster,
    Clusters,
    ClusterSpec,
    ceph,
    run_all,
    with_keyring,
)
from .support.stores import STORES, url_of

if TYPE_CHECKING:
    import zlog

SPARK = "tests/spark/"
SLOW_FILES = (
    "faults/test_faults.py",
    "web/test_protocol.py",
    "client/test_bounds.py",
    "docs/test_tutorial.py",
    "console/test_positions.py",
    "console/test_logs.py",
    "client/test_check.py",
    "console/test_process.py",
    "console/test_pictures.py",
    "bench/test_loads.py",
    "sim/test_simulation.py",
    "console/test_entries.py",
    "system/test_caps.py",
    "system/test_spool_killed.py",
    "cli/test_doctor_ceph.py",
    "conformance/test_limits.py",
    "console/test_tail.py",
    "cls/test_cls.py",
    "system/test_failover.py",
    "conformance/test_stripe_stateful.py",
    "native/test_rados_lock.py",
)
"""Each takes half a minute or more, about the longest first; before them come Spark's."""


SHRINK_SECONDS = 20
"""Seconds in which hypothesis makes a failing example smaller. It takes up to five minutes unless
told otherwise, which no public setting does."""


def pytest_configure() -> None:
    """Bound how long a failing property test takes to report."""
    assert engine.MAX_SHRINKING_SECONDS >= SHRINK_SECONDS  # hypothesis still has this limit
    engine.MAX_SHRINKING_SECONDS = SHRINK_SECONDS


class _Scheduling(LoadFileScheduling):
    """Each file to one worker, and all of Spark's to the same one, which starts a JVM once."""

    def _split_scope(self, nodeid: str) -> str:
        return SPARK if nodeid.startswith(SPARK) else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> _Scheduling:
    return _Scheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest: one that comes last is what all workers wait for."""
    here = Path(__file__).parent
    ranks = {here / name: rank for rank, name in enumerate(SLOW_FILES)}
    items.sort(
        key=lambda item: -1 if item.nodeid.startswith(SPARK) else ranks.get(item.path, len(ranks))
    )


@pytest.fixture(scope="session", autouse=True)
def _elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Run in an empty folder: examples of the documentation write files where they run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("elsewhere"))
        yield


@pytest.fixture(autouse=True)
def _interruptible() -> None:
    """Heed SIGINT and SIGHUP, which tests send, even if the shell or nohup had them ignored.

    For each test again, since a uvloop that took the signal keeps it when it is closed.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def _no_word_of_slow_callbacks() -> None:
    """What asyncio's debug mode warns of on a busy machine; its errors remain."""
    logging.getLogger("asyncio").setLevel(logging.ERROR)


@pytest.fixture
async def thousands_of_tasks() -> None:
    """asyncio's debug mode is off: it takes ten times as long to make a task."""
    asyncio.get_running_loop().set_debug(False)


@pytest.fixture(scope="session")
def ceph_clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    """All clusters of the session."""
    # Short names: the daemons' sockets lie in there, and a socket's path has 107 bytes.
    clusters = Clusters(lambda: tmp_path_factory.mktemp("ceph"))
    yield clusters
    clusters.close()


@pytest.fixture
def ceph_cluster(request: pytest.FixtureRequest, ceph_clusters: Clusters) -> CephCluster:
    """A running cluster, shared by the session: one OSD on memstore, or the ClusterSpec given."""
    return ceph_clusters.shared(getattr(request, "param", ClusterSpec()))


@pytest.fixture
def s3_cluster(ceph_clusters: Clusters, monkeypatch: pytest.MonkeyPatch) -> Iterator[CephCluster]:
    """A cluster with an S3 gateway, shared by the session; a test may stop the gateway.

    Its data is erasure-coded. The environment has its endpoint and keys.
    """
    cluster = ceph_clusters.shared(ClusterSpec(osds=3, gateway=True))
    for name, value in cluster.s3.environment.items():
        monkeypatch.setenv(name, value)
    yield cluster
    cluster.gateway("start")
    cluster.gateway("thaw")


@pytest.fixture
def new_ceph_cluster(ceph_clusters: Clusters) -> Iterator[Callable[[ClusterSpec], CephCluster]]:
    """Makes clusters that belong to the test alone, to be broken at will."""
    undo: list[Callable[[], object]] = []
    yield lambda spec: ceph_clusters.start(spec, undo)
    run_all(undo)


@pytest.fixture(params=STORES)
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store, on every host in turn; on Ceph a fresh namespace."""
    return url_of(request, tmp_path)


@pytest.fixture
def host(store_url: str) -> str:
    """What kind of store the test runs on: `mem`, `file` or `ceph`."""
    return urlsplit(store_url).scheme


@pytest.fixture
def store(store_url: str) -> Iterator[zlog.Store]:
    """An open, empty store, on every host in turn."""
    import zlog

    with zlog.connect(store_url) as opened:
        yield opened


@pytest.fixture
def memory() -> Iterator[zlog.Store]:
    """A store in memory, for tests that are not about its host."""
    import zlog

    with zlog.connect("mem://") as opened:
        yield opened


@pytest.fixture
def user(
    ceph_cluster: CephCluster, tmp_path: Path, request: pytest.FixtureRequest
) -> Callable[..., str]:
    """Makes users with OSD caps of the test's choice; returns the URL of a store as such a user.

    All users of a test share one namespace.
    """

    def make(*caps: str, name: str = "seqr") -> str:
        client = f"{name}-{tmp_path.name}"
        keyring = tmp_path / f"{name}.keyring"
        words = ["mon", "allow r", "osd", ", ".join(caps), "-o", str(keyring)]
        ceph(ceph_cluster, "auth", "get-or-create", f"client.{client}", *words)
        request.addfinalizer(lambda: ceph(ceph_cluster, "auth", "rm", f"client.{client}"))
        conf = with_keyring(ceph_cluster, keyring, tmp_path / f"{name}.conf")
        return f"ceph://{ceph_cluster.pool}/{tmp_path.name}?conf={conf}&id={client}"

    return make


@pytest.fixture
def daemons_stay_up(request: pytest.FixtureRequest, store_url: str) -> Iterator[None]:
    """On Ceph: fails the test unless the cluster's daemons are the same processes afterwards."""
    if not store_url.startswith("ceph://"):
        yield
        return
    clusters: Clusters = request.getfixturevalue("ceph_clusters")
    cluster = clusters.serving(store_url)
    before = cluster.pids()
    yield
    assert cluster.pids() == before
    assert cluster.status()["healthy"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say at the end, where it can't be missed, that tests did not run on Ceph."""
    reasons = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", [])]
    wanting = sorted(reason for reason in reasons if SKIP_PREFIX in reason)
    for reason, group in itertools.groupby(wanting):
        count = len(list(group))
        terminalreporter.section("CEPH WAS NOT TESTED", sep="!", red=True, bold=True)
        terminalreporter.line(f"{count} tests skipped: {reason.removeprefix('Skipped: ')}")
