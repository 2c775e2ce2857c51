"""Exit codes, and what is said on the way out."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import zlog
from zlog._native import local
from zlog.cli.exit_codes import exit_code_of

from ..support.programs import ZLOG
from .conftest import Inside


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (zlog.ZlogError("x"), 1),
        (zlog.CorruptEntry("x"), 1),
        (zlog.EntryTooLarge("x"), 1),
        (zlog.AlreadyWritten("x"), 1),
        (zlog.BeyondTail("x"), 1),
        (zlog.LogNotFound("x"), 3),
        (zlog.NotWritten("x"), 4),
        (zlog.Invalidated("x"), 4),
        (zlog.LogExists("x"), 5),
        (zlog.StoreUnavailable("x"), 6),
        (zlog.StoreTimeout("x"), 6),
        (zlog.SequencerUnavailable("x"), 6),
        (zlog.SequencerTimeout("x"), 6),
        (zlog.ClassNotLoaded("x"), 7),
        (OSError("x"), 1),
        (KeyboardInterrupt(), 130),
    ],
)
def test_each_error_has_exit_code(error: BaseException, code: int) -> None:
    assert exit_code_of(error) == code


def test_errors_print_message_and_hint_without_traceback(inside: Inside) -> None:
    result = inside("read", "nothere")
    message, hint = result.err.splitlines()
    assert message == f"zlog: there is no log 'nothere' in {inside.url}"
    assert hint.startswith("zlog: hint: ")
    assert result.out == b""


def test_debug_option_prints_traceback(inside: Inside) -> None:
    result = inside("--debug", "read", "nothere")
    assert "Traceback" in result.err
    assert "zlog: hint: " in result.err


def test_warnings_of_the_library_have_the_usual_prefix() -> None:
    program = (
        "import logging, zlog.cli.main as main\n"
        "main.Session.connect = lambda _: logging.getLogger('zlog.x').warning('slow') or 1 / 0\n"
        "main.command.main(['ls'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.stderr.decode().splitlines()[0] == "zlog: slow"


def test_missing_liblmdb_error_has_install_hint(tmp_path: Path) -> None:
    module = tmp_path / "local.so"
    module.write_bytes(Path(local.__file__).read_bytes().replace(b"liblmdb.so.0", b"liblmdb.so.X"))
    program = (
        "import sys, importlib.util as util\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'zlog._native.local':\n"
        f"            return util.spec_from_file_location(name, {str(module)!r})\n"
        "sys.meta_path.insert(0, Finder())\n"
        "import zlog_command\n"
        "zlog_command.main()"
    )
    script = tmp_path / "zlog"
    script.write_text(program)
    done = subprocess.run([sys.executable, script, "ls"], capture_output=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(b"zlog: zlog's compiled part can't be loaded (liblmdb.so.X: ")
    assert b"liblmdb0 (Debian, Ubuntu)" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_unexpected_exception_is_internal_error(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> list[str]:
        raise KeyError("lost")

    monkeypatch.setattr(zlog.Log, "list", broken)
    result = inside("ls")
    assert result.code == 1
    assert "internal error: KeyError: 'lost'" in result.err
    assert "--debug" in result.err
    assert "Traceback" in inside("ls", "--debug").err


def test_control_c_during_imports_prints_no_traceback() -> None:
    command = [sys.executable, "-X", "importtime", ZLOG, "--version"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.split()[-1].startswith(b"zlog."):
                process.send_signal(signal.SIGINT)
                break
        rest = process.stderr.read()
        assert process.wait(20) == -signal.SIGINT
    assert b"Traceback" not in rest
