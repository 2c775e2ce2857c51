"""The real client, sequencer and object class under faults, and checkers that can be trusted.

`make chaos` runs the same for longer; a seed that fails here is replayed by `make chaos SEED=…`.
"""

from __future__ import annotations

import functools

import pytest

from ..support.programs import run_module
from .mutants import MUTANTS
from .run import Kind, run

SEEDS_PER_TEST = 25
REPLAY = "replay it: make chaos SEED="


unbroken = functools.cache(run)
"""What came of a seed, for all tests that look at it."""


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.long) for first in (25, 50, 75))]
)
def test_log_properties_hold_under_faults(first: int) -> None:
    operations = 0
    for seed in range(first, first + SEEDS_PER_TEST):
        outcome = unbroken(seed)
        operations += outcome.operations
        assert outcome.ok, "\n".join([*outcome.violations, f"{REPLAY}{seed}"])
    assert operations > 100 * SEEDS_PER_TEST  # else nothing was tried


SPACE_SEEDS = (*range(4), 25, 47, 64, 80, 272)
"""Some that have found a mistake are among them."""


@pytest.mark.long
def test_object_spaces_hold_under_faults() -> None:
    operations = 0
    for seed in SPACE_SEEDS:
        outcome = run(seed, kind=Kind.OBJECTS)
        operations += outcome.operations
        assert outcome.ok, "\n".join([*outcome.violations, f"seed {seed} with --kind objects"])
    assert operations > 50 * len(SPACE_SEEDS)  # else nothing was tried


@pytest.mark.parametrize("first", [0, pytest.param(10, marks=pytest.mark.long)])
def test_conditions_hold_under_faults(first: int) -> None:
    lines: list[str] = []
    for seed in range(first, first + 10):
        outcome = run(seed, kind=Kind.ORDERED)
        lines += outcome.lines
        assert outcome.ok, "\n".join([*outcome.violations, f"seed {seed} with --kind ordered"])
    assert sum("conflict with" in line for line in lines) > 100  # else nothing was tried


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(
            name,
            kind,
            id=f"{name}-{kind.value}",
            marks=pytest.mark.long if kind is Kind.OBJECTS else (),
        )
        for name, mutant in MUTANTS.items()
        for kind in mutant.kinds
    ],
)
def test_simulation_detects_mutants(name: str, kind: Kind) -> None:
    """By the history alone, and within the first of those seeds that the unbroken code passes."""
    mutant = MUTANTS[name]
    for seed in (mutant.tried_first, *range(mutant.seeds_max)):
        with mutant.patch():
            outcome = run(seed, mutant.execute, kind=kind)
        said = "\n".join(outcome.violations)
        assert "TypeError" not in said, f"it is out of date, and breaks something else: {said}"
        if any(violation.startswith(mutant.shows) for violation in outcome.violations):
            return
    pytest.fail(f"nothing noticed that {mutant.broken}")


def test_runs_are_deterministic_per_seed() -> None:
    """Also in another process, whose objects lie elsewhere and whose hashes are others."""
    here = [unbroken(seed).digest for seed in (3, 4)]
    assert here == [run(seed).digest for seed in (3, 4)]
    assert here[0] != here[1]
    done = run_module("tests.sim", "--seed", "3")
    assert f"digest {here[0]}" in done.stdout


@pytest.mark.long
def test_runs_cover_expected_events() -> None:
    """Fail-overs, changes of layout, holes and trims do happen, and not now and then only."""
    lines = [line for seed in range(60) for line in unbroken(seed).lines]
    for expected in (
        "stepped down",
        "could not take over",
        "kills seqr",
        "pauses client",
        "reconfigure",
        "reserve",
        "trim_to",
        "filled",
        "trimmed",
        "StoreTimeout",
        "completed job",
        "gave up job",
        "superseded",
        "AppendRefused",
        "Fenced",
        "recovered",
        "gave the log back",
        "compacted up to",
        "is frozen in write",
    ):
        assert any(expected in line for line in lines), expected
