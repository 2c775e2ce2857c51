"""The options that a program gives, and the functions that parse their values.

The functions raise ValueError for an invalid value.
"""

from __future__ import annotations

import difflib
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Literal, TypeVar

from zlog import Match
from zlog.extension import as_time
from zlog.names import check_log_name, check_pattern, check_tags
from zlog.store import STORE_VARIABLE, default_url

T = TypeVar("T")

Place = int | datetime | Literal["earliest", "latest"]
"""The place where a read begins or ends."""


class Given:
    """Options as the user gave them."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._values = {name.lower(): value for name, value in options.items()}

    def only(self, names: Iterable[str], kind: str, others: Iterable[str] = ()) -> None:
        """Raise ValueError for an option that this kind of read or write does not have.

        Args:
            names: the names of the valid options.
            kind: the kind of read or write, for the message.
            others: the names of options that are not checked here.
        """
        known = {name.lower(): name for name in names}
        for name in sorted(self._values.keys() - {name.lower() for name in others}):
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = (
                    f"did you mean {known[near[0]]}?"
                    if near
                    else f"it has {', '.join(known.values())}"
                )
                raise ValueError(f"a {kind} of zlog has no option {name!r}: {hint}")

    def has(self, name: str) -> bool:
        """Whether an option is given."""
        return name.lower() in self._values

    def logs(self) -> tuple[tuple[str, ...], str | None]:
        """Return the names of the logs to read, or their pattern."""
        if sum(map(self.has, ("log", "logs", "logsPattern"))) > 1:
            raise ValueError("give only one of the options log, logs and logsPattern")
        if self.has("logs"):
            return self.maybe("logs", _log_names) or (), None
        if self.has("logsPattern"):
            return (), self.maybe("logsPattern", check_pattern)
        return (self.require("log", check_log_name),), None

    def store(self) -> str:
        """Return the store's URL, from the option or from this process's environment."""
        found = self.maybe("store", _store)
        if found is None:
            found = _store(os.environ.get(STORE_VARIABLE, ""))
        if not found:
            raise ValueError(
                f'zlog needs the option store, as in .option("store", "{default_url()}"):'
                f" {STORE_VARIABLE} is not set in the environment that Spark's JVM was started"
                " with. Setting it later, as in a notebook, has no effect"
            )
        return found

    def maybe(self, name: str, parse: Callable[[str], T]) -> T | None:
        """Return an option's value, or None if the option is not given."""
        value = self._values.get(name.lower())
        if value is None:
            return None
        try:
            return parse(value)
        except ValueError as error:
            raise ValueError(f"option {name}={value!r}: {error}") from None

    def get(self, name: str, parse: Callable[[str], T], default: str) -> T:
        """Return an option's value, or its default."""
        value = self.maybe(name, parse)
        return parse(default) if value is None else value

    def require(self, name: str, parse: Callable[[str], T]) -> T:
        """Return the value of a required option."""
        value = self.maybe(name, parse)
        if value is None:
            raise ValueError(
                f'zlog needs the option {name}: .option("{name}", …), or logs or logsPattern for a'
                f" read of several logs, or a column {name} in the rows of a write. Only CREATE"
                " TABLE … USING zlog OPTIONS (…) without a list of columns makes a table that keeps"
                " its options; saveAsTable does not. INSERT INTO passes no options: write with"
                " .save()"
            )
        return value

    def place(self, which: str, default: Place, *, several: bool) -> Place:
        """Return the place to start or end, which has two options."""
        by_position = self.maybe(f"{which}Position", _position)
        by_time = self.maybe(f"{which}Timestamp", _time)
        if by_position is not None and by_time is not None:
            raise ValueError(f"give either {which}Position or {which}Timestamp, not both")
        if several and isinstance(by_position, int):
            raise ValueError(
                f"{which}Position must be earliest or latest to read several logs, because each log"
                f" has its own positions; or set {which}Timestamp"
            )
        if by_position is not None:
            return by_position
        return default if by_time is None else by_time


def _store(text: str) -> str:
    if text.startswith("mem:"):
        raise ValueError("a store in memory belongs to one process, but Spark uses several")
    return text


def _words(text: str) -> list[str]:
    """Parse a JSON list, or words separated by commas."""
    return json.loads(text) if text.lstrip().startswith("[") else text.split(",")


def as_tags(text: str) -> tuple[str, ...]:
    try:
        tags = check_tags(_words(text))
    except TypeError as error:
        raise ValueError(str(error)) from None
    if not tags:
        raise ValueError("it must contain a tag; omit the option to read all entries")
    return tags


def _log_names(text: str) -> tuple[str, ...]:
    names = [check_log_name(name.strip()) for name in map(str, _words(text))]
    if not names:
        raise ValueError("it must contain the name of a log")
    return tuple(sorted(set(names)))


def as_columns(names: list[str]) -> Callable[[str], tuple[str, ...]]:
    def parse(text: str) -> tuple[str, ...]:
        wanted = {each.strip() for each in text.split(",")}
        if unknown := sorted(wanted - {*names}):
            raise ValueError(
                f"there is no column {', '.join(unknown)}; the columns are {', '.join(names)}"
            )
        return tuple(name for name in names if name in wanted)

    return parse


def as_match(text: str) -> Match:
    if text not in ("any", "all"):
        raise ValueError("it must be 'any' or 'all'")
    return "any" if text == "any" else "all"


def _position(text: str) -> Place:
    if text == "earliest":
        return "earliest"
    if text == "latest":
        return "latest"
    if not text.isdecimal():
        raise ValueError("it must be a position, earliest or latest")
    return int(text)


def _time(text: str) -> datetime:
    try:
        if text.isdecimal():
            return as_time(int(text) / 1000)
        when = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except (ValueError, OverflowError):
        raise ValueError(
            "it must be a time, such as 2026-01-31T12:00:00Z, or a number of milliseconds since"
            " 1970"
        ) from None
    if when.tzinfo is None:
        raise ValueError("it has no time zone: append Z for UTC, or an offset such as +01:00")
    return as_time(when)


def as_count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise ValueError("it must be a number of 1 or more")
    return int(text)


def as_sequence(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("it must be a number of 0 or more")
    return int(text)


def as_seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ValueError("it must be a number of seconds above 0")
    return seconds


def as_flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("it must be true or false")
    return text.lower() == "true"
