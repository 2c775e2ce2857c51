"""The results of the doctor: a diagnosis of each part."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import NamedTuple

from zlog import ZlogError
from zlog.cli.exit_codes import ExitCode, exit_code_of

FIND_OSD = "ceph health detail && ceph osd tree   # shows which OSDs are down"
"""Advice if OSDs do not answer."""


class Level(enum.Enum):
    """How serious a diagnosis is."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    FAILURE = "failure"


class Diagnosis(NamedTuple):
    """What the doctor found out about one part of the system.

    Attributes:
        part: the name of the part, in a word or two.
        level: how serious the problem is.
        text: the diagnosis in one sentence.
        fix: how to fix the problem, preferably a command; empty if there is nothing to fix.
        code: the exit code if this is the first failure.
    """

    part: str
    level: Level
    text: str
    fix: str = ""
    code: ExitCode = ExitCode.FAILURE


def ok(part: str, text: str) -> Diagnosis:
    """Return that a part is sound."""
    return Diagnosis(part, Level.OK, text)


def note(part: str, text: str, fix: str = "") -> Diagnosis:
    """Return a remark about a part."""
    return Diagnosis(part, Level.NOTE, text, fix)


def warning(part: str, text: str, fix: str) -> Diagnosis:
    """Return a warning about a part."""
    return Diagnosis(part, Level.WARNING, text, fix)


def failure(part: str, text: str, fix: str, code: ExitCode = ExitCode.FAILURE) -> Diagnosis:
    """Return that a part has failed."""
    return Diagnosis(part, Level.FAILURE, text, fix, code)


def failed(part: str, error: ZlogError, fix: str = "") -> Diagnosis:
    """Return a failure for an error, with its hint unless the hint names the doctor."""
    hint = "" if "zlog doctor" in error.hint else error.hint
    return Diagnosis(part, Level.FAILURE, str(error), fix or hint, exit_code_of(error))


def worst(diagnoses: Iterable[Diagnosis]) -> ExitCode:
    """Return the code of the first failure, which may have caused the others, or else ``OK``."""
    return next((each.code for each in diagnoses if each.level is Level.FAILURE), ExitCode.OK)


def some(logs: list[str]) -> str:
    """Return the number of logs, and the names of some."""
    if len(logs) == 1:
        return f"log {logs[0]}"
    shown = ", ".join(logs[:3])
    return f"{len(logs)} logs ({shown}{', …' if len(logs) > 3 else ''})"
