"""What is searched: configurations of the protocol as it is, and broken variants of it."""

from __future__ import annotations

from typing import NamedTuple


class Configuration(NamedTuple):
    """Who takes part. The rest of the world is the same in all (`log.pml`).

    Attributes:
        name: of the configuration.
        definitions: of the model's macros.
        states_min: a floor under what an exhaustive search visits, so that no change drops half of
            the model and sees it hold.
    """

    name: str
    definitions: tuple[str, ...]
    states_min: int


class Variant(NamedTuple):
    """A way to get the protocol wrong.

    Attributes:
        name: the model's macro that breaks it.
        violated: the property that the shortest way to an error violates.
        definitions: where to look for it.
    """

    name: str
    violated: str
    definitions: tuple[str, ...]


_ONE_CHANGE = ("APPENDERS=1", "EPOCHS=2")
_TWO_CHANGES = ("APPENDERS=1", "EPOCHS=3", "SECOND=RECONFIGURE")

CONFIGURATIONS = (
    Configuration("two appenders, a fail-over", ("APPENDERS=2", "EPOCHS=2"), 1_000_000),
    Configuration("a fail-over and a new stripe", _TWO_CHANGES, 1_000_000),
    Configuration(
        "no sequencer and a new stripe",
        ("APPENDERS=2", "READERS=0", "EPOCHS=3", "FIRST=DROP", "SECOND=RECONFIGURE"),
        500_000,
    ),
)
"""Searched by every run of the tests."""

LONGER = (
    Configuration("two fail-overs", ("APPENDERS=1", "EPOCHS=3", "SECOND=TAKE_OVER"), 1_000_000),
    Configuration(
        "four positions", ("APPENDERS=2", "EPOCHS=2", "FIRST=RECONFIGURE", "POSITIONS=4"), 3_000_000
    ),
    Configuration(
        "changes that start again",
        ("APPENDERS=1", "EPOCHS=4", "SECOND=RECONFIGURE"),
        3_000_000,
    ),
    Configuration("two readers", ("APPENDERS=1", "READERS=2", "EPOCHS=2", "FIRST=DROP"), 1_000_000),
    Configuration(
        "a stripe that is full", ("APPENDERS=1", "EPOCHS=3", "FULL", "SECOND=DROP"), 5_000_000
    ),
    Configuration(
        "slow appends, and changes that start again",
        ("APPENDERS=2", "READERS=0", "EPOCHS=4", "FIRST=DROP", "SECOND=RECONFIGURE"),
        3_000_000,
    ),
)
"""Searched by `make model`, in a minute or two."""

VARIANTS = (
    Variant("WRITE_IGNORES_EPOCH", "FENCING", _ONE_CHANGE),
    Variant("FILL_IGNORES_EPOCH", "FENCING", _ONE_CHANGE),
    Variant("READ_IGNORES_EPOCH", "AGREE", (*_ONE_CHANGE, "FIRST=RECONFIGURE")),
    Variant("TAIL_BEFORE_SEAL", "TAIL", _ONE_CHANGE),
    Variant("ONE_OBJECT_UNSEALED", "TAIL", _ONE_CHANGE),
    Variant("POSITION_REUSED", "TAIL", _ONE_CHANGE),
    Variant("RETRY_WITHOUT_ID", "UNIQUE", _ONE_CHANGE),
    Variant("EPOCH_BEFORE_IDENTITY", "UNIQUE", _ONE_CHANGE),
    Variant("FILL_OVERWRITES", "WRITE-ONCE", _ONE_CHANGE),
    Variant("FLOOR_IGNORED", "TAIL", _ONE_CHANGE),
    Variant("FLOOR_READ_EARLY", "TAIL", _ONE_CHANGE),
    Variant("FLOOR_RAISED_LATE", "TAIL", _ONE_CHANGE),
    Variant("SCAN_WITHOUT_FLOOR", "TAIL", (*_ONE_CHANGE, "FIRST=DROP")),
    Variant("PROPOSE_WITHOUT_BASE", "TAIL", _TWO_CHANGES),
    Variant("MADE_AFTERWARDS", "LAYOUT", (*_ONE_CHANGE, "FIRST=RECONFIGURE")),
    Variant("DISCARD_UNCHECKED", "LAYOUT", (*_TWO_CHANGES, "READERS=0")),
)
