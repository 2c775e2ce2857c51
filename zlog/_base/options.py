"""The options in a log's views that zlog itself uses."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from typing import NamedTuple

from zlog._base.codes import OBJECT_TAIL_MAX
from zlog.limits import (
    COMPRESSIONS,
    ENTRY_BYTES_MAX,
    ENTRY_BYTES_MAX_DEFAULT,
    HOLE_TIMEOUT_SECONDS,
    OPTION_KEY_BYTES_MAX,
    OPTION_VALUE_BYTES_MAX,
    POSITION_MAX,
    RETENTION_SKEW_SECONDS,
    STRIPE_BYTES_DEFAULT,
    STRIPE_RECORDS_DEFAULT,
)

STRIPE_BYTES = "stripe_bytes"
STRIPE_RECORDS = "stripe_records"

COMPRESSION = "compression"

HOLE_TIMEOUT = "hole_timeout"

NEVER = "never"
"""The hole timeout of a log whose readers never fill a hole."""

ENTRY_SIZE = "entry_bytes_max"

RETENTION = {
    "age": "retention_age_s",
    "bytes": "retention_bytes",
    "entries": "retention_entries",
    "skew": "retention_skew_s",
    "compact_after": "retention_compact_after_s",
}
"""The option that stores each field of a Retention."""

MIRROR_OF = "mirror_of"
"""The option with the source of a mirror: the source's log_id, 16 hex digits, or one of the next
two values (docs/design/mirrors.md)."""

MIRROR_OF_FILE = "file"
"""The source of a mirror that is imported from export files."""

MIRROR_ENDED = "ended"
"""The source of a mirror that is being promoted."""

FROM_TEMPLATE = "from_template"
"""The option with the template that was applied to a log, and the settings that it gave the log."""

OFFLOAD_TO = "offload_to"
"""The option with the URL under which a log's offloaded stripes are stored."""

OFFLOAD_AFTER = "offload_after"
"""The option that says which stripes are offloaded; see :class:`OffloadAfter`."""

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_SIZES = {unit: 1024**power for power, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB"))}

SETTINGS: dict[str, str | None] = {
    STRIPE_BYTES: str(STRIPE_BYTES_DEFAULT),
    STRIPE_RECORDS: str(STRIPE_RECORDS_DEFAULT),
    COMPRESSION: "none",
    HOLE_TIMEOUT: f"{HOLE_TIMEOUT_SECONDS:g}",
    ENTRY_SIZE: str(ENTRY_BYTES_MAX_DEFAULT),
    **dict.fromkeys(RETENTION.values()),
    RETENTION["skew"]: f"{RETENTION_SKEW_SECONDS:g}",
    OFFLOAD_TO: None,
    OFFLOAD_AFTER: "0s",
}
"""The options that users set by a keyword, with their defaults. None means no limit."""

PROMOTED_FROM = "promoted_from"
"""The option of a promoted mirror with the logs whose entries it has, oldest first. Each is the
log_id in 16 hex digits, ``@`` and a position; only the entries below it are the same. In a mirror,
logs that its source is a mirror of have no position. The promotion of the mirror gives them one."""

_PROMOTIONS_MAX = 64


def promotions(options: Mapping[str, str]) -> list[str]:
    """Return the complete elements of PROMOTED_FROM."""
    return [each for each in options.get(PROMOTED_FROM, "").split() if "@" in each]


def origins(options: Mapping[str, str]) -> list[str]:
    """Return the elements of PROMOTED_FROM, and then the source of a mirror, without a position."""
    source = options.get(MIRROR_OF, "")
    known = options.get(PROMOTED_FROM, "").split()
    return known if source in ("", MIRROR_OF_FILE, MIRROR_ENDED) else [*known, source]


def check_unreserved(options: Mapping[str, object]) -> None:
    """Raise ValueError for an option that only zlog itself may set."""
    for name in (MIRROR_OF, PROMOTED_FROM):
        if name in options:
            raise ValueError(
                f"option {name!r} is reserved for zlog; to end a mirror, use `zlog access promote`"
            )


def ended(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a mirror that is not copied any more, and keep the id of its source."""
    history = origins(options)
    own = {PROMOTED_FROM: " ".join(history)} if history else {}
    return {**options, **own, MIRROR_OF: MIRROR_ENDED}


def promoted(options: Mapping[str, str], position: int) -> dict[str, str]:
    """Return the options of an ended mirror that becomes independent at a position."""
    left = {key: value for key, value in options.items() if key != MIRROR_OF}
    if history := left.get(PROMOTED_FROM, "").split():
        history = [each if "@" in each else f"{each}@{position}" for each in history]
        left[PROMOTED_FROM] = " ".join(history[-_PROMOTIONS_MAX:])
    return left


STRIPE_OBJECT_POSITIONS = OBJECT_TAIL_MAX // 4
"""A stripe is full when this many positions of one object are taken, even if they are trimmed."""


class StripeLimits(NamedTuple):
    """How many bytes and records in one object make its stripe full."""

    bytes: int
    records: int

    @classmethod
    def of(cls, options: Mapping[str, str]) -> StripeLimits:
        """Read the limits from a view's options. Invalid options are ignored."""
        return cls(
            _number(options.get(STRIPE_BYTES)) or STRIPE_BYTES_DEFAULT,
            _number(options.get(STRIPE_RECORDS)) or STRIPE_RECORDS_DEFAULT,
        )

    def fullness(self, records: int, size: int, positions: float) -> float:
        """Return how full an object is: 0 means empty, and 1 or more means full.

        Trimmed positions count too, because the number of an object's positions is limited.
        """
        return max(records / self.records, size / self.bytes, positions / STRIPE_OBJECT_POSITIONS)


def compression_of(options: Mapping[str, str]) -> str:
    """Return how a log's data is compressed, or ``none`` if a later version defined the method."""
    wanted = options.get(COMPRESSION, "none")
    return wanted if wanted in COMPRESSIONS else "none"


def hole_timeout_of(options: Mapping[str, str]) -> float | None:
    """Return how many seconds readers of a log wait for a hole; None means never to fill it."""
    text = options.get(HOLE_TIMEOUT)
    seconds = amount(text, math.inf)
    return None if text == NEVER else HOLE_TIMEOUT_SECONDS if seconds is None else seconds


def entry_bytes_max_of(options: Mapping[str, str]) -> int:
    """Return the maximum size of an entry of a log in bytes."""
    number = _number(options.get(ENTRY_SIZE))
    return number if number and number <= ENTRY_BYTES_MAX else ENTRY_BYTES_MAX_DEFAULT


def check_entry_size(size: int) -> None:
    """Raise TypeError or ValueError if this is not a valid limit of an entry's size."""
    if not hasattr(size, "__index__"):
        raise TypeError(f"entry_bytes_max must be an int, not {size!r}")
    if not 0 < size <= ENTRY_BYTES_MAX:
        raise ValueError(f"entry_bytes_max must be 1 to {ENTRY_BYTES_MAX} bytes, not {size}")


def check_options(options: Mapping[str, str]) -> None:
    """Raise ValueError or TypeError if a view cannot have these options."""
    for key, value in options.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"option keys and values must be strings, not {key!r}: {value!r}")
        if not 1 <= len(key.encode()) <= OPTION_KEY_BYTES_MAX:
            raise ValueError(
                f"option keys must have 1 to {OPTION_KEY_BYTES_MAX} bytes, not {key!r}"
            )
        if len(value.encode()) > OPTION_VALUE_BYTES_MAX:
            raise ValueError(f"option {key!r} has more than {OPTION_VALUE_BYTES_MAX} bytes")
        if key in (STRIPE_BYTES, STRIPE_RECORDS) and _number(value) is None:
            raise ValueError(f"option {key!r} must be a number of 1 or more, not {value!r}")
        if key in RETENTION.values() and amount(value) is None:
            raise ValueError(f"option {key!r} must be a number of 0 or more, not {value!r}")
        if key == HOLE_TIMEOUT and value != NEVER and amount(value, math.inf) is None:
            raise ValueError(
                f"option {key!r} must be a number of 0 or more, or {NEVER!r}, not {value!r}"
            )
        if key == ENTRY_SIZE and not 0 < (_number(value) or 0) <= ENTRY_BYTES_MAX:
            raise ValueError(f"option {key!r} must be 1 to {ENTRY_BYTES_MAX}, not {value!r}")
        if key == COMPRESSION and value not in COMPRESSIONS:
            raise ValueError(f"option {key!r} must be {', '.join(COMPRESSIONS)}, not {value!r}")
        if key == OFFLOAD_AFTER:
            OffloadAfter.parse(value)
        if key == OFFLOAD_TO and not re.match(r"/|[a-z0-9]+://", value):
            raise ValueError(f"option {key!r} must be a URL or an absolute path, not {value!r}")


class OffloadAfter(NamedTuple):
    """Which ended stripes are offloaded. Zeros mean all of them.

    Attributes:
        seconds: those whose next stripe has an entry of at least this age.
        bytes: those above which objects have at least this many bytes of data.
    """

    seconds: float = 0
    bytes: int = 0

    @classmethod
    def parse(cls, text: str) -> OffloadAfter:
        """Parse an age, such as ``7d``, or a size, such as ``100GiB``. Raises ValueError."""
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([A-Za-z]+)", text.strip(), re.ASCII)
        number, unit = found.groups() if found else ("", "")
        if unit in _UNITS:
            return cls(seconds=float(number) * _UNITS[unit])
        if unit in _SIZES:
            return cls(bytes=int(float(number) * _SIZES[unit]))
        raise ValueError(
            f"option {OFFLOAD_AFTER!r} must be an age, such as 7d, or a size, such as 100GiB,"
            f" not {text!r}"
        )


def amount(text: str | None, most: float = sys.float_info.max) -> float | None:
    """Parse an option as a number from 0 to ``most``. Returns None if it is not one."""
    try:
        number = math.nan if text is None else float(text)
    except ValueError:
        return None
    return number if 0 <= number <= most else None


def _number(text: str | None) -> int | None:
    if text is None or not (text.isascii() and text.isdigit()) or len(text) > 19:
        return None
    number = int(text)
    return number if 1 <= number <= POSITION_MAX else None


def has_retention(options: Mapping[str, str]) -> bool:
    """Whether options limit the retention of a log."""
    return any(key in options for field, key in RETENTION.items() if field != "skew")
