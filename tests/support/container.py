"""The same clusters in a container, for machines that have Docker and no Ceph daemons.

The container shares the host's network, since a Ceph client must reach the monitor and every OSD
at the addresses that they announce; and it shares one folder under the same path, so that the conf
file and the store URL hold on both sides.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from .ceph import CephCluster, ClusterFailed, ClusterSpec
from .programs import REPOSITORY

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

IMAGE = "zlog-ceph-dev:test"
UP_SECONDS = 90.0
STOP_SECONDS = 20
PROGRAM = "/opt/zlog/ceph-dev/cluster"


def docker_problem() -> str | None:
    """Why no container can be started here, None if one can."""
    if importlib.util.find_spec("testcontainers") is None:
        return "testcontainers not installed"
    if shutil.which("docker") is None:
        return "no Docker here"
    ask = ["docker", "version", "--format", "{{.Server.Version}}"]
    try:
        answer = subprocess.run(ask, capture_output=True, text=True, check=False, timeout=10)
    except subprocess.TimeoutExpired:
        return "no Docker engine answers within 10 s"
    return None if answer.returncode == 0 else f"no Docker engine ({answer.stderr.strip()})"


@functools.cache
def image() -> str:
    """Build the image, once in a session; it stays, so that the next session finds its layers."""
    from testcontainers.core.image import DockerImage

    build = DockerImage(
        path=REPOSITORY,
        dockerfile_path="ceph-dev/Dockerfile",
        tag=IMAGE,
        clean_up=False,
        network_mode="host",
    )
    build.build()
    return IMAGE


def start_container(
    spec: ClusterSpec, folder: Path, undo: list[Callable[[], object]]
) -> CephCluster:
    """Start a cluster in a container of its own; it keeps its files in `folder`."""
    from testcontainers.core.config import testcontainers_config
    from testcontainers.core.container import DockerContainer

    # Its reaper is another image to pull, and needs a bridge network; `undo` does its work.
    testcontainers_config.ryuk_disabled = True
    container = DockerContainer(
        image(),
        network_mode="host",
        user=f"{os.getuid()}:{os.getgid()}",
        volumes=[(str(folder), str(folder), "rw")],
    )
    container.with_command(["up", "--foreground", "--dir", str(folder), *spec.arguments()])
    container.start()
    undo.append(lambda: _stop(container))

    def control(command: str, *words: str) -> str:
        return _execute(container, command, "--dir", str(folder), *words)

    _wait_up(container, folder)
    return CephCluster(spec, control, json.loads(control("status", "--json")))


def _stop(container: DockerContainer) -> None:
    """End the cluster as SIGTERM does, which empties its folder, and remove the container."""
    container.get_wrapped_container().stop(timeout=STOP_SECONDS)
    container.stop()


def _wait_up(container: DockerContainer, folder: Path) -> None:
    """Wait until the container has printed the URL, which it does when the cluster is usable."""
    deadline = time.monotonic() + UP_SECONDS
    while b"ceph://" not in container.get_logs()[0]:
        state = container.get_wrapped_container()
        state.reload()
        if state.status == "exited" or time.monotonic() > deadline:
            words = container.get_logs()[1].decode(errors="replace").strip()
            raise ClusterFailed(f"the container of {folder} is {state.status}: {words}")
        time.sleep(0.1)


def _execute(container: DockerContainer, *words: str) -> str:
    """Run ceph-dev/cluster in the container; `status` of an ill cluster is an answer too."""
    code, output = container.get_wrapped_container().exec_run([PROGRAM, *words], demux=True)
    stdout, stderr = ((part or b"").decode(errors="replace") for part in output)
    if code not in (0, 3):
        raise ClusterFailed(stderr.strip())
    return stdout
