"""The reply of append."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from .messages import decode


class PartState(IntEnum):
    """What an append did with a part."""

    APPENDED = 0
    CONFLICT = 1
    SEARCHED = 2


@dataclass(frozen=True)
class Appended:
    """The reply of append; how full the object is belongs to the layout and is not compared."""

    records: int = field(default=0, compare=False)
    data_bytes: int = field(default=0, compare=False)
    tail: int = 0
    since: int = 0
    stored: int = 0
    outcomes: tuple[tuple[PartState, int], ...] = ()


def appended(*fields: Any) -> Appended:
    """The reply with these fields."""
    *numbers, outcomes = fields
    return Appended(*numbers, tuple((PartState(state), position) for state, position in outcomes))


def reports(method: str, code: int, payload: bytes) -> bool:
    """Whether this is the answer to an append that changed nothing: it may be long."""
    return method == "append" and code == 0 and not decode("AppendReply", payload).stored
