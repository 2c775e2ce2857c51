"""Which folders of cls_zlog include which: nothing that runs in an OSD needs code of clients."""

from __future__ import annotations

import re
from pathlib import Path

from .files import ROOT, described, tracked

FOLDER = "cls_zlog"

INCLUDE = re.compile(r'^#include "cls_zlog/([^"]+)"', re.MULTILINE)

METHODS = {"base", "wire", "stripe", "head", "repair", ""}
HOSTS = METHODS | {"host"}

MAY_INCLUDE: dict[str, set[str]] = {
    "base": set(),
    "wire": {"base"},
    "stripe": {"base", "wire"},
    "head": {"base", "wire"},
    "repair": {"base", "wire", "stripe", "head"},
    "": METHODS,
    "osd": METHODS,
    "client": METHODS,
    "host": METHODS,
    "host/lmdb": HOSTS,
    "host/memory": HOSTS,
    "host/client_side": HOSTS,
    "host/rados": HOSTS | {"host/client_side"},
    "describe": METHODS,
}
"""By the folder of a file, the other folders whose headers it may include."""

NEVER_IN_AN_OSD = re.compile(r"(client|host|describe)(/|$)")


def folder_of(name: str) -> str:
    """The folder of a file that is named from cls_zlog; the table of methods has none."""
    return "" if "/" not in name else name.rpartition("/")[0]


def includes() -> dict[str, list[str]]:
    """By each source file of cls_zlog, the headers that it includes, named from cls_zlog."""
    files = tracked(".cc", ".h", below=(FOLDER,))
    return {
        str(file.relative_to(ROOT / FOLDER)): INCLUDE.findall(file.read_text()) for file in files
    }


def test_folders_include_only_lower_folders() -> None:
    offences = [
        f"{name} includes {header}"
        for name, headers in includes().items()
        for header in headers
        if folder_of(header) not in MAY_INCLUDE[folder_of(name)] | {folder_of(name)}
    ]
    assert not offences, described(offences)


def test_object_class_excludes_client_code() -> None:
    """Of all that its sources include, directly or through other headers."""
    build = (ROOT / FOLDER / "CMakeLists.txt").read_text()
    (listed,) = re.findall(r"^set\(osd_folders ([^)]+)\)", build, re.MULTILINE)
    folders = {*listed.split(), "osd", ""}
    graph = includes()
    reached = {name for name in graph if folder_of(name) in folders and name.endswith(".cc")}
    assert {"osd/cls_zlog.cc", "methods.cc", "stripe/write.cc"} <= reached
    waiting = [*reached]
    while waiting:
        headers = {*graph[waiting.pop()]} - reached
        reached |= headers
        waiting += headers
    assert sorted(name for name in reached if NEVER_IN_AN_OSD.match(name)) == []


def test_design_page_lists_folders_run_in_osd() -> None:
    page = (ROOT / "docs" / "design" / "source-tree.md").read_text()
    rows = re.findall(r"^\| `([^`]+)` \| [^|]+ \| (yes|no) \|", page, re.MULTILINE)
    shown = {name.removesuffix("/").removeprefix(f"{FOLDER}/*.h"): runs for name, runs in rows}
    assert shown == {
        folder: "no" if NEVER_IN_AN_OSD.match(folder) else "yes" for folder in MAY_INCLUDE
    }


def test_every_folder_has_rule() -> None:
    folders = {str(Path(name).parent).replace(".", "") for name in includes()}
    assert folders == {*MAY_INCLUDE}
