"""What the doctor says: one diagnosis per part that was looked at."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import NamedTuple

from zlog import ZlogError
from zlog.cli.exit_codes import ExitCode, exit_code_of

FIND_OSD = "ceph health detail && ceph osd tree   # shows which OSDs are down"
"""A mend, where OSDs do not answer."""


class Level(enum.Enum):
    """How bad it is."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    FAILURE = "failure"


class Diagnosis(NamedTuple):
    """What was found about one part.

    Attributes:
        part: what was looked at, in a word or two.
        level: how bad it is.
        text: what was found, one sentence.
        mend: what to do about it, best a command; empty when nothing is to be done.
        code: the exit code that a failure calls for.
    """

    part: str
    level: Level
    text: str
    mend: str = ""
    code: ExitCode = ExitCode.FAILURE


def ok(part: str, text: str) -> Diagnosis:
    """Return that a part is well."""
    return Diagnosis(part, Level.OK, text)


def failed(part: str, error: ZlogError, mend: str = "") -> Diagnosis:
    """Return that a part raised an error; its hint is the mend, unless that is the doctor."""
    hint = "" if "zlog doctor" in error.hint else error.hint
    return Diagnosis(part, Level.FAILURE, str(error), mend or hint, exit_code_of(error))


def worst(diagnoses: Iterable[Diagnosis]) -> ExitCode:
    """Return the exit code for all of them.

    Parts are looked at from the ground up, so the first failure is the one that others hang on.
    """
    for diagnosis in diagnoses:
        if diagnosis.level is Level.FAILURE:
            return diagnosis.code
    return ExitCode.OK


def some(logs: list[str]) -> str:
    """Return the names of some logs, and how many there are."""
    if len(logs) == 1:
        return f"log {logs[0]}"
    shown = ", ".join(logs[:3])
    return f"{len(logs)} logs ({shown}{', …' if len(logs) > 3 else ''})"
