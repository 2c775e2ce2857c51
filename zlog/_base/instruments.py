"""Who wants to see what handles do: none, unless a program has enabled metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

attached: list[Callable[[Any], None]] = []
"""Called with each client of a log that is opened."""
