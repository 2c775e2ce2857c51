"""Tests of coroutines fail for what asyncio's debug mode and Python's warnings find in them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .support.programs import REPOSITORY

LOOP = "asyncio.get_running_loop()"
DATAGRAM = f"{LOOP}.create_datagram_endpoint(asyncio.Protocol, ('127.0.0.1', 9))"


@pytest.mark.parametrize(
    ("leak", "complaint"),
    [
        pytest.param("asyncio.sleep(0)", "coroutine 'sleep' was never awaited", id="coroutine"),
        pytest.param(
            f"await {DATAGRAM}", "unclosed transport", id="transport", marks=pytest.mark.long
        ),
        pytest.param(
            f"await asyncio.to_thread({LOOP}.call_soon, print)",
            "Non-thread-safe operation",
            id="call from another thread",
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_leak_fails_its_test(leak: str, complaint: str, tmp_path: Path) -> None:
    test = tmp_path / "test_leak.py"
    test.write_text(f"import asyncio\nasync def test_leak():\n    {leak}\n")
    words = ["-m", "pytest", "-c", REPOSITORY / "pyproject.toml", "-p", "no:cacheprovider", test]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert complaint in done.stdout
