"""Divides the limit of a streaming batch among the logs that have new entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def fair_shares(
    wanted: Mapping[str, float], units: Mapping[str, float], total: float, last: str = ""
) -> dict[str, float]:
    """Return how much of each log fits into a batch.

    Logs that want less than an equal share get all of it, and the others divide the rest
    equally. If there is not enough for one entry of each log, the logs take turns.

    Args:
        wanted: how much each log has.
        units: how much one entry of each log takes. A log gets at least this, or nothing.
        total: the limit. The first log gets an entry even if that exceeds the limit.
        last: the log that the previous batch served last; the logs after it come first.
    """
    share = _equal_share([*wanted.values()], total)
    found: dict[str, float] = {}
    served = False
    for name in sorted(wanted, key=lambda name: (name <= last, name)):
        amount = min(wanted[name], max(units[name], share))
        if served and amount > total:
            break
        found[name] = amount
        served = served or amount > 0
        total -= amount
    return found


def _equal_share(wanted: list[float], total: float) -> float:
    """Return the largest share such that all amounts, each cut to the share, fit into the total."""
    left = total
    for index, amount in enumerate(sorted(wanted)):
        others = len(wanted) - index
        if amount * others > left:
            return left / others
        left -= amount
    return total


def count_in(stripes: Iterable[tuple[int, float]], amount: float) -> int:
    """Return how many entries have about ``amount`` bytes.

    Args:
        stripes: the number of positions in each stripe, and the average size of its entries.
        amount: the number of bytes, at least the size of the first entry.
    """
    total = 0
    for count, size in stripes:
        if count * size >= amount:
            return total + max(1 if not total else 0, int(amount / size))
        total += count
        amount -= count * size
    return total
