"""Damaged pages of LMDB, which has no checksums: an error or a gap; no process is aborted."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from .support import run

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
        signal.alarm(10)
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
    endings = json.loads(run(DAMAGE, tmp_path, 40))
    assert 1 in endings, "no damage was met"
    assert -signal.SIGABRT not in endings
