"""Where the files of a log are.

A root is a URL that ``pyarrow.fs`` understands, or a directory. Each log has a folder in the root,
which contains its files and the folder ``_incoming`` with files that are not recorded yet. Programs
that read the folder as a dataset ignore names that begin with ``_``.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote, urlsplit

import pyarrow as pa
from pyarrow import fs

from zlog.view import StripeFile

_INCOMING = "_incoming"
_CHUNK_BYTES = 8 << 20


@dataclass(frozen=True)
class Location:
    """A file or folder: a file system, and the path in it.

    Attributes:
        system: the file system.
        path: the path.
        url: the URL.
    """

    system: fs.FileSystem
    path: str
    url: str

    @classmethod
    def of(cls, url: str) -> Location:
        """Return the location of a URL or a path.

        Raises:
            ValueError: PyArrow does not support the URL.
            OSError: the connection failed.
        """
        if "://" not in url:
            if re.match(r"[a-z0-9]+:", url):
                raise ValueError(f"{url!r} is neither a path nor a URL, which has ://")
            url = Path(url).absolute().as_uri()
        elif "@" in urlsplit(url).netloc and not url.startswith("hdfs:"):
            raise ValueError("the URL has credentials; set them in the environment instead")
        system, path = _open(url)
        if "\0" in path:
            raise ValueError(f"{url} has a NUL character")
        return cls(system, path, url)

    def folder_of(self, log: str, log_id: int) -> Location:
        """Return the folder of a log in this root."""
        return self / f"{quote(log, safe='')}-{log_id:016x}"

    def __truediv__(self, name: str) -> Location:
        """Return a file or folder in this folder."""
        base, mark, query = self.url.partition("?")
        url = f"{base.rstrip('/')}/{quote(name)}{mark}{query}"
        return Location(self.system, f"{self.path.rstrip('/')}/{name}", url)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def incoming(self) -> Location:
        """Where a file is until it is recorded."""
        return self.parent / _INCOMING / self.name

    @property
    def parent(self) -> Location:
        """The folder of the file."""
        base, mark, query = self.url.partition("?")
        folder, url = self.path.rpartition("/")[0], base.rpartition("/")[0]
        return Location(self.system, folder, f"{url}{mark}{query}")

    def exists(self) -> bool:
        """Whether there is a file or folder here."""
        return self.system.get_file_info(self.path).type is not fs.FileType.NotFound

    def size(self) -> int | None:
        """Return the size of the file in bytes, or None if it does not exist."""
        info = self.system.get_file_info(self.path)
        return info.size if info.type == fs.FileType.File else None

    def holds(self, file: StripeFile) -> bool:
        """Whether the content of a file is here."""
        if self.size() != file.size:
            return False
        digest = hashlib.sha256()
        with self.system.open_input_stream(self.path) as stream:
            while some := stream.read(_CHUNK_BYTES):
                digest.update(some)
        return digest.digest() == file.checksum

    def files(self) -> list[fs.FileInfo]:
        """Return the files in this folder."""
        selector = fs.FileSelector(self.path, allow_not_found=True)
        return [each for each in self.system.get_file_info(selector) if each.is_file]

    def move_to(self, target: Location) -> None:
        """Rename the file. Another process may already have done so."""
        try:
            self.system.move(self.path, target.path)
        except OSError:
            if target.size() is None:
                raise

    def sync(self) -> None:
        """Make a local file and its name durable. Object stores do this when a file is closed."""
        if not isinstance(self.system, fs.LocalFileSystem):
            return
        for path in (self.path, *map(str, Path(self.path).parents[:2])):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            except OSError as error:  # some file systems refuse to sync folders
                if path == self.path or error.errno != errno.EINVAL:
                    raise
            finally:
                os.close(descriptor)

    def remove_folder(self, *, anything: bool = False) -> None:
        """Remove the folder, if it exists and is empty or may contain anything."""
        selector = fs.FileSelector(self.path, allow_not_found=True)
        if self.exists() and (anything or not self.system.get_file_info(selector)):
            self.system.delete_dir(self.path)

    def remove(self) -> None:
        """Remove the file, if it exists."""
        try:
            self.system.delete_file(self.path)
        except FileNotFoundError:
            return
        except OSError:
            if self.size() is not None:
                raise


@lru_cache(maxsize=64)
def _open(url: str) -> tuple[fs.FileSystem, str]:
    try:
        system, path = fs.FileSystem.from_uri(url)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{url}: {error}") from None
    return system, path


os.register_at_fork(after_in_child=_open.cache_clear)  # connections are not shared
