"""The cluster: starting, restarting and stopping it, and faults."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

from . import ClusterError, object_class
from .daemon import Daemon, State, program, run, stop_all
from .gateway import Gateway
from .keyring import render_keyring
from .monitor import Monitor, RadosError, connect
from .ports import free_ports, is_free
from .settings import MANAGER, Folder, Settings, render_conf

UP_TIMEOUT = 60.0  # seconds until the whole cluster must be usable
STOP_TIMEOUT = 10.0  # seconds until a daemon that was asked to end is killed
_STATUS_TIMEOUT = 3.0
_POLL = 0.02
_PORT_TRIES = 5
_LOG_LINES_SHOWN = 10


class Process(TypedDict):
    """A daemon's process in a status."""

    name: str
    state: str
    pid: int | None


class Status(TypedDict):
    """What `status --json` prints."""

    url: str
    conf: str
    dir: str
    pool: str
    fsid: str
    store: str
    osds: int
    cephx: bool
    s3: dict[str, str]  # environment variables for clients of the gateway
    daemons: list[Process]
    osds_up: list[int] | None  # as the monitor reports it; None if it does not answer
    healthy: bool


def say(words: str) -> None:
    """Print a message on stderr, since stdout is only for results."""
    sys.stderr.write(words + "\n")


class Cluster:
    """A cluster in its folder, running or not.

    `up` creates the folder and everything in it, `restart` and `start` use it again, and `down`
    ends the processes and removes it. A lock file makes commands on the same folder wait for each
    other.
    """

    def __init__(self, path: Path) -> None:
        self.folder = Folder(path.resolve())

    def exists(self) -> bool:
        """Return whether the folder has a cluster, running or not."""
        return self.folder.settings.exists()

    def settings(self) -> Settings:
        """The settings of the cluster. Raises ClusterError if it does not exist."""
        if not self.exists():
            raise ClusterError(f"no cluster in {self.folder.path}: start one with `up`")
        return Settings.load(self.folder.settings)

    def url(self) -> str:
        """The store URL of the cluster's pool."""
        return self.folder.url(self.settings().pool)

    def monitors(self) -> list[Daemon]:
        """The monitors' daemons."""
        return [Daemon(self.folder, "mon", name) for name in self.settings().monitor_addresses()]

    def monitor(self, name: str) -> Daemon:
        """Return the daemon of a monitor. Raises ClusterError if no monitor has this name."""
        for daemon in self.monitors():
            if daemon.id == name:
                return daemon
        raise ClusterError(f"there is no mon.{name}: the cluster has {len(self.monitors())}")

    def osd(self, number: int) -> Daemon:
        """Return the daemon of OSD `number`. Raises ClusterError if it does not exist."""
        count = self.settings().osds
        if not 0 <= number < count:
            raise ClusterError(f"there is no osd.{number}: the cluster has {count}, from 0")
        return Daemon(self.folder, "osd", str(number))

    def osds(self) -> list[Daemon]:
        """The daemons of all OSDs."""
        return [self.osd(number) for number in range(self.settings().osds)]

    def manager(self) -> list[Daemon]:
        """The manager's daemon, if the cluster has one."""
        return [Daemon(self.folder, "mgr", MANAGER)] if self.settings().manager else []

    def gateway(self) -> list[Gateway]:
        """The S3 gateway's daemon, if the cluster has one."""
        settings = self.settings()
        gateway = Gateway(self.folder, "client", "rgw", settings.address, settings.ports[-1])
        return [gateway] if settings.gateway else []

    def daemons(self) -> list[Daemon]:
        """All daemons, the monitors first."""
        return [*self.monitors(), *self.manager(), *self.osds(), *self.gateway()]

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Make other commands on this folder wait. The lock ends with the process."""
        path = self.folder.path / "lock"
        while True:
            self.folder.path.mkdir(parents=True, exist_ok=True)
            with path.open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                # Its former holder may have removed it with the folder, and then it protects
                # nothing.
                if _is_at(path, lock.fileno()):
                    yield
                    return

    def up(self, wanted: Settings) -> None:
        """Create the cluster, or start the existing one if it has the same settings.

        If a new cluster fails, no process is left running. The folder stays because of its logs.
        """
        if self.exists():
            if not self.settings().same_request(wanted):
                raise ClusterError(
                    f"{self.folder.path} holds a cluster with other settings: "
                    "end it with `down`, or choose another --dir"
                )
            self.start()
            return
        # The daemons are in Ceph's packages: fail before anything is created.
        manager = ("ceph-mgr",) if wanted.manager else ()
        gateway = ("radosgw",) if wanted.gateway else ()
        for name in ("ceph-mon", "ceph-osd", "monmaptool", *manager, *gateway):
            program(name)
        try:
            self._make(wanted)
        except BaseException:
            if self.exists():
                self._kill_all()
                self.folder.settings.unlink()
            raise

    def _make(self, wanted: Settings) -> None:
        folder = self.folder
        foreign = [p.name for p in folder.path.iterdir() if p not in folder.contents()]
        if foreign:
            raise ClusterError(f"{folder.path} is not empty ({foreign[0]}): choose another --dir")
        for path in folder.contents():
            if path.is_dir():
                shutil.rmtree(path)
        folder.s3.unlink(missing_ok=True)
        folder.make()
        library = self._class_library(wanted)
        object_class.fill_class_folder(folder, library)

        folder.keyring.touch(mode=0o600)
        folder.keyring.write_text(render_keyring(self._entities(wanted)))
        self._start_new_monitors(replace(wanted, fsid=str(uuid.uuid4())))
        self._start_manager()
        self._start_new_osds()
        with self._connect(UP_TIMEOUT) as monitor:
            self._make_pool(monitor)
            self._wait_usable(monitor)

    def _class_library(self, wanted: Settings) -> Path | None:
        if wanted.object_class == object_class.NO_CLASS:
            return None
        if wanted.object_class is not None:
            library = Path(wanted.object_class)
            if not library.is_file():
                raise ClusterError(f"there is no object class at {library}")
            return library
        say("building the object class")
        return object_class.build(object_class.TREE)

    @staticmethod
    def _entities(settings: Settings) -> list[str]:
        others = [f"mgr.{MANAGER}"] if settings.manager else []
        others += ["client.rgw"] if settings.gateway else []
        return ["mon.", "client.admin", *others, *(f"osd.{n}" for n in range(settings.osds))]

    def _start_new_monitors(self, wanted: Settings) -> None:
        """Create and start the monitors, on other ports if one was taken in the meantime."""
        for last in (False,) * (_PORT_TRIES - 1) + (True,):
            ports = free_ports(wanted.address, wanted.monitors + wanted.gateway)
            settings = replace(wanted, ports=ports)
            with_class = settings.object_class != object_class.NO_CLASS
            conf = render_conf(settings, self.folder, object_class.class_list(with_class))
            self.folder.conf.write_text(conf)
            settings.save(self.folder.settings)
            self._make_monmap(settings)
            monmap = ("--monmap", str(self.folder.path / "monmap"))
            try:
                for daemon in self.monitors():
                    daemon.mkfs(*monmap, "--keyring", str(self.folder.keyring))
                    daemon.start()
                return
            except ClusterError:
                taken = any(
                    daemon.state() is State.STOPPED and not is_free(settings.address, port)
                    for daemon, port in zip(self.monitors(), ports, strict=False)
                )
                for daemon in self.monitors():
                    daemon.kill()
                if last or not taken:
                    raise
                shutil.rmtree(self.folder.path / "data")

    def _start_manager(self) -> None:
        for daemon in self.manager():
            self.folder.data(daemon.name).mkdir(parents=True, exist_ok=True)
            daemon.start()

    def _make_monmap(self, settings: Settings) -> None:
        path = self.folder.path / "monmap"
        path.unlink(missing_ok=True)
        command = [program("monmaptool"), "--create", "--fsid", settings.fsid]
        for name, address in settings.monitor_addresses().items():
            command += ["--addv", name, address]
        run([*command, str(path)], "monmaptool")

    def _start_new_osds(self) -> None:
        """Create the OSDs while they are registered with the monitor, then start all at once."""
        settings = self.settings()
        ids = {number: str(uuid.uuid4()) for number in range(settings.osds)}

        def make(number: int) -> None:
            self.osd(number).mkfs("--no-mon-config", "--osd-uuid", ids[number])

        def announce() -> None:
            with self._connect(UP_TIMEOUT) as monitor:
                _have_objects_copied_whole(monitor)
                for number, osd_uuid in ids.items():
                    monitor.command("osd create", id=number, uuid=osd_uuid)

        def start(number: int, made: Future[None]) -> None:
            made.result()
            self.osd(number).start()

        with ThreadPoolExecutor(max_workers=settings.osds + 1) as pool:
            announced = pool.submit(announce)
            made = {number: pool.submit(make, number) for number in ids}
            announced.result()
            started = [pool.submit(start, number, made[number]) for number in ids]
            for one in started:
                one.result()

    def _make_pool(self, monitor: Monitor) -> None:
        settings = self.settings()
        monitor.command("osd pool create", pool=settings.pool, pg_num=settings.pgs)
        monitor.command("osd pool application enable", pool=settings.pool, app="zlog")

    def _connect(self, timeout: float) -> contextlib.AbstractContextManager[Monitor]:
        return connect(self.folder.conf, timeout)

    def wait_up(self, number: int, *, up: bool, timeout: float) -> None:
        """Wait until the monitor reports that OSD `number` is up (or down)."""
        state = "up" if up else "down"
        with self._connect(timeout) as monitor:
            self._wait_for(
                lambda: (number in _osds_up(monitor)) == up,
                timeout,
                f"osd.{number} is not {state} after {timeout:g} s",
            )

    def _wait_usable(self, monitor: Monitor) -> None:
        """Wait until all OSDs are up, the pool serves, and the class and the gateway answer."""
        settings = self.settings()
        everyone = set(range(settings.osds))
        self._wait_for(
            lambda: _osds_up(monitor) == everyone,
            UP_TIMEOUT,
            f"not all OSDs are up after {UP_TIMEOUT:g} s",
        )
        if settings.manager:
            self._wait_for(
                lambda: monitor.command("mgr stat")["available"],
                UP_TIMEOUT,
                f"the manager does not serve after {UP_TIMEOUT:g} s",
            )
        monitor.touch_every_pg(settings.pool)
        if settings.object_class != object_class.NO_CLASS:
            self._check_class(monitor)
        for gateway in self.gateway():
            gateway.set_up(monitor, settings.osds)

    def _check_class(self, monitor: Monitor) -> None:
        """Check that OSDs can load the class: a read of a missing object then returns ENOENT."""
        pool, name = self.settings().pool, object_class.CLASS
        code = monitor.class_call_code(pool, "cluster.probe", name, "epoch_read")
        if code == -errno.ENOENT or code >= 0:
            return
        logs = [self.folder.log(daemon.name).read_text(errors="replace") for daemon in self.osds()]
        words = [line for log in logs for line in log.splitlines() if object_class.LIBRARY in line]
        raise ClusterError(
            f"the OSDs can't load the object class {name} ({os.strerror(-code)}):\n"
            + "\n".join(words[-_LOG_LINES_SHOWN:])
        )

    def _wait_for(self, reached: Callable[[], bool], timeout: float, failure: str) -> None:
        deadline = time.monotonic() + timeout
        while not reached():
            if time.monotonic() > deadline:
                raise ClusterError(failure)
            time.sleep(_POLL)

    def start(self) -> None:
        """Start all daemons that do not run, and wait until the cluster is usable."""
        for daemon in self.daemons():
            if daemon.state() is State.FROZEN:
                raise ClusterError(f"{daemon.name} is frozen: thaw it first")
        for daemon in self.monitors():
            daemon.start()
        self._start_manager()
        with ThreadPoolExecutor(max_workers=8) as pool:
            list(pool.map(Daemon.start, self.osds()))
        with self._connect(UP_TIMEOUT) as monitor:
            self._wait_usable(monitor)

    def stop(self) -> None:
        """End all processes cleanly, the gateway first, the monitors last. The data stays."""
        stop_all(self.gateway(), STOP_TIMEOUT)
        stop_all([*self.manager(), *self.osds()], STOP_TIMEOUT)
        stop_all(self.monitors(), STOP_TIMEOUT)

    def down(self) -> None:
        """Kill all processes and remove the files of the cluster, if it exists."""
        if self.exists():
            self._kill_all()
        for path in self.folder.contents():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # it has other files, or is a mount
            self.folder.path.rmdir()

    def _kill_all(self) -> None:
        for daemon in self.daemons():
            daemon.kill()

    def status(self) -> Status:
        """Return the settings, the daemons' processes, and which OSDs the monitor reports as up."""
        settings = self.settings()
        processes = [
            Process(name=one.name, state=one.state().value, pid=one.pid()) for one in self.daemons()
        ]
        up: list[int] | None = None
        if any(each.state() is State.RUNNING for each in self.monitors()):
            with contextlib.suppress(RadosError), self._connect(_STATUS_TIMEOUT) as monitor:
                up = sorted(_osds_up(monitor))
        running = all(one["state"] == State.RUNNING.value for one in processes)
        return Status(
            url=self.url(),
            conf=str(self.folder.conf),
            dir=str(self.folder.path),
            pool=settings.pool,
            fsid=settings.fsid,
            store=settings.store,
            osds=settings.osds,
            cephx=settings.cephx,
            s3=self.folder.read_s3(),
            daemons=processes,
            osds_up=up,
            healthy=running and up == list(range(settings.osds)),
        )


def _have_objects_copied_whole(monitor: Monitor) -> None:
    """Set what keeps OSDs from losing writes in recovery (docs/operating.md).

    It is set in the monitor, so that `zlog doctor` finds it. ceph.conf, and so `--set`, takes
    precedence.
    """
    option = "osd_object_clean_region_max_num_intervals"
    try:
        monitor.command("config set", who="osd", name=option, value="0")
    except RadosError as error:
        if error.errno != errno.EINVAL:  # a release without this option
            raise


def _osds_up(monitor: Monitor) -> set[int]:
    return {osd["osd"] for osd in monitor.command("osd dump")["osds"] if osd["up"]}


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
