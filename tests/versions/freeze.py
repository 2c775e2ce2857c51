"""Keeps what a release stores as test data: every later version must read it and write it on.

`python -m tests.versions.freeze` makes the folder of the version that is installed, once: in it an
embedded store, the same as objects' bytes, and an export. What is frozen is never made again.
"""

from __future__ import annotations

import json
import lzma
import sys
import tarfile
import tempfile
from pathlib import Path

import zlog

from ..client.transfers import exported
from ..conformance.stored import Content, MemoryDoor
from ..support.stores import listed
from .parts import PARTS

TESTDATA = Path(__file__).parent / "testdata"
STORE, OBJECTS, EXPORT = "store.tar.xz", "objects.json.xz", "orders.zlog.xz"


def freeze(folder: Path) -> None:
    """Make a store and write it down in each way.

    Raises:
        FileExistsError: the folder is there.
    """
    folder.mkdir(parents=True)
    with zlog.connect("mem://") as store:
        for part in PARTS:
            part.make(store)
        (folder / OBJECTS).write_bytes(lzma.compress(_written(store)))
        with zlog.Log.open(store, "orders") as log:
            (folder / EXPORT).write_bytes(lzma.compress(exported(log, cursors=True)))
    with tempfile.TemporaryDirectory() as place:
        with zlog.connect(Path(place).as_uri()) as store:
            for part in PARTS:
                part.make(store)
        with tarfile.open(folder / STORE, "w:xz") as archive:
            archive.add(Path(place) / "data.mdb", "data.mdb")


def _written(store: zlog.Store) -> bytes:
    door = MemoryDoor(store)  # type: ignore[arg-type]
    objects = {name: door.load(name) for name in listed(store, "zlog.")[0]}
    return json.dumps(
        {
            name: {
                "attrs": {key.decode(): value.hex() for key, value in each.attrs.items()},
                "omap": {key.decode(): value.hex() for key, value in each.omap.items()},
                "stream": each.stream.hex(),
            }
            for name, each in objects.items()
        }
    ).encode()


def objects_of(folder: Path) -> dict[str, Content]:
    """Return what is frozen as objects."""

    def of(values: dict[str, str]) -> dict[bytes, bytes]:
        return {key.encode(): bytes.fromhex(value) for key, value in values.items()}

    found = json.loads(lzma.decompress((folder / OBJECTS).read_bytes()))
    return {
        name: Content(of(each["attrs"]), of(each["omap"]), bytes.fromhex(each["stream"]))
        for name, each in found.items()
    }


def unpack(archive: Path, folder: Path) -> zlog.Store:
    """Put an embedded store that was frozen into a folder, and open it."""
    with tarfile.open(archive) as packed:
        content = packed.extractfile("data.mdb")
        assert content is not None
        (folder / "data.mdb").write_bytes(content.read())
    return zlog.connect(folder.as_uri())


def main() -> None:
    """Freeze the installed version."""
    folder = TESTDATA / ".".join(zlog.__version__.split(".")[:2])
    try:
        freeze(folder)
    except FileExistsError:
        sys.exit(f"{folder} is frozen: it stays as it is")


if __name__ == "__main__":
    main()
