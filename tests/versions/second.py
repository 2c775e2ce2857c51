"""A second version of the object class, made of this one's sources as a developer would make it.

Its header has one more field, which older classes pass over and keep. A request has one more, which
they pass over. And what a writer fills that gave up is stored as a new kind of record, which they
can't read.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from ..support.ceph import run_cluster_program
from ..support.programs import REPOSITORY
from .newer import Changes, change

_LAST_FIELD = """    v("appenders_floor", appenders_floor, wire::position_or_end().since(8).heed());
"""
_GAVE_UP_VERSIONS = """    if (kind == RecordKind::kGaveUp) return {kVersion, 5};
    if (sparse()) return {"""
_GAVE_UP = """record.kind = RecordKind::kGaveUp;
  if (reason != FillReason::kWriterGaveUp) record.kind = RecordKind::kFill;
"""
_USED = "    header->use({positions[begin], positions[end - 1]});\n"

CHANGES: Changes = {
    "stripe/header.h": [
        ("  uint32_t value_bytes = 0;", "  uint64_t appends = 0;\n  uint32_t value_bytes = 0;"),
        (_LAST_FIELD, _LAST_FIELD + '    v("appends", appends, any().since(9));\n'),
    ],
    "wire/stripe_messages.h": [
        ("struct EpochRequest {\n", "struct EpochRequest {\n  bool verbose = false;\n"),
        (
            '{ v("epoch", epoch); }',
            '{\n    v("epoch", epoch);\n    v("verbose", verbose, any().since(2));\n  }',
        ),
    ],
    "stripe/record.h": [
        ("  kLost = 5,  ", "  kGaveUp = 9,\n  kLost = 5,  "),
        ("<uint64_t>(RecordKind::kSparse)", "<uint64_t>(RecordKind::kGaveUp)"),
        (
            "    if (kind == RecordKind::kFill)",
            "    if (kind == RecordKind::kFill || kind == RecordKind::kGaveUp)",
        ),
        (" kVersion = 4;", " kVersion = 5;"),
        ("    if (sparse()) return {", _GAVE_UP_VERSIONS),
    ],
    "stripe/record.cc": [
        (
            "    case RecordKind::kFill:\n",
            "    case RecordKind::kFill:\n    case RecordKind::kGaveUp:\n",
        ),
    ],
    "stripe/layout.cc": [
        ("  record.kind = RecordKind::kFill;\n", f"  {_GAVE_UP}"),
    ],
    "stripe/new_entries.cc": [
        (_USED, _USED + "    header->appends += end - begin;\n"),
    ],
}
"""By file below cls_zlog: what is replaced, by what."""


_QUICKLY = """
foreach(target zlog_protocol cls_zlog)
  target_compile_options(${target} PRIVATE -O0)
endforeach()
set_target_properties(zlog_protocol PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 40)
"""


def build(folder: Path) -> Path:
    """Build the class in a folder, and return the library."""
    source = folder / "source"
    for name in ("cls_zlog", "ceph-dev"):
        shutil.copytree(REPOSITORY / name, source / name)
    description = (REPOSITORY / "CMakeLists.txt").read_text()
    # In few pieces, without optimization: to compile it takes longer than what it is for.
    (source / "CMakeLists.txt").write_text(f"{description}{_QUICKLY}")
    change(source / "cls_zlog", CHANGES)
    program = source / "ceph-dev" / "cluster"
    return Path(run_cluster_program("build-class", str(folder / "build"), program=program).strip())
