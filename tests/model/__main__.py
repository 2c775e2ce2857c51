"""`python -m tests.model [VARIANT]`: search it all, or show how a broken variant fails."""

from __future__ import annotations

import sys

from .cases import CONFIGURATIONS, LONGER, VARIANTS, Configuration
from .search import exhaust, shortest


def main(arguments: list[str]) -> int:
    """Return 0 when the protocol holds, or when the variant that was asked for is found out."""
    if arguments:
        return max(_break(name) for name in arguments)
    return max(_hold(each) for each in (*CONFIGURATIONS, *LONGER))


def _hold(configuration: Configuration) -> int:
    found = exhaust(configuration.definitions)
    if found.violated:
        _tell(found.steps, found.violated)
    holds = found.complete and found.states >= configuration.states_min
    print(
        f"{configuration.name}: {found.states:,} states,"
        f" {'holds in all of them' if holds else 'DOES NOT HOLD, or was not searched to the end'}",
        flush=True,
    )
    return 0 if holds else 1


def _break(name: str) -> int:
    variants = {each.name: each for each in VARIANTS}
    if name not in variants:
        print(f"no variant {name}; there are: {', '.join(variants)}", file=sys.stderr)
        return 2
    found = shortest((*variants[name].definitions, name))
    _tell(found.steps, found.violated or "nothing")
    return 0 if found.violated == variants[name].violated else 1


def _tell(steps: tuple[str, ...], violated: str) -> None:
    for number, step in enumerate(steps, 1):
        print(f"{number:3} {step}")
    print(f"violated: {violated}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
