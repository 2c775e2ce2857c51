"""What a child says while it starts is kept back, and what it says later is passed on."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SECONDS = 60

PROGRAM = """
import subprocess, sys
from zlog.cli.commands.spark.startup import quiet_startup

with quiet_startup():
    subprocess.run(["/bin/sh", "-c", "echo early >&2"], check=True)
    child = subprocess.Popen(["/bin/sh", "-c", "read go; printf late >&2"], stdin=subprocess.PIPE)
    if sys.argv[1] == "fails":
        raise SystemError("it did not start")
print("after", file=sys.stderr, flush=True)
child.communicate(b"go")
sys.stdin.read()
"""


def command(how: str) -> list[str]:
    return [sys.executable, "-c", PROGRAM, how]


def test_startup_output_of_started_child_is_hidden() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(command("starts"), stdin=pipe, stderr=pipe) as process:
        assert process.stderr is not None
        assert process.stderr.read(len("after\nlate")) == b"after\nlate"
        assert process.communicate(timeout=SECONDS)[1] == b""
    assert process.returncode == 0


def test_output_of_failed_child_is_shown() -> None:
    done = subprocess.run(command("fails"), capture_output=True, timeout=SECONDS, check=False)
    said = done.stderr.decode()
    assert said.startswith("early\nTraceback")
    assert said.endswith("SystemError: it did not start\n")


@pytest.mark.parametrize("how", ["starts", "fails"])
def test_child_ends_with_closed_stderr(how: str) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    try:
        done = subprocess.run(
            command(how), stdin=subprocess.DEVNULL, stderr=writes, timeout=SECONDS, check=False
        )
    finally:
        os.close(writes)
    assert done.returncode != 0
