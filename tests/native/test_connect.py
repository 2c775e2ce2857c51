"""What `connect` takes for a store, what it makes, and what a store refuses to be used for."""

from __future__ import annotations

import copy
import os
import pickle
from pathlib import Path

import pytest

import zlog
from zlog import aio


@pytest.mark.parametrize("there", [True, False])
def test_connect_without_create_leaves_disk_unchanged(tmp_path: Path, there: bool) -> None:
    folder = tmp_path / "typo" / "store"
    if there:
        folder.mkdir(parents=True)
    for target in (folder, str(folder), folder.as_uri()):
        with pytest.raises(zlog.StoreUnavailable, match=f"no store in {folder}") as caught:
            zlog.connect(target, create=False)
        assert "zlog create" in caught.value.hint
        assert "$ZLOG_STORE" in caught.value.hint
        assert not caught.value.retryable
    assert [*tmp_path.iterdir()] == ([folder.parent] if there else [])
    assert not there or not [*folder.iterdir()]


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("below", ["", "store"])
def test_connect_refuses_regular_file(tmp_path: Path, create: bool, below: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"precious")
    with pytest.raises(zlog.StoreUnavailable, match=r"file.* is not a directory") as caught:
        zlog.connect(path / below, create=create)
    assert not caught.value.retryable
    assert "another path" in caught.value.hint
    assert path.read_bytes() == b"precious"


async def test_connect_without_create_opens_existing_store(tmp_path: Path) -> None:
    with pytest.raises(zlog.StoreUnavailable, match="there is no store"):
        await aio.connect(tmp_path, create=False)
    zlog.connect(tmp_path).close()
    zlog.connect(tmp_path, create=False).close()
    (await aio.connect(tmp_path, create=False)).close()
    zlog.connect("mem://", create=False).close()


@pytest.mark.parametrize("url", ["mem://shared", "mem:shared", "mem:///tmp", "mem://?timeout=1"])
def test_named_memory_store_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="use mem://"):
        zlog.connect(url)


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "soon"])
def test_invalid_connect_timeout_is_refused(seconds: str) -> None:
    with pytest.raises(ValueError, match="is not a number of seconds above 0"):
        zlog.connect(f"ceph://logs?timeout={seconds}")


@pytest.mark.parametrize(
    "rest",
    ["?timeout=1", "#old", "/a?b#c", "?mode=rw", "?mode=", "?mode=ro&x=1", "#mode=ro"],
)
def test_directory_url_refuses_settings(tmp_path: Path, rest: str) -> None:
    url = (tmp_path / "logs").as_uri() + rest
    with pytest.raises(ValueError, match=r"an embedded store accepts only \?mode=ro.*%3F"):
        zlog.connect(url)
    assert not [*tmp_path.iterdir()]


def test_directory_names_may_contain_special_characters(tmp_path: Path) -> None:
    path = tmp_path / "what? #1 100%"
    with zlog.connect(path) as store:
        zlog.connect(store.url).close()
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("word", ["mem", "logs", "...", "a b"])
def test_bare_word_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.chdir(tmp_path)
    for create in (True, False):
        with pytest.raises(ValueError, match="is not a store URL") as caught:
            zlog.connect(word, create=create)
        for advice in ("file:///ABSOLUTE/PATH", f"./{word}", f"ceph://{word}"):
            assert advice in str(caught.value)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("path", [".", "..", "./logs", "logs/", Path("logs")])
def test_path_is_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str | Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    monkeypatch.chdir(inside)
    with zlog.connect(path) as store:
        assert store.url == Path(os.path.realpath(path)).as_uri()


def test_store_cannot_be_copied_or_pickled(tmp_path: Path) -> None:
    with zlog.connect(tmp_path) as embedded, zlog.connect("mem://") as memory:
        for store in (embedded, memory):
            for duplicate in (pickle.dumps, copy.copy, copy.deepcopy):
                with pytest.raises(TypeError, match=f"open {store.url} in the other process"):
                    duplicate(store)
