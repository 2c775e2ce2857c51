"""The settings of a cluster, the files in its folder, and its ceph.conf."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import quote

from . import ClusterError

STORES = ("memstore", "bluestore")
MANAGER = "x"
GIB = 1 << 30

# A UNIX socket's address has up to 107 bytes. Our longest socket name is `run/osd.NNN.asok`.
_FOLDER_BYTES_MAX = 107 - len("/run/osd.999.asok")


@dataclass(frozen=True)
class Settings:
    """The settings that `up` was called with. The cluster's folder has them for later commands."""

    fsid: str
    ports: list[int]
    monitors: int = 1
    osds: int = 1
    store: str = "memstore"
    cephx: bool = True
    pool: str = "zlog"
    size: int = 1
    pgs: int = 32
    osd_bytes: int = 16 * GIB
    address: str = "127.0.0.1"
    object_class: str | None = None
    manager: bool = False
    gateway: bool = False
    options: dict[str, dict[str, str]] = field(default_factory=dict)

    def same_request(self, other: Settings) -> bool:
        """Return whether two settings are equal, except for what `up` chooses itself."""
        chosen = {"fsid": "", "ports": []}
        return asdict(self) | chosen == asdict(other) | chosen

    def monitor_addresses(self) -> dict[str, str]:
        """Return the address of each monitor by its name, which is `a`, `b` and so on."""
        names = map(chr, range(ord("a"), ord("a") + self.monitors))
        return {
            name: f"[v2:{self.address}:{port}]"
            for name, port in zip(names, self.ports[: self.monitors], strict=True)
        }

    def save(self, path: Path) -> None:
        """Write the settings to `path`, completely or not at all."""
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(asdict(self), indent=2) + "\n")
        temporary.replace(path)

    @staticmethod
    def load(path: Path) -> Settings:
        """Read a file that `save` wrote. Raises ClusterError if it is invalid."""
        try:
            return Settings(**json.loads(path.read_text()))
        except (ValueError, TypeError) as error:
            raise ClusterError(f"{path} is damaged ({error}); remove the folder by hand") from error


@dataclass(frozen=True)
class Folder:
    """The paths in a cluster's own folder. Nothing is written outside of it."""

    path: Path

    def __post_init__(self) -> None:
        if len(str(self.path).encode()) > _FOLDER_BYTES_MAX:
            raise ClusterError(
                f"{self.path} is too long for the daemons' sockets: "
                f"choose a --dir of at most {_FOLDER_BYTES_MAX} bytes"
            )

    @property
    def settings(self) -> Path:
        """The settings. The cluster exists as long as this file exists."""
        return self.path / "cluster.json"

    @property
    def conf(self) -> Path:
        """The ceph.conf for daemons and clients."""
        return self.path / "ceph.conf"

    @property
    def keyring(self) -> Path:
        """The keys of all daemons and of client.admin."""
        return self.path / "keyring"

    @property
    def s3(self) -> Path:
        """The variables with which a shell gives programs access to the S3 gateway."""
        return self.path / "s3.env"

    def read_s3(self) -> dict[str, str]:
        """Return the variables in `s3`, or none if it does not exist."""
        lines = self.s3.read_text().splitlines() if self.s3.exists() else []
        return dict(line.removeprefix("export ").partition("=")[::2] for line in lines)

    @property
    def classes(self) -> Path:
        """The folder of object classes that the OSDs load."""
        return self.path / "classes"

    def data(self, name: str) -> Path:
        """The data directory of daemon `name` (`mon.a`, `osd.0`)."""
        return self.path / "data" / name

    def log(self, name: str) -> Path:
        """The log of daemon `name`."""
        return self.path / "log" / f"{name}.log"

    def pid(self, name: str) -> Path:
        """The pid file of daemon `name`."""
        return self.path / "run" / f"{name}.pid"

    def make(self) -> None:
        """Create the folder and the folders in it that the daemons need."""
        for name in ("data", "log", "run", "crash"):
            (self.path / name).mkdir(parents=True, exist_ok=True)

    def contents(self) -> list[Path]:
        """Return everything that a cluster leaves in its folder: all that `down` may remove."""
        names = ("data", "log", "run", "crash", "classes", "monmap", "lock", "s3.env")
        return [self.path / name for name in names] + [self.keyring, self.conf, self.settings]

    def url(self, pool: str) -> str:
        """The store URL of a pool of this cluster."""
        return f"ceph://{quote(pool)}?conf={quote(str(self.conf))}"


def render_conf(settings: Settings, folder: Folder, class_list: str) -> str:
    """Return the text of ceph.conf. `class_list` has the object classes that OSDs may load.

    It has only values for which Ceph's default is wrong for a cluster on one machine.
    """
    root = folder.path
    auth = "cephx" if settings.cephx else "none"
    # An OSD without peers that was frozen for longer than the read leases of its placement groups
    # does not always check them again, and then answers no operation until it is restarted. A lease
    # protects nothing without a second copy, so it lasts for an hour.
    read_lease_ratio = "0.8" if settings.size > 1 else "1200"
    sections: dict[str, dict[str, str]] = {
        "global": {
            "fsid": settings.fsid,
            "mon host": ",".join(settings.monitor_addresses().values()),
            "public addr": settings.address,
            "ms bind msgr1": "false",
            "auth cluster required": auth,
            "auth service required": auth,
            "auth client required": auth,
            "keyring": str(folder.keyring),
            "run dir": str(root / "run"),
            "pid file": str(root / "run" / "$name.pid"),
            "log file": str(root / "log" / "$name.log"),
            "crash dir": str(root / "crash"),
            # One host has all replicas, and pools do not change after their creation.
            "osd crush chooseleaf type": "0",
            "osd pool default pg autoscale mode": "off",
            "osd pool default size": str(settings.size),
            # Detect a dead or frozen OSD within seconds. The monitor must also know the grace
            # period.
            "osd heartbeat interval": "1",
            "osd heartbeat grace": "3",
            "osd pool default read lease ratio": read_lease_ratio,
        },
        "mon": {
            "mon data": str(root / "data" / "$name"),
            "mon cluster log file": str(root / "log" / "cluster.log"),
            "mon allow pool delete": "true",
            "mon allow pool size one": "true",
            "mon warn on pool no redundancy": "false",
            "mon warn on insecure global id reclaim allowed": "false",
            # A developer's disk is often nearly full, and by default the monitor stops at 95 %.
            "mon data avail warn": "2",
            "mon data avail crit": "1",
            # Commit changes of the maps at once. By default they are collected for a second.
            "paxos propose interval": "0.05",
            "paxos min wait": "0.01",
            # The manager's built-in modules are enough. It takes seconds to load the others.
            "mgr initial modules": "",
            # Believe a single OSD on the same host that reports another one as dead.
            "mon osd min down reporters": "1",
            "mon osd reporter subtree level": "osd",
            "mon osd adjust heartbeat grace": "false",
        },
        "mgr": {
            "mgr data": str(root / "data" / "$name"),
        },
        "osd": {
            "osd data": str(root / "data" / "$name"),
            "osd objectstore": settings.store,
            "osd class dir": str(folder.classes),
            "osd class load list": class_list,
            "osd class default list": class_list,
            "osd memory target": str(GIB),
            # A memstore saves its contents in its folder at a clean stop, unless that is a fast
            # one.
            "osd fast shutdown": "false" if settings.store == "memstore" else "true",
            "memstore device bytes": str(settings.osd_bytes),
            "bluestore block size": str(settings.osd_bytes),
            # Closing the device waits for such an interval (250 ms) about twelve times during a
            # start.
            "bdev aio poll ms": "10",
            "bluestore fsck on mkfs": "false",
            # Since Quincy, an OSD measures its disk for half a minute at the first start.
            "osd mclock skip benchmark": "true",
        },
        "client": {
            # By default, the clients' admin socket and log are in /var.
            "admin socket": "",
            "log file": "",
            "pid file": "",
        },
    }
    if settings.gateway:
        sections["mon"]["osd pool default pg num"] = "1"  # for pools that the gateway creates
        sections["client.rgw"] = {
            "log file": str(root / "log" / "$name.log"),
            "rgw frontends": f"beast endpoint={settings.address}:{settings.ports[-1]}",
            "rgw thread pool size": "32",
            # With a cache, changes of users and buckets wait half a minute for a gateway that was
            # killed, because it had asked for notifications.
            "rgw cache enabled": "false",
        }
    for daemons in ("mon", "mgr", "osd"):
        sections[daemons]["admin socket"] = str(root / "run" / "$name.asok")
    for section, options in settings.options.items():
        # Ceph treats `a b`, `a_b` and `a-b` as one option, and the last one takes effect.
        sections.setdefault(section, {}).update(options)
    return "\n".join(
        f"[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in options.items())
        for name, options in sections.items()
    )


def parse_options(words: Iterable[str]) -> dict[str, dict[str, str]]:
    """Parse `[SECTION:]KEY=VALUE` words into options by section. The default section is `global`.

    Raises ClusterError for a word of another form.
    """
    options: dict[str, dict[str, str]] = {}
    for word in words:
        name, equals, value = word.partition("=")
        section, colon, key = name.rpartition(":")
        if not equals or not key.strip() or (colon and not section.strip()):
            raise ClusterError(f"--set {word!r}: expected [SECTION:]KEY=VALUE")
        option = key.strip().replace("_", " ").replace("-", " ")
        options.setdefault(section.strip() or "global", {})[option] = value.strip()
    return options


def parse_bytes(text: str) -> int:
    """Parse a size like `512M`, `16G` or `1073741824`. Raises ValueError for anything else."""
    units: Mapping[str, int] = {"K": 1 << 10, "M": 1 << 20, "G": GIB, "T": 1 << 40}
    unit = units.get(text[-1:].upper())
    return int(text) if unit is None else int(text[:-1]) * unit
