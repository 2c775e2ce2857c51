"""The protocol core in C++: its own tests and fuzzers, under the sanitizers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ..conformance import hostile
from ..fuzz.corpus import inputs
from ..support.ceph import unavailable

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.fixture(scope="module")
def programs() -> Path:
    """Build the programs, under the sanitizers; answer the folder that they are in.

    Without optimization: to compile them takes longer than to run them. Of another folder, which
    `ZLOG_CLS_TESTS` names, the flags may be others: `make coverage`.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    cmake = shutil.which("cmake", path=path)
    if cmake is None:
        pytest.skip("cmake is not installed")
    folder = Path(os.environ.get("ZLOG_CLS_TESTS", ROOT / "build" / "cls-tests"))
    environment = {"CXXFLAGS": "-O0", **os.environ}
    steps = [
        [cmake, "-S", str(HERE), "-B", str(folder)],
        [cmake, "--build", str(folder), "--parallel", "2"],
    ]
    for command in steps:
        built = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment
        )
        assert built.returncode == 0, built.stdout + built.stderr
    return folder


def run(program: Path, *arguments: str) -> str:
    """Run a program that says on stderr what is not so; answer what it printed."""
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-200:] + done.stderr
    return done.stdout


def test_hosts_apply_methods_atomically(programs: Path) -> None:
    run(programs / "host_test")


def test_client_side_execution_is_serialized(programs: Path) -> None:
    run(programs / "client_side_test")


def test_librados_declarations_match_header(programs: Path) -> None:
    """The comparison is made by the compiler: where it differs there is no program."""
    if (found := run(programs / "librados_test").strip()) != "compared":
        unavailable(found)


def test_protocol_core_never_reads_clock() -> None:
    """All timestamps are those of clients, so that OSDs' clocks may show anything."""
    asks = re.compile(r"chrono|gettime|ceph_clock|std::time|\butime|\btime\(")
    sources = [
        path
        for space in ("base", "wire", "stripe", "head", "osd")
        for path in (ROOT / "cls_zlog" / space).iterdir()
    ]
    assert len(sources) > 40
    assert [path.name for path in sources if asks.search(path.read_text())] == []


def test_messages_are_extensible(programs: Path) -> None:
    run(programs / "messages_test")


@pytest.mark.long
def test_methods_survive_fuzzing(programs: Path) -> None:
    """It refuses to begin without a sound request of each method."""
    run(programs / "fuzz_methods", "1", "20000")


def test_conformance_requests_at_the_fuzzer(programs: Path, tmp_path: Path) -> None:
    """What a long run starts from is for each method of the class, in the class's order."""
    listed = (ROOT / "cls_zlog" / "method_table.h").read_text()
    methods = re.findall(r'^  v\(Handler<[\w:<>]+>\(\), "(\w+)"', listed, re.MULTILINE)
    assert methods == [*hostile.SOUND]
    assert {name.partition("-")[0] for name, _ in inputs(methods)} == {*methods}
    files = []
    for name, data in inputs(methods):
        files.append(tmp_path / name)
        files[-1].write_bytes(data)
    run(programs / "fuzz_methods", *map(str, files))


def test_sequencer_hot_path_survives_fuzzing(programs: Path) -> None:
    run(programs / "fuzz_grants", "1", "100000")
