"""What happened in a run, line by line, to find the reason of a failure."""

from __future__ import annotations

import asyncio


class Trace:
    """Lines with the virtual time, kept or printed at once."""

    def __init__(self, *, show: bool = False) -> None:
        self._show = show
        self.lines: list[str] = []

    def __call__(self, who: str, what: str) -> None:
        line = f"{asyncio.get_running_loop().time():10.4f}  {who:<12}  {what}"
        self.lines.append(line)
        if self._show:
            print(line)  # noqa: T201
