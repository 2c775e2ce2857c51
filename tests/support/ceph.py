"""Real Ceph clusters for tests, run by ceph-dev/cluster: started once, shared by the session.

Native daemons are used where they are installed, a container where only Docker runs. Where neither
is there the tests skip with the reason, and fail where ZLOG_REQUIRE_CEPH=1 says that they must run.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Protocol
from urllib.parse import quote

import pytest

from .programs import REPOSITORY

CLUSTER_PROGRAM = REPOSITORY / "ceph-dev" / "cluster"
REQUIRED = "ZLOG_REQUIRE_CEPH"
CHOICE = "ZLOG_TEST_CEPH"  # native, container or never: whatever is there
CLASS = "ZLOG_CLASS"
SKIP_PREFIX = "no Ceph cluster: "


@dataclass(frozen=True)
class ClusterSpec:
    """Which cluster a test wants."""

    store: str = "memstore"
    osds: int = 1
    monitors: int = 1
    cephx: bool = True
    options: tuple[str, ...] = ()  # [SECTION:]KEY=VALUE words for ceph.conf
    with_class: bool = True  # False: the OSDs refuse zlog's object class
    manager: bool = False
    gateway: bool = False  # an S3 gateway

    def __str__(self) -> str:
        return f"{self.store}-{self.osds}"

    def arguments(self) -> list[str]:
        """The words for `cluster up`."""
        words = ["--store", self.store, "--osds", str(self.osds), "--mons", str(self.monitors)]
        words += ["--cephx", "on" if self.cephx else "off"]
        for option in self.options:
            words += ["--set", option]
        if self.manager:
            words.append("--mgr")
        if self.gateway:
            words.append("--rgw")
        if not self.with_class:
            words += ["--class", "none"]  # the last one counts
        return words


class Control(Protocol):
    """Runs `ceph-dev/cluster COMMAND ...` for one cluster, and returns its stdout."""

    def __call__(self, command: str, *words: str) -> str: ...


class S3:
    """The S3 gateway of a cluster."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment  # has the same, for programs
        self.endpoint = environment["AWS_ENDPOINT_URL"]
        self.access_key = environment["AWS_ACCESS_KEY_ID"]
        self.secret_key = environment["AWS_SECRET_ACCESS_KEY"]
        self.bucket = environment["S3_BUCKET"]


class CephCluster:
    """A running cluster."""

    def __init__(self, spec: ClusterSpec, control: Control, status: dict[str, Any]) -> None:
        self.spec = spec
        self.control = control
        self.conf = Path(status["conf"])
        self.pool: str = status["pool"]
        if spec.gateway:
            self.s3 = S3(status["s3"])

    def url(self, namespace: str = "", *, plain: bool = False) -> str:
        """The store URL of a namespace in the cluster's pool; `plain`: without the class."""
        path = f"/{quote(namespace)}" if namespace else ""
        query = f"conf={quote(str(self.conf))}" + ("&class=never" if plain else "")
        return f"ceph://{quote(self.pool)}{path}?{query}"

    def osd(self, action: str, number: int, *, wait: float | None = None) -> None:
        """Kill, stop, start, freeze or thaw an OSD; `wait` seconds for the monitor to notice."""
        noticed = [] if wait is None else ["--wait", str(wait)]
        self.control("osd", action, str(number), *noticed)

    def monitor(self, action: str, name: str = "a") -> None:
        """Kill, stop, start, freeze or thaw a monitor: `a`, `b` and so on."""
        self.control("mon", action, name)

    def gateway(self, action: str) -> None:
        """Kill, stop, start, freeze or thaw the S3 gateway; `start` waits until it serves."""
        self.control("rgw", action)

    def status(self) -> dict[str, Any]:
        """What `cluster status --json` says."""
        status: dict[str, Any] = json.loads(self.control("status", "--json"))
        return status

    def pids(self) -> dict[str, int | None]:
        """The pid of each daemon, None for one that does not run."""
        return {daemon["name"]: daemon["pid"] for daemon in self.status()["daemons"]}


def ceph(cluster: CephCluster, *words: str) -> str:
    """Run `ceph` as the cluster's administrator; returns its stdout."""
    command = ["ceph", "-c", str(cluster.conf), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def with_keyring(cluster: CephCluster, keyring: Path | str, conf: Path) -> Path:
    """Write the cluster's configuration to `conf`, with another keyring; returns that path."""
    lines = cluster.conf.read_text().splitlines()
    lines = [f"keyring = {keyring}" if line.startswith("keyring") else line for line in lines]
    conf.write_text("\n".join(lines) + "\n")
    return conf


class ClusterFailed(Exception):
    """`ceph-dev/cluster` refused; the message is its stderr."""


def run_cluster_program(*words: str, program: Path = CLUSTER_PROGRAM) -> str:
    """Run ceph-dev/cluster natively. `status` of an ill cluster is an answer, not a failure."""
    done = subprocess.run(
        [sys.executable, str(program), *words], capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 3):
        raise ClusterFailed(done.stderr.strip())
    return done.stdout


class Clusters:
    """All clusters of a test session, by what they are; started when first asked for."""

    def __init__(self, new_folder: Callable[[], Path]) -> None:
        self._new_folder = new_folder
        self._shared: dict[ClusterSpec, CephCluster] = {}
        self._undo: list[Callable[[], object]] = []
        self._library: str | None = os.environ.get(CLASS)
        self._failure: Exception | None = None

    def shared(self, spec: ClusterSpec) -> CephCluster:
        """The session's cluster of this kind. Leave it as it was found."""
        if spec not in self._shared:
            self._shared[spec] = self.start(spec, self._undo)
        return self._shared[spec]

    def serving(self, url: str) -> CephCluster:
        """The shared cluster that a store URL of this session names."""
        return next(one for one in self._shared.values() if one.url().split("?")[1] in url)

    def start(self, spec: ClusterSpec, undo: list[Callable[[], object]]) -> CephCluster:
        """Start a cluster; the caller runs what is put into `undo` when done with it."""
        if self._failure is not None:  # the same again would only take the time again
            raise self._failure
        try:
            if choose() == "native":
                return self._start_native(spec, undo)
            from .container import start_container

            return start_container(spec, self._new_folder(), undo)
        except Exception as error:
            if not spec.gateway:  # its package may be the only one that is missing
                self._failure = error
            raise

    def _start_native(self, spec: ClusterSpec, undo: list[Callable[[], object]]) -> CephCluster:
        if self._library is None:
            self._library = run_cluster_program("build-class", str(self._new_folder())).strip()
        folder = self._new_folder()

        def control(command: str, *words: str) -> str:
            return run_cluster_program(command, "--dir", str(folder), *words)

        undo.append(lambda: control("down"))
        up = control("up", "--json", "--class", self._library, *spec.arguments())
        return CephCluster(spec, control, json.loads(up))

    def close(self) -> None:
        """Take all shared clusters down."""
        run_all(self._undo)


@contextmanager
def running_cluster(spec: ClusterSpec) -> Iterator[CephCluster]:
    """Run a cluster for the length of a ``with`` block, without pytest."""
    with tempfile.TemporaryDirectory(prefix="zlog-") as own:
        clusters = Clusters(lambda: Path(tempfile.mkdtemp(dir=own)))
        try:
            yield clusters.shared(spec)
        finally:
            clusters.close()


def run_all(undo: list[Callable[[], object]]) -> None:
    """Run what is to be undone, the latest first."""
    while undo:
        undo.pop()()


def choose() -> str:
    """`native` or `container`, as this machine allows; skips or fails the test if neither."""
    from .container import docker_problem

    problems = {"native": native_problem, "container": docker_problem}
    wanted = os.environ.get(CHOICE)
    if wanted == "never":
        return unavailable(f"{CHOICE}={wanted}")
    if wanted not in (None, *problems):
        pytest.fail(f"{CHOICE}={wanted}: it may be native, container or never")
    reasons = []
    for way in problems if wanted is None else [wanted]:
        problem = problems[way]()
        if problem is None:
            return way
        reasons.append(problem)
    return unavailable("; ".join(reasons))


def native_problem() -> str | None:
    """Why no daemons can be started here as processes, None if they can."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    missing = [name for name in ("ceph-mon", "ceph-osd") if not shutil.which(name, path=path)]
    return f"{' and '.join(missing)} not installed" if missing else None


def unavailable(reason: str) -> NoReturn:
    """Skip the test for want of a cluster, or fail it where Ceph is required."""
    if os.environ.get(REQUIRED) == "1":
        pytest.fail(f"{SKIP_PREFIX}{reason} ({REQUIRED}=1 forbids to skip)", pytrace=False)
    pytest.skip(f"{SKIP_PREFIX}{reason}")
