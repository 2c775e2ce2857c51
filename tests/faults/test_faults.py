"""Short runs of what `make chaos` does for minutes.

Replay one: ``python -m tests.faults --seed N``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ..support.ceph import CephCluster, ClusterSpec
from . import power
from .faults import CLUSTER_OPTIONS
from .kills import run_kills
from .run import EXCLUSIVE, MONITORS, SMALL, run_on_ceph

SECONDS = 26.0
HURRY = 2.5
KINDS = (
    "OSD killed",
    "OSD frozen",
    "monitors and an OSD killed",
    "power lost",
    "connections to Ceph cut",
    "sequencer killed",
    "sequencer frozen",
    "replies of sequencers lost",
    "client killed",
    "width changed",
)
CONTENDED_SECONDS = 9.0
CONTENDED_KINDS = ("OSD killed", "OSD frozen", "connections to Ceph cut", "client killed")
KILLS = 15


@pytest.mark.long
def test_faults(new_ceph_cluster: Callable[[ClusterSpec], CephCluster], tmp_path: Path) -> None:
    """P1 to P13."""
    with power.that_may_fail(tmp_path / "power", power.BLUESTORE):
        cluster = new_ceph_cluster(ClusterSpec("bluestore", 3, MONITORS, options=CLUSTER_OPTIONS))
        outcome = run_on_ceph(cluster, tmp_path, 1, SECONDS, SMALL, KINDS, HURRY)
    assert outcome.wrong == []
    assert set(outcome.faults) == set(KINDS)
    assert outcome.operations["append"] > 100  # else nothing was tried
    assert outcome.stripes > 5
    assert outcome.enrolments > 20
    assert outcome.operations["read"] > outcome.operations["append"]


@pytest.mark.long
def test_objects(new_ceph_cluster: Callable[[ClusterSpec], CephCluster], tmp_path: Path) -> None:
    """P17 to P19; P22 and P23."""
    crowd = replace(EXCLUSIVE, roles={**EXCLUSIVE.roles, "p0": "actor", "p1": "actor"})
    cluster = new_ceph_cluster(ClusterSpec("bluestore", 3, MONITORS, options=CLUSTER_OPTIONS))
    outcome = run_on_ceph(cluster, tmp_path, 1, CONTENDED_SECONDS, crowd, CONTENDED_KINDS, HURRY)
    assert outcome.wrong == []
    assert set(outcome.faults) == set(CONTENDED_KINDS)
    assert outcome.operations["take"] > 10
    assert outcome.operations["append"] > 100
    assert outcome.transactions["ok"] > 50


@pytest.mark.parametrize(
    "lost",
    [
        pytest.param(False, id="killed"),
        pytest.param(True, id="power lost", marks=pytest.mark.long),
    ],
)
def test_properties_hold_on_embedded_store_with_kills(tmp_path: Path, lost: bool) -> None:
    """P14."""
    outcome = run_kills(tmp_path, 1, KILLS, power=lost)
    assert outcome.wrong == []
    assert outcome.faults["kill -9"] >= KILLS
    assert not lost or outcome.faults["page lost"] > 0
    assert outcome.operations["append"] > 10 * KILLS
    assert outcome.stripes > 2
    assert outcome.operations["read"] > outcome.operations["append"]
