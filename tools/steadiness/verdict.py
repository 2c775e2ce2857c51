"""Did it stay bounded?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from steadiness.gauge import Taken

GROWTH_MAX = 1.5
"""How much the last third of a run may peak above the middle one: compaction comes in waves."""

_SLACK = {"objects": 16, "keys": 256, "bytes": 8 << 20, "database": 64 << 20}
"""What does not count as growth. RocksDB's files come and go in pieces of 64 MiB."""


def unbounded(samples: Sequence[Taken]) -> list[str]:
    """Return what grew from the middle third of a run to its last one, in words; empty: nothing.

    The first third does not count: the log grows to the size at which it is kept.
    """
    third = len(samples) // 3
    if third == 0:
        return ["too few samples to tell"]
    middle, last = samples[third : 2 * third], samples[2 * third :]
    found = []
    for what, slack in _SLACK.items():
        before, after = _peak(middle, what), _peak(last, what)
        if after > before * GROWTH_MAX + slack:
            found.append(f"{what} grew from {before:,} to {after:,}")
    return found


def _peak(samples: Sequence[Taken], what: str) -> int:
    value: Callable[[Taken], int] = lambda sample: getattr(sample, what)  # noqa: E731
    return max(map(value, samples))
