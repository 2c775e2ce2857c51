"""The command line of the development cluster. Results are printed on stdout."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from . import ClusterError, object_class
from .cluster import STOP_TIMEOUT, Cluster, Status, say
from .daemon import Daemon, State
from .settings import GIB, STORES, Settings, parse_bytes, parse_options

DEFAULT_DIR = Path(__file__).resolve().parents[1] / "run" / "default"
_MONITORS_MAX = 9
UNHEALTHY = 3  # the exit code of `status` if something is down, as for systemctl

DESCRIPTION = """\
A real Ceph cluster for development and tests: monitors and OSDs as plain processes, with their
own folder and ports, and zlog's object class loaded. Several run side by side, each in its --dir.
"""
EXAMPLES = """\
examples:
  cluster up                                    one OSD in memory; prints the store URL
  cluster up --osds 3 --store bluestore         three, each on a sparse file
  cluster up --dir /tmp/b --cephx off --set osd:osd_max_write_size=10
  cluster osd kill 1                            SIGKILL, as a crash would; memstore's data is gone
  cluster osd start 1                           and back again
  CEPH_CONF=$(cluster status --json | jq -r .conf) ceph -s
  cluster down
"""


def _parser() -> argparse.ArgumentParser:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="cluster", description=DESCRIPTION, epilog=EXAMPLES, formatter_class=formatter
    )
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--dir",
        type=Path,
        default=Path(os.environ.get("ZLOG_CEPH_DIR") or DEFAULT_DIR),
        help="the cluster's own folder ($ZLOG_CEPH_DIR, else %(default)s)",
    )
    common.add_argument("--json", action="store_true", help="print one JSON object")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    up = commands.add_parser("up", parents=[common], help="start a cluster, print its URL")
    _add_up_options(up)
    down = commands.add_parser("down", parents=[common], help="stop the cluster, remove its folder")
    down.add_argument("--keep", action="store_true", help="stop cleanly and keep the data")
    commands.add_parser(
        "status", parents=[common], help=f"show its state; exit {UNHEALTHY} if unhealthy"
    )
    commands.add_parser("restart", parents=[common], help="stop all daemons and start them again")

    build = commands.add_parser("build-class", help="build the object class, print its path")
    build.add_argument("tree", type=Path, help="the folder to build it in")

    osd = commands.add_parser("osd", parents=[common], help="make one OSD fail, or repair it")
    osd.add_argument("action", choices=ACTIONS)
    osd.add_argument("number", type=int, help="which OSD, from 0")
    osd.add_argument(
        "--wait", type=float, metavar="SECONDS", help="wait until the monitor has noticed"
    )
    mon = commands.add_parser("mon", parents=[common], help="make a monitor fail, or repair it")
    mon.add_argument("action", choices=ACTIONS)
    mon.add_argument("name", nargs="?", default="a", help="which monitor (%(default)s)")
    rgw = commands.add_parser("rgw", parents=[common], help="make the gateway fail, or repair it")
    rgw.add_argument("action", choices=ACTIONS)
    return parser


def _add_up_options(up: argparse.ArgumentParser) -> None:
    up.add_argument("--osds", type=int, default=1, help="how many OSDs (%(default)s)")
    up.add_argument("--mons", type=int, default=1, help="how many monitors (%(default)s)")
    up.add_argument("--store", choices=STORES, default="memstore", help="%(default)s by default")
    up.add_argument("--cephx", choices=("on", "off"), default="on", help="authentication")
    up.add_argument("--pool", default="zlog", help="the pool to create (%(default)s)")
    up.add_argument("--size", type=int, help="replicas in the pool (one per OSD, up to 3)")
    up.add_argument("--pgs", type=int, default=32, help="placement groups (%(default)s)")
    up.add_argument(
        "--osd-bytes",
        type=parse_bytes,
        default=16 * GIB,
        metavar="SIZE",
        help="maximum space of each OSD (16G)",
    )
    up.add_argument("--address", default="127.0.0.1", help="where to listen (%(default)s)")
    up.add_argument(
        "--class",
        dest="object_class",
        metavar="PATH",
        default=os.environ.get("ZLOG_CLASS"),
        help=f"{object_class.LIBRARY} to load ($ZLOG_CLASS); built from this repository if not "
        f"given; `{object_class.NO_CLASS}` for a cluster without it",
    )
    up.add_argument(
        "--mgr",
        dest="manager",
        action="store_true",
        help="also run a manager, for services and statistics",
    )
    up.add_argument("--rgw", dest="gateway", action="store_true", help="also run an S3 gateway")
    up.add_argument(
        "--set",
        dest="options",
        action="append",
        default=[],
        metavar="[SECTION:]KEY=VALUE",
        help="an option for ceph.conf; may be repeated",
    )
    up.add_argument(
        "--foreground", action="store_true", help="run until SIGTERM or Ctrl-C, then `down`"
    )


def _settings(arguments: argparse.Namespace) -> Settings:
    if arguments.osds < 1:
        raise ClusterError("--osds: a cluster has at least one")
    if not 1 <= arguments.mons <= _MONITORS_MAX:
        raise ClusterError(f"--mons: a cluster has 1 to {_MONITORS_MAX}")
    size = arguments.size or min(arguments.osds, 3)
    if not 1 <= size <= arguments.osds:
        raise ClusterError(f"--size {size}: one machine of {arguments.osds} OSDs can't hold it")
    chosen = arguments.object_class
    if chosen not in (None, object_class.NO_CLASS):
        chosen = str(Path(chosen).resolve())
    return Settings(
        fsid="",
        ports=[],
        monitors=arguments.mons,
        osds=arguments.osds,
        store=arguments.store,
        cephx=arguments.cephx == "on",
        pool=arguments.pool,
        size=size,
        pgs=arguments.pgs,
        osd_bytes=arguments.osd_bytes,
        address=arguments.address,
        object_class=chosen,
        manager=arguments.manager,
        gateway=arguments.gateway,
        options=parse_options(arguments.options),
    )


def _up(cluster: Cluster, arguments: argparse.Namespace) -> int:
    begin = time.monotonic()
    with cluster.locked():
        cluster.up(_settings(arguments))
        settings = cluster.settings()
        say(
            f"{settings.osds} {settings.store} OSD{'s' * (settings.osds > 1)} up in "
            f"{time.monotonic() - begin:.1f} s; folder {cluster.folder.path}"
        )
        if settings.gateway:
            say(f"for clients of the S3 gateway: . {cluster.folder.s3}")
        _print(json.dumps(cluster.status()) if arguments.json else cluster.url())
    return _stay(cluster) if arguments.foreground else 0


def _stay(cluster: Cluster) -> int:
    """Wait for SIGINT or SIGTERM, then take the cluster down.

    Daemons that die in the meantime are reaped: as process 1 of a container, this process inherits
        them.
    """
    ends = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    waited = ends | {signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    while signal.sigwait(waited) not in ends:
        try:
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        except ChildProcessError:
            pass
    with cluster.locked():
        cluster.down()
    return 0


def _down(cluster: Cluster, arguments: argparse.Namespace) -> int:
    if not cluster.folder.path.is_dir():
        return 0
    with cluster.locked():
        if arguments.keep:
            cluster.stop()
        else:
            cluster.down()
    return 0


def _status(cluster: Cluster, arguments: argparse.Namespace) -> int:
    status = cluster.status()
    _print(json.dumps(status) if arguments.json else _render_status(status))
    return 0 if status["healthy"] else UNHEALTHY


def _restart(cluster: Cluster, arguments: argparse.Namespace) -> int:
    cluster.settings()
    with cluster.locked():
        cluster.stop()
        cluster.start()
    _print(json.dumps(cluster.status()) if arguments.json else cluster.url())
    return 0


ACTIONS: dict[str, Callable[[Daemon], object]] = {
    "kill": Daemon.kill,
    "stop": lambda daemon: daemon.stop(STOP_TIMEOUT),
    "start": lambda daemon: daemon.start(),
    "freeze": lambda daemon: daemon.signal(signal.SIGSTOP),
    "thaw": lambda daemon: daemon.signal(signal.SIGCONT),
}


def _act(cluster: Cluster, arguments: argparse.Namespace) -> int:
    """Apply an action to a daemon. Every action except `start` fails if the daemon does not run."""
    cluster.settings()
    if arguments.command == "osd":
        daemon = cluster.osd(arguments.number)
    elif arguments.command == "mon":
        daemon = cluster.monitor(arguments.name)
    elif cluster.gateway():
        daemon = cluster.gateway()[0]
    else:
        raise ClusterError("the cluster has no S3 gateway: start one with `up --rgw`")
    with cluster.locked():
        if arguments.action != "start" and daemon.state() is State.STOPPED:
            raise ClusterError(f"{daemon.name} does not run\n{daemon.log_tail()}".rstrip())
        ACTIONS[arguments.action](daemon)
        if arguments.command == "osd" and arguments.wait is not None:
            up = arguments.action in ("start", "thaw")
            cluster.wait_up(arguments.number, up=up, timeout=arguments.wait)
    return 0


def _print(result: str) -> None:
    sys.stdout.write(result + "\n")
    sys.stdout.flush()


def _render_status(status: Status) -> str:
    lines = [f"{key:8} {status[key]}" for key in ("url", "dir", "store", "healthy")]
    up = status["osds_up"]
    for daemon in status["daemons"]:
        line = f"{daemon['name']:8} {daemon['state']:8} pid {daemon['pid'] or '-'}"
        kind, _, number = daemon["name"].partition(".")
        if kind == "osd" and up is not None:
            line += "  up" if int(number) in up else "  down"
        lines.append(line)
    if up is None:
        lines.append("the monitor does not answer")
    return "\n".join(lines)


COMMANDS = {
    "up": _up,
    "down": _down,
    "status": _status,
    "restart": _restart,
    "osd": _act,
    "mon": _act,
    "rgw": _act,
}


def main(words: Sequence[str] | None = None) -> int:
    """Run a command. Returns its exit code: 0 success, 1 failure, 2 usage error, 3 not healthy."""
    arguments = _parser().parse_args(words)
    try:
        if arguments.command == "build-class":
            _print(str(object_class.build(arguments.tree.resolve())))
            return 0
        return COMMANDS[arguments.command](Cluster(arguments.dir), arguments)
    except (ClusterError, OSError) as error:
        say(f"cluster: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
