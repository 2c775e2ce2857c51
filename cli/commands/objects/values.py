"""Values of objects as JSON, and the keys that are requested."""

from __future__ import annotations

from typing import Any

import click

prefix_option = click.option(
    "--prefix",
    metavar="TEXT",
    help="Select keys of a map or members of a set that begin with this text.",
)


def json_of(value: Any) -> Any:
    """Return a value for JSON. The holder of a lock becomes its fields."""
    return value._asdict() if isinstance(value, tuple) and hasattr(value, "_asdict") else value
