"""Keys of logs with MACs: where they come from, and that nothing shows them."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

import zlog
from zlog._base.mac import Key

KEY = bytes(range(32))


@pytest.fixture
def one(memory: zlog.Store) -> Iterator[zlog.Log]:
    """A log with MACs, in memory."""
    with zlog.Log.create(memory, "orders", width=1, mac_key=KEY) as opened:
        yield opened


def test_a_key_comes_from_bytes_a_file_or_a_function(one: zlog.Log, tmp_path: Path) -> None:
    one.append(b"entry")
    path = tmp_path / "key"
    path.write_bytes(KEY)
    for key in (KEY, bytearray(KEY), path, lambda: KEY):
        with zlog.Log.open(one.store, "orders", mac_key=key) as log:  # type: ignore[arg-type]
            assert log.read(0).data == b"entry"
    for key, error in (
        (b"x" * 15, ValueError),
        (b"x" * 4097, ValueError),
        (lambda: b"", ValueError),
        (lambda: "text" * 8, TypeError),
        ("text" * 8, TypeError),
        (tmp_path / "missing", OSError),
    ):
        with pytest.raises(error) as failure:
            zlog.Log.open(one.store, "orders", mac_key=key)  # type: ignore[arg-type]
        assert "text" not in str(failure.value)
        assert "xxxx" not in str(failure.value)


def test_a_key_is_shown_nowhere(one: zlog.Log) -> None:
    text = b"not to be seen, whatever happens"
    with zlog.Log.create(one.store, "hidden", mac_key=text) as log:
        client = log._client
        key, mac = client.options.key, client.layout.macs.key
        assert key is not None
        shown = [repr(each) for each in (log, key, mac, client.options, log.view, vars(client))]
        assert "not to be seen" not in "".join(shown)
        for secret in (key, mac, client.options):
            with pytest.raises(TypeError, match="pickled"):
                pickle.dumps(secret)
        assert text not in log.view.encode()


def test_a_machine_without_openssl_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: bytes) -> None:
        raise RuntimeError("there is no libcrypto.so.3 of OpenSSL")

    monkeypatch.setattr("zlog._base.mac.MacKey", missing)
    with pytest.raises(zlog.ZlogError, match="libcrypto") as failure:
        Key(os.urandom(32)).of_log("orders", 1)
    assert "OpenSSL" in failure.value.hint
