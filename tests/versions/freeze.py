"""Makes a store to be kept as test data: what a release has stored, every later one must read.

`python -m tests.versions.freeze FILE.tar.xz` writes an embedded store with everything in it.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path

import zlog

LARGE = [bytes([65 + i]) * 12_000 for i in range(4)]
"""Together they go to the bytestream."""


def fill(store: zlog.Store) -> None:
    """Make a log with every kind of record, archived and loose stripes, cursors and deliveries."""
    with zlog.Log.create(store, "orders", width=2, options={"owner": "shop"}) as log:
        log.append_many([b"entry %d" % i for i in range(10)])
        log.append_many(LARGE)
        log.trim(3)
        for position in range(4):
            log.fill(_reserved(log, position))
        log.cursor("reader", create=5)
        log.deliver([b"delivered"], source="query", batch=1, part=0)
        log.reconfigure(width=4)
        log.append(b"in the second stripe")
        log.trim_to(2)
    with zlog.Log.create(store, "empty"):
        pass


def _reserved(log: zlog.Log, number: int) -> int:
    """Hand a position out that is not written."""
    sequencer = log.store.sequencer()
    assert sequencer is not None, number
    first = sequencer.next(log.view.log_id, log.view.epoch, 1)
    assert first is not None
    return first


def main() -> None:
    """Write the archive."""
    with tempfile.TemporaryDirectory() as folder:
        with zlog.connect((Path(folder) / "store").as_uri()) as store:
            fill(store)
        with tarfile.open(sys.argv[1], "w:xz") as archive:
            archive.add(Path(folder) / "store" / "data.mdb", "data.mdb")


if __name__ == "__main__":
    main()
