"""A mirror whose copying process is killed again and again, while its source is written to."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

import zlog

from ..cli.conftest import Cli
from ..support.logs import is_there

KILLS = 15
SEED = 4


@pytest.mark.long
@pytest.mark.parametrize("store_url", ["embedded", "ceph-memstore"], indirect=True)
def test_mirror_killed_at_any_moment(tmp_path: Path, store_url: str) -> None:
    chances = random.Random(SEED)
    source = (tmp_path / "source").as_uri()
    cli, target = Cli(source), Cli(store_url)
    stop = threading.Event()
    with (
        zlog.connect(source) as store,
        zlog.Log.create(store, "orders", width=3, stripe_unit=2) as log,
    ):

        def write() -> None:
            while not stop.is_set():
                log.append_many([random.randbytes(chances.randint(0, 2000))] * 50)
                stop.wait(0.005)

        writer = threading.Thread(target=write)
        writer.start()
        tails: list[int] = []
        kills, patience = 0, 1.0  # which grows where the machine is too busy for any progress
        while kills < KILLS or len({*tails}) <= KILLS / 4:
            assert kills < 5 * KILLS, "it was killed before it had copied anything"
            kills += 1
            with cli.start("mirror", "orders", "--to", store_url, "--follow") as copier:
                with pytest.raises(Exception, match="timed out"):
                    copier.wait(patience * chances.uniform(0.3, 1.2))
                copier.kill()
            before = len({*tails})
            with zlog.connect(store_url) as there:
                if is_there(there, "orders"):
                    copy = zlog.Log.open(there, "orders")
                    tails.append(copy.tail())
                    assert len([*copy.read_range()]) == tails[-1]
            if len({*tails}) == before:
                patience *= 1.2
        stop.set()
        writer.join()
        assert tails == sorted(tails)
        cli.ok("mirror", "orders", "--to", store_url)
        # Killed in a change of the layout it leaves objects, which the next trim removes.
        found = target.ok("check", "orders").splitlines()
        assert [line for line in found if not line.startswith(b"leftover: ")] == []
        assert target.ok("export", "orders") == cli.ok("export", "orders")
