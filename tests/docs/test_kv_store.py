"""The key-value store of docs/wal.md, killed at any moment: what it confirmed is there, once."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ..support.programs import REPOSITORY

KILLS = int(os.environ.get("ZLOG_KV_KILLS", "6"))
"""The run that docs/correctness.md speaks of had 200."""

COMMANDS = 400


class Store:
    """The program, and what it has answered."""

    def __init__(self, url: str, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(REPOSITORY / "examples" / "kv_store.py"), url, "wal", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, command: str) -> str | None:
        """Have a command answered; None: it died before."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return None
        answer = self.process.stdout.readline()
        return answer.rstrip() if answer.endswith("\n") else None

    def kill(self, *, flushing: float | None = None) -> None:
        """Kill it, some seconds after it was told to write its table."""
        if flushing is not None:
            assert self.process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.write("flush\n")
                self.process.stdin.flush()
            time.sleep(flushing)
        self.process.kill()
        self.process.communicate()

    def end(self) -> None:
        """Close it in order."""
        self.process.communicate(timeout=60)
        assert self.process.returncode == 0


@pytest.mark.parametrize("store_url", ["embedded"], indirect=True)
def test_confirmed_writes_survive_kills_once(store_url: str, tmp_path: Path) -> None:
    chance = random.Random(1)
    folder = tmp_path / "table"
    folder.mkdir()
    total = [0, 0]  # what the counter is at the least and at the most
    values: dict[str, set[str]] = {}  # what each key may have
    for kill in range(KILLS):
        store = Store(store_url, folder)
        found = store.ask("get total")
        assert found is not None
        number = int(found or "0")
        assert total[0] <= number <= total[1], f"after {kill} kills"
        total = [number, number]
        for key, allowed in values.items():
            value = store.ask(f"get {key}")
            assert value in allowed, f"{key} after {kill} kills"
            allowed.intersection_update({value or ""})
        deadline = time.monotonic() + chance.uniform(0.01, 0.4)
        for count in range(COMMANDS):
            if time.monotonic() > deadline:
                if kill % 2:
                    break  # in the middle of writing the table
                store.process.send_signal(signal.SIGKILL)
            total[1] += 1
            if store.ask("add total 1") is None:
                break
            total[0] += 1
            key, value = f"key{chance.randrange(5)}", f"{kill}.{count}"
            before = values.setdefault(key, {""})
            before.add(value)
            if store.ask(f"set {key} {value}") is None:
                break
            values[key] = {value}
        store.kill(flushing=chance.uniform(0, 0.004))
    store = Store(store_url, folder)
    number = int(store.ask("get total") or "0")
    assert total[0] <= number <= total[1]
    assert number > KILLS
    assert store.ask("flush") == "ok"
    store.end()


@pytest.mark.parametrize("store_url", ["embedded"], indirect=True)
def test_fenced_store_keeps_writes_of_successor(store_url: str, tmp_path: Path) -> None:
    folder = tmp_path / "table"  # made by the first store
    stores = [Store(store_url, folder)]
    assert stores[0].ask("add total 1") == "ok"
    stores.append(Store(store_url, folder))
    assert stores[1].ask("add total 1") == "ok"
    assert stores[1].ask("flush") == "ok"
    assert stores[0].ask("flush") == "ok"  # it has not noticed yet
    assert stores[0].ask("add total 1") is None
    stores[0].process.communicate(timeout=60)
    assert stores[0].process.returncode == 1
    stores[1].kill()
    stores.append(Store(store_url, folder))
    assert stores[2].ask("get total") == "2"
    stores[2].end()
    elsewhere = Store(store_url, tmp_path / "other")
    assert elsewhere.ask("get total") is None  # its log begins behind an empty table
    elsewhere.process.communicate(timeout=60)
    assert elsewhere.process.returncode == 1
