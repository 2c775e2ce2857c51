"""Damaged pages of LMDB, which has no checksums: an error or a gap; no process is aborted."""

from __future__ import annotations

import errno
import json
import signal
from pathlib import Path

import pytest

from zlog._native.local import EmbeddedStore

from .support import run, seal, write

# Makes a store, and then copies of it with one page in the place of another. A child for each reads
# the whole log, appends and trims. Prints how each ended: 0 when nothing was noticed, 1 when it got
# an error, or the signal that killed it.
DAMAGE = """
    import json, os, random, signal, sys, zlog
    from pathlib import Path
    chance, folder = random.Random(1), Path(sys.argv[1])
    with zlog.connect(folder / "good") as store, zlog.Log.create(store, "orders", width=3) as log:
        for _ in range(40):
            log.append_many([chance.randbytes(chance.choice([10, 100, 3000])) for _ in range(20)])
        for _ in range(40):
            log.append(chance.randbytes(chance.choice([5, 50, 500])))
    good = (folder / "good" / "data.mdb").read_bytes()
    pages = [good[at : at + 4096] for at in range(0, len(good), 4096)]

    def use(path):
        with zlog.connect(path) as store:
            with zlog.Log.open(store, "orders", hole_timeout=0.01, timeout=1) as log:
                list(log.read_range(0))
                log.append(b"more")
                log.trim_to(300)

    def child(path):
        signal.alarm(3)  # LMDB may list billions of pages that a damaged one claims
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            use(path)
        except zlog.ZlogError:
            os._exit(1)
        os._exit(0)

    endings = []
    for number in range(int(sys.argv[2])):
        damaged, path = list(pages), folder / str(number)
        damaged[chance.randrange(2, len(pages))] = chance.choice(pages[2:])
        path.mkdir()
        (path / "data.mdb").write_bytes(b"".join(damaged))
        pid = os.fork()
        if pid == 0:
            child(path)
        endings.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    print(json.dumps(endings))
"""


@pytest.mark.long
def test_damaged_pages_never_abort_process(tmp_path: Path) -> None:
    endings = json.loads(run(DAMAGE, tmp_path, 24))
    assert 1 in endings, "no damage was met"
    assert -signal.SIGABRT not in endings


# Writes in the caller's thread, which keeps LMDB's lock after it has found damage. The damage is
# undone, so that other processes can write.
FIND = """
    import os, struct, sys
    from zlog._native.local import EmbeddedStore
    from zlog._native.writes import encode_write
    store = EmbeddedStore(sys.argv[1])

    def write(position):
        request = encode_write(1, 1, bytes(16), 1, [position], [position], [b"x" * 100])
        return store.execute("object", "write", request, 5.0)[0]

    assert [write(position) for position in range(1000, 1010)] == [0] * 10
    file = os.open(sys.argv[1] + "/data.mdb", os.O_RDWR)
    pages = range(8192, os.fstat(file).st_size, 4096)
    branches = [page for page in pages if os.pread(file, 12, page)[10:] == struct.pack("<H", 1)]
    sizes = [os.pread(file, 2, page + 12) for page in branches]
    for page in branches:
        os.pwrite(file, struct.pack("<H", 18), page + 12)
    print(write(1010))
    for page, size in zip(branches, sizes):
        os.pwrite(file, size, page + 12)
    store.close()
    again = EmbeddedStore(sys.argv[1])
    store = again
    print(write(1010))
    again.close()
"""


def test_others_can_write_after_finder_of_damage_has_ended(tmp_path: Path) -> None:
    with EmbeddedStore(tmp_path) as store:
        seal(store)
        assert [write(store, [position], b"x" * 100) for position in range(300)] == [0] * 300
        assert run(FIND, tmp_path).split() == [str(-errno.EIO)] * 2
        assert write(store, [2000]) == 0
