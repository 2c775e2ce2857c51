"""The distribution that contains this package: its version and its extras."""

from __future__ import annotations

from importlib import metadata

_NAME = "zlog-ceph"


def version() -> str:
    """Return the installed version, or `unknown` if the package was copied without its metadata."""
    try:
        return metadata.version(_NAME)
    except metadata.PackageNotFoundError:
        return "unknown"


def requirements(extra: str) -> str:
    """Return the packages that an extra requires, for example ``pyarrow>=18, pyspark>=4.2``."""
    return ", ".join(_required(extra)) or "what pyproject.toml names"


def how_to_install(extra: str) -> str:
    """Return a command that installs the requirements of an extra."""
    found = [f"'{each}'" for each in _required(extra)]
    return " ".join(["pip install", *found] if found else [f"install the extra {extra} of zlog"])


def _required(extra: str) -> list[str]:
    try:
        required = metadata.requires(_NAME) or ()
    except metadata.PackageNotFoundError:
        return []
    found = (each.partition(";") for each in required)
    return sorted(what.strip() for what, _, when in found if f'"{extra}"' in when)
