"""What a worker of Spark prints when it ends."""

from __future__ import annotations

import traceback
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from zlog.spark._daemon import hush


@pytest.mark.parametrize(
    ("program", "error", "told"),
    [
        ("pyspark.daemon", BrokenPipeError(32, "Broken pipe"), False),
        ("pyspark.daemon", ValueError("bad"), True),
        ("another", BrokenPipeError(32, "Broken pipe"), True),
    ],
)
def test_only_closed_connection_errors_are_suppressed(
    program: str, error: Exception, told: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    main = ModuleType("__main__")
    main.__spec__ = ModuleSpec(program, None)
    main.traceback = traceback
    hush(main)
    try:
        raise error
    except (BrokenPipeError, ValueError):
        main.traceback.print_exc()
    assert (str(error) in capsys.readouterr().err) is told
