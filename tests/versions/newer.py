"""A second version of the Python package, made of this one: a client and a sequencer.

Each of its requests to the class has one more field, and it speaks another version of the protocol
between clients and sequencers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..support.programs import copy_package

Changes = Mapping[str, Sequence[tuple[str, str]]]
"""Pairs of an old and a new text, by file."""

CHANGES: Changes = {
    "_sequencer/frames.py": [("PROTOCOL_VERSION = 1\n", "PROTOCOL_VERSION = 2\n")],
    "_io/base.py": [
        (
            "store.submit(queue, token, calls)",
            "store.submit(queue, token, [_further(*call) for call in calls])",
        ),
        (
            "class Driver(ProcessBound, ABC)",
            """def _further(name: str, method: str, payload: object) -> tuple[str, str, object]:
    if isinstance(payload, bytes):
        size = int.from_bytes(payload[2:6], "little") + 1
        head = bytes([payload[0] + 1, payload[1]]) + size.to_bytes(4, "little")
        payload = head + payload[6 : 5 + size] + b"\\x01" + payload[5 + size :]
    return name, method, payload


class Driver(ProcessBound, ABC)""",
        ),
    ],
}

START = """
import sys
# An editable install redirects imports of zlog to the sources; the current folder may hold them.
sys.meta_path[:] = [each for each in sys.meta_path if "zlog_ceph" not in type(each).__module__]
import zlog
"""
"""Code that Python runs first if its path has a module ``sitecustomize``."""


def install(folder: Path) -> Path:
    """Put the package into a folder for ``PYTHONPATH``, and return that."""
    package = copy_package(folder)
    (folder / "sitecustomize.py").write_text(START)
    change(package, CHANGES)
    return folder


def change(folder: Path, changes: Changes) -> None:
    """Replace some texts in files of a folder."""
    for name, replaced in changes.items():
        path = folder / name
        text = path.read_text()
        for old, new in replaced:
            assert old in text, f"{name} has changed: {old}"
            text = text.replace(old, new, 1)
        path.write_text(text)
