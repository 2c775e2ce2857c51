"""The options of a log, as they are given when it is created or changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import EllipsisType

from zlog._base.deadline import Timeout, check_seconds
from zlog._base.options import HOLE_TIMEOUT, NEVER, check_entry_size, check_options
from zlog.limits import ORDERINGS
from zlog.view import EntryMac, check_stripe_unit, check_width


@dataclass(frozen=True, slots=True)
class LogOptions:
    """The options of a new log, or the changes to an existing log's options.

    None (for the hole timeout, ``...``) leaves an option unchanged. Fields not listed below are
    stored in the view's options.

    Attributes:
        width, stripe_unit: the striping of the next stripe.
        options: the user's own options; the value None removes an option.
        hole_timeout: seconds; None means that readers never fill a hole.
        ordering: what assigns positions, one of ``ORDERINGS``. With ``object``, the next stripe has
            the width 1, and the entries cannot have MACs.
        mac: how the entries are authenticated. This never changes during the log's life.

    Raises:
        ValueError, TypeError: an option is invalid, or has the wrong type.
    """

    width: int | None = None
    stripe_unit: int | None = None
    stripe_bytes: int | None = None
    stripe_records: int | None = None
    compression: str | None = None
    options: Mapping[str, str | None] | None = None
    hole_timeout: Timeout = ...
    entry_bytes_max: int | None = None
    ordering: str | None = None
    mac: EntryMac | None = None

    def __post_init__(self) -> None:
        if self.width is not None:
            check_width(self.width)
        if self.stripe_unit is not None:
            check_stripe_unit(self.stripe_unit)
        if not isinstance(self.hole_timeout, EllipsisType):
            check_seconds("hole_timeout", self.hole_timeout)
        if self.entry_bytes_max is not None:
            check_entry_size(self.entry_bytes_max)
        check_options(self.applied_to({}))
        if self.ordering not in (None, *ORDERINGS):
            raise ValueError(
                "ordering must be 'sequencer', or 'object' for a log whose only object assigns the"
                f" positions, not {self.ordering!r}"
            )
        if self.ordered and self.width not in (None, 1):
            raise ValueError(
                f"a log ordered by its object has width 1, not {self.width}; omit the width, or"
                " let a sequencer order the log"
            )
        if self.ordered and self.mac is not None:
            raise ValueError(
                "a log ordered by its object cannot have MACs, because a MAC covers the position;"
                " give no key, or let a sequencer order the log"
            )

    @property
    def ordered(self) -> bool | None:
        """Whether the log's object orders it; None leaves that unchanged."""
        return None if self.ordering is None else self.ordering == "object"

    def applied_to(self, options: Mapping[str, str]) -> dict[str, str]:
        """Return the options that a view has after these changes."""
        own = {name: getattr(self, name) for name in _STORED}
        changes = {name: str(value) for name, value in own.items() if value is not None}
        if not isinstance(self.hole_timeout, EllipsisType):
            never = self.hole_timeout is None
            changes[HOLE_TIMEOUT] = NEVER if never else f"{self.hole_timeout:.16g}"
        merged = {**options, **(self.options or {}), **changes}
        return {name: value for name, value in merged.items() if value is not None}

    def only_if(self, create: bool) -> LogOptions | None:
        """Return the options if ``create``, else None. Raises ValueError if one is unused."""
        if not create and self != LogOptions():
            *first, last = (name for name in _NAMES if name not in _NOT_OF_OPEN)
            raise ValueError(
                f"{', '.join(first)} and {last} apply only to a new log: open it with"
                " create=True, or change an existing one with reconfigure()"
            )
        return self if create else None


_NAMES = tuple(field.name for field in fields(LogOptions))
_NOT_OF_OPEN = ("hole_timeout", "entry_bytes_max", "mac")  # its own are those of the handle
_STORED = ("stripe_bytes", "stripe_records", "compression", "entry_bytes_max")
