"""The distribution that this package is installed from: its name, its version, its extras."""

from __future__ import annotations

from importlib import metadata

_NAME = "zlog-ceph"


def version() -> str:
    """Return the version that is installed, `unknown` where the package was only copied."""
    try:
        return metadata.version(_NAME)
    except metadata.PackageNotFoundError:
        return "unknown"


def requirements(extra: str) -> str:
    """Return what an extra of pyproject.toml asks for, such as ``pyarrow>=18, pyspark>=4.2``."""
    return ", ".join(_required(extra)) or "what pyproject.toml names"


def how_to_install(extra: str) -> str:
    """Say how to install what an extra of pyproject.toml asks for, beside zlog."""
    found = [f"'{each}'" for each in _required(extra)]
    return " ".join(["pip install", *found] if found else [f"install the extra {extra} of zlog"])


def _required(extra: str) -> list[str]:
    try:
        required = metadata.requires(_NAME) or ()
    except metadata.PackageNotFoundError:
        return []
    found = (each.partition(";") for each in required)
    return sorted(what.strip() for what, _, when in found if f'"{extra}"' in when)
