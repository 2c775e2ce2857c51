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
    try:
        required = metadata.requires(_NAME) or ()
    except metadata.PackageNotFoundError:
        return "what pyproject.toml names"
    found = (each.partition(";") for each in required)
    return ", ".join(sorted(what.strip() for what, _, when in found if f'"{extra}"' in when))


def how_to_install(extra: str) -> str:
    """Say how to install zlog again, with one of the optional dependencies in pyproject.toml.

    It is on no package index, so that begins with a clone.
    """
    return " ".join(["in a clone of zlog: pip install", f"'.[{extra}]'"])
