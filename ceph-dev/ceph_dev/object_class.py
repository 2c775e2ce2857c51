"""The folder of object classes that the OSDs load: the distribution's classes, and zlog's."""

from __future__ import annotations

import fcntl
import shutil
import sys
from pathlib import Path

from . import ClusterError
from .daemon import program, run
from .settings import Folder

CLASS = "zlog"
LIBRARY = f"libcls_{CLASS}.so"
NO_CLASS = "none"
SOURCE = Path(__file__).resolve().parents[2]
TREE = SOURCE / "build" / "class"
"""The shared folder in which the class is built, as by `make build`, unless a class is given."""

_PACKAGES = "apt-get install g++ make cmake rados-objclass-dev libradospp-dev"


def class_list(with_class: bool) -> str:
    """Return the classes that OSDs may load: Ceph's defaults, which it replaces, and zlog's."""
    option = ("--show-config-value", "osd_class_load_list")
    defaults = run([program("ceph-osd"), "--no-mon-config", *option], "ceph-osd").strip()
    return f"{defaults} {CLASS}" if with_class else defaults


def fill_class_folder(folder: Folder, library: Path | None) -> None:
    """Fill the cluster's class folder with links to the distribution's classes and a copy of ours.

    It is a copy, since an OSD that starts later must load the same class as the others, not one
    that is being built. If `library` is None, our class is left out.
    """
    option = ("--show-config-value", "osd_class_dir")
    # Debian 13's default is relative to the daemons' working directory, which is the root.
    source = Path("/", run([program("ceph-osd"), "--no-mon-config", *option], "ceph-osd").strip())
    shutil.rmtree(folder.classes, ignore_errors=True)
    folder.classes.mkdir(parents=True)
    for path in source.glob("libcls_*.so*"):
        if not path.name.startswith(LIBRARY):
            (folder.classes / path.name).symlink_to(path)
    if library is not None:
        shutil.copyfile(library, folder.classes / LIBRARY)


def build(tree: Path) -> Path:
    """Build the class from this repository in the folder `tree`, and return the library."""
    tree.mkdir(parents=True, exist_ok=True)
    with (tree / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several clusters may start at the same time
        return _build(tree)


def _build(tree: Path) -> Path:
    cmake = _build_tool("cmake")
    configure = [cmake, "-S", str(SOURCE), "-B", str(tree), "-DCMAKE_BUILD_TYPE=Release"]
    run(
        [*configure, "-DZLOG_WITH_OSD_CLASS=ON", "-DZLOG_WITH_PYTHON=OFF"],
        "configuring the object class",
    )
    run([cmake, "--build", str(tree), "--parallel", "2"], "building the object class")
    found = sorted(tree.rglob(LIBRARY))
    if not found:
        raise ClusterError(f"the build in {tree} made no {LIBRARY}")
    return found[0]


def _build_tool(name: str) -> str:
    # If the distribution's cmake is too old, a virtual environment may have a newer one.
    environments = (SOURCE / ".venv" / "bin", Path(sys.executable).parent)
    found = (shutil.which(name, path=folder) for folder in environments)
    path = next(filter(None, found), None) or shutil.which(name)
    if path is None:
        raise ClusterError(f"{name} is not installed: {_PACKAGES}, or give the class by --class")
    return path
