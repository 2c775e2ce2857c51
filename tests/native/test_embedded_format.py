"""What lies in the embedded store's files is what docs/formats says."""

from __future__ import annotations

import errno
import re
import struct
from pathlib import Path

from zlog._native import messages
from zlog._native.local import EmbeddedStore

from ..support.programs import REPOSITORY
from .support import SECONDS, run

PAGES = REPOSITORY / "docs" / "formats"

# Prints every key and value of a database, through LMDB itself.
DUMP = """
    import ctypes, sys
    lmdb = ctypes.CDLL("liblmdb.so.0")
    class Value(ctypes.Structure):
        _fields_ = [("size", ctypes.c_size_t), ("data", ctypes.c_void_p)]
        def __str__(self):
            return ctypes.string_at(self.data, self.size).hex(" ")
    READ_ONLY, NEXT = 0x20000, 8
    env, txn, cursor = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    lmdb.mdb_env_create(ctypes.byref(env))
    assert lmdb.mdb_env_open(env, sys.argv[1].encode(), READ_ONLY, 0) == 0
    assert lmdb.mdb_txn_begin(env, None, READ_ONLY, ctypes.byref(txn)) == 0
    assert lmdb.mdb_cursor_open(txn, 1, ctypes.byref(cursor)) == 0
    key, value = Value(), Value()
    while lmdb.mdb_cursor_get(cursor, ctypes.byref(key), ctypes.byref(value), NEXT) == 0:
        print(key, "→", value if value.size <= 16 else f"{value.size} bytes")
"""


INCARNATION = re.compile(r"^(49 →) ((?:[0-9a-f]{2} ?){16})$", re.MULTILINE)
"""What is random of it."""


def test_database_matches_documentation(tmp_path: Path) -> None:
    with EmbeddedStore(tmp_path) as store:
        request = messages.head_create("a", 1)
        assert store.execute("zlog.a.head", "head_create", request, SECONDS)[0] == 0
    page = (PAGES / "embedded.md").read_text()
    example = re.search(r"```text embedded\n(.*?)```", page, re.DOTALL)
    assert example is not None
    assert re.sub(INCARNATION, r"\1 16 bytes", run(DUMP, tmp_path)) == example[1]


def test_refused_object_is_not_stored(tmp_path: Path) -> None:
    with EmbeddedStore(tmp_path) as store:
        code, _ = store.execute("zlog.a.head", "head_create", b"\x01 malformed", SECONDS)
        assert code == -errno.EINVAL
    assert len(run(DUMP, tmp_path).splitlines()) == 3


def test_shared_sequencer_file_matches_documentation(tmp_path: Path) -> None:
    log_id, epoch, tail = 5, 7, 11
    with EmbeddedStore(tmp_path) as store:
        shared = store.sequencer()
        assert shared is not None
        assert shared.activate(log_id, epoch, tail)
        assert shared.next(log_id, epoch, 2) == tail
    content = (tmp_path / "sequencer").read_bytes()
    assert len(content) == 131328
    boot = Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    assert content[:52] == b"zlogseqr" + struct.pack("<II", 2, 128) + boot
    incarnation = INCARNATION.search(run(DUMP, tmp_path))
    assert incarnation is not None
    assert content[136:152] == bytes.fromhex(incarnation[2])
    assert struct.unpack_from("<Q", content, 152) == (1,)
    slot = content[256 + log_id * 128 :][:128]
    assert struct.unpack_from("<QIIQQII", slot, 40) == (log_id, 1, 0, epoch, tail + 2, 2, 0)
