"""Time spans, sizes and counts on the command line."""

from __future__ import annotations

import re

import click

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_TERM = re.compile(r"(\d+(?:\.\d+)?)([smhdw])", re.ASCII)
_COUNT = re.compile(r"(\d+(?:\.\d+)?)([kmg]?)", re.ASCII | re.IGNORECASE)
_POWERS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?b)?", re.ASCII | re.IGNORECASE)
_PREFIXES = ("", "k", "m", "g", "t")

_SPAN_WEEKS_MAX = 52_000
"""A thousand years. A time so long ago is still a valid date."""

SPAN = r"(?:\d+(?:\.\d+)?[smhdw])+"
"""Pattern of a time span: ``90s``, ``5m``, ``1h30m``, ``7d``, ``2w``."""


def time_span(word: str | float) -> float:
    """Parse a time span, such as ``90s`` or ``1h30m``, into seconds."""
    text = str(word).strip()
    if not re.fullmatch(SPAN, text, re.ASCII):
        raise click.BadParameter(f"{word!r} is not a duration: write 90s, 5m, 1h30m, 7d or 2w")
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _TERM.findall(text))
    if seconds > _SPAN_WEEKS_MAX * _SECONDS["w"]:
        raise click.BadParameter(
            f"{word!r} is out of range: a duration is at most {_SPAN_WEEKS_MAX}w"
        )
    return seconds


def count(word: str | int) -> int:
    """Parse a number of entries: ``5000``, ``10K``, ``1.5M``. K, M and G are powers of 1000."""
    found = _COUNT.fullmatch(str(word).strip())
    if found is None:
        raise click.BadParameter(f"{word!r} is not a number of entries: write 5000, 10K or 1M")
    return _whole(word, float(found[1]) * _POWERS[found[2].lower()])


def size(word: str | int) -> int:
    """Parse a number of bytes: ``4096``, ``64K``, ``1.5MiB``, ``10GB``.

    K and KiB mean 1024 bytes, and KB means 1000 bytes. The same applies to M, G and T.
    """
    found = _SIZE.fullmatch(str(word).strip())
    if found is None:
        raise click.BadParameter(f"{word!r} is not a size: write 4096, 64K, 1MiB or 1MB")
    number, prefix, ending = found.groups()
    base = 1000 if ending and prefix and ending.lower() == "b" else 1024
    return _whole(word, float(number) * base ** _PREFIXES.index(prefix.lower()))


def _whole(word: str | int, number: float) -> int:
    """Return a number below 2^63, without its fraction."""
    if number >= 2**63:
        raise click.BadParameter(f"{word!r} is out of range: write a number below 2^63")
    return int(number)


def span_words(seconds: float) -> str:
    """Return a time span in the largest unit that divides it: ``7d``, ``90s``."""
    for unit in ("w", "d", "h", "m"):
        if seconds >= _SECONDS[unit] and seconds % _SECONDS[unit] == 0:
            return f"{seconds / _SECONDS[unit]:g}{unit}"
    return f"{seconds:g}s"


def human_bytes(count: int) -> str:
    """Return a number of bytes with three or four digits and a unit."""
    number = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TiB"
