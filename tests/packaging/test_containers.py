"""The services for cephadm and Rook are well-formed, and run commands that exist."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from zlog.cli.main import command

from ..support.programs import REPOSITORY

CEPHADM = REPOSITORY / "packaging/cephadm.yaml"
ROOK = REPOSITORY / "packaging/rook.yaml"
# By the system's Python, for which Debian builds Ceph's modules.
PARSE = """
import json, sys, yaml
from ceph.deployment.service_spec import ServiceSpec
specs = [ServiceSpec.from_json(one) for one in yaml.safe_load_all(sys.stdin)]
print(json.dumps([dict(spec.config_json(), name=spec.service_name()) for spec in specs]))
"""


def documents(path: Path, kind: str = "") -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(path.read_text()) if one.get("kind", "") == kind]


def cephadm_commands() -> list[tuple[list[str], set[int]]]:
    """The words after `zlog`, and the ports, of each service."""
    commands = []
    for service in documents(CEPHADM):
        words = service["extra_entrypoint_args"]
        for script in service["spec"].get("files", {}).get("zlog/start", []):
            words = shlex.split(script.removeprefix("exec zlog "))
        commands.append((words, set(service["spec"]["ports"])))
    return commands


def rook_containers() -> list[dict[str, Any]]:
    pods = [one["spec"]["template"]["spec"] for one in documents(ROOK, "Deployment")]
    return [container for pod in pods for container in pod["containers"]]


def rook_commands() -> list[tuple[list[str], set[int]]]:
    return [
        (one["args"], {port["containerPort"] for port in one["ports"]}) for one in rook_containers()
    ]


def test_cephadm_accepts_its_specifications() -> None:
    done = subprocess.run(
        ["/usr/bin/python3", "-c", PARSE],
        input=CEPHADM.read_text(),
        capture_output=True,
        text=True,
        check=True,
    )
    names = [service["name"] for service in json.loads(done.stdout)]
    kinds = ("seqr", "exporter", "console", "http")
    assert names == [f"container.zlog-{kind}" for kind in kinds]


@pytest.mark.parametrize(("words", "ports"), cephadm_commands() + rook_commands())
def test_command_exists_and_listens_on_the_ports(words: list[str], ports: set[int]) -> None:
    result = CliRunner().invoke(command, [*words, "--help"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert {int(port) for port in re.findall(r":(\d+)\b", " ".join(words))} == ports


def test_rook_pods_find_their_keys_and_ports() -> None:
    users = {f"rook-ceph-client-{one['metadata']['name']}" for one in documents(ROOK, "CephClient")}
    text = ROOK.read_text()
    assert users == set(re.findall(r"rook-ceph-client-[a-z-]+", text))
    assert users == {
        f"rook-ceph-client-{name}" for name in re.findall(r"ceph://logs\?id=([a-z-]+)", text)
    }
    ports = {port["name"] for one in rook_containers() for port in one["ports"]}
    for service in documents(ROOK, "Service"):
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
