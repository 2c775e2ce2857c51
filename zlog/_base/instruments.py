"""Observers of handles. There are none unless a program has enabled metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

attached: list[Callable[[Any], None]] = []
"""Called with the client of each log that is opened."""
