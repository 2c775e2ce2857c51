"""Finds the cause of a failure in Spark: an error of zlog, or Spark's own error in one line."""

from __future__ import annotations

import re

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

import zlog
from zlog.errors import ZlogError

FAILURES = (PySparkException, Py4JError)
"""What PySpark raises if Spark itself fails."""

_RAISED = re.compile(r"^zlog\.(?:\w+\.)+(\w+): (.+)$(?:\nHint: (.+)$)?", re.MULTILINE)

_LOSS = "To continue without the lost entries, use --allow-data-loss."
_HINTS = {
    "Invalidated": _LOSS,
    "CorruptEntry": _LOSS,
    "LogNotFound": "To read the log that now has the name, use a new table and checkpoint.",
    "WrongCheckpoint": "Use a separate table and checkpoint for this log (--to, --checkpoint).",
}

_CAUSED = re.compile(r"^Caused by: (.+)$", re.MULTILINE)
_CALLED = re.compile(r"^: (.+)$", re.MULTILINE)
_PYTHON = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(.+)$", re.MULTILINE)
_PACKAGE = re.compile(r"^(?:[a-z]\w*\.)+(?=[A-Z])")
_STATE = re.compile(r"(?:\s*SQLSTATE: \w+;?)+$")

_WORDS = (
    (
        re.compile("No FileSystem for scheme"),
        "Add the package that supports such URLs with --spark-conf spark.jars.packages=….",
    ),
    (
        re.compile("IOException|NotDirectory|AlreadyExists|AccessControl|AccessDenied|Permission"),
        "Check whether Spark may write to the paths of the table and the checkpoint.",
    ),
)
_HINT = "--debug shows Spark's whole output."


def cause(error: BaseException) -> BaseException:
    """Return the error of zlog that made Spark fail, or else Spark's error in one line."""
    raised = _RAISED.findall(str(error))
    if raised:
        return _of_this_library(*raised[-1])
    if not isinstance(error, FAILURES):
        return error
    line = _line(error)
    hint = next((hint for words, hint in _WORDS if words.search(line)), _HINT)
    return ZlogError(f"Spark failed: {line}", hint=hint)


def _of_this_library(name: str, message: str, hint: str) -> ZlogError:
    kind = getattr(zlog, name, ZlogError)
    hint = _HINTS.get(name, hint.strip())
    try:
        error: ZlogError = kind(message.strip(), hint=hint or None)
    except TypeError:  # its attributes are not in the message
        return ZlogError(message.strip(), hint=hint or None)
    return error


def _line(error: BaseException) -> str:
    """Return the first cause that Spark reports."""
    text = f"{error}\n{getattr(error, '_stackTrace', None) or ''}"
    found = _PYTHON.findall(text) or _CAUSED.findall(text) or _CALLED.findall(text)
    line: str = found[-1] if found else text.strip().partition("\n")[0]
    return _STATE.sub("", _PACKAGE.sub("", line.strip()))
