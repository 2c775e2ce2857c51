"""What a store takes, looked at from below."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qs, unquote, urlsplit

_KEYS_PER_READ = 1000


class Taken(NamedTuple):
    """What the store takes at one moment.

    Attributes:
        objects: RADOS objects in the pool, of all namespaces; 0 on the embedded store.
        keys: their omap keys together; 0 on the embedded store.
        bytes: that the OSDs have allocated for objects; the file's size on the embedded store.
        database: bytes of the OSDs' RocksDB; 0 on the embedded store.
    """

    objects: int
    keys: int
    bytes: int
    database: int


class Gauge(Protocol):
    """Looks at one store."""

    def look(self) -> Taken:
        """Return what it takes now."""
        ...


class FileGauge:
    """An embedded store: its one file, whose pages are used again once they are free."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "data.mdb"

    def look(self) -> Taken:
        """Return what it takes now."""
        return Taken(0, 0, self._file.stat().st_blocks * 512, 0)


class CephGauge:
    """A pool: its objects and keys as librados lists them, its bytes as the OSDs count them."""

    def __init__(self, cluster: Any, ioctx: Any) -> None:
        self._cluster = cluster
        self._ioctx = ioctx

    def look(self) -> Taken:
        """Return what it takes now."""
        names = [entry.key for entry in self._ioctx.list_objects()]
        counters = [self._counters(osd) for osd in self._osds()]
        return Taken(
            len(names),
            sum(map(self._keys, names)),
            sum(each["bluestore"]["bluestore_allocated"] for each in counters),
            sum(each["bluefs"]["db_used_bytes"] for each in counters),
        )

    def _keys(self, name: str) -> int:
        import rados

        count, after = 0, ""
        while True:
            with rados.ReadOpCtx() as operation:
                keys, _ = self._ioctx.get_omap_keys(operation, after, _KEYS_PER_READ)
                try:
                    self._ioctx.operate_read_op(operation, name)
                except rados.ObjectNotFound:  # removed since it was listed
                    return count
                found = [key for key, _ in keys]
            count += len(found)
            if len(found) < _KEYS_PER_READ:
                return count
            after = found[-1]

    def _osds(self) -> list[int]:
        found: list[int] = json.loads(self._ask(self._cluster.mon_command, "osd ls"))
        return found

    def _counters(self, osd: int) -> dict[str, dict[str, int]]:
        def command(words: str, data: bytes) -> tuple[int, bytes, str]:
            answer: tuple[int, bytes, str] = self._cluster.osd_command(osd, words, data)
            return answer

        found: dict[str, dict[str, int]] = json.loads(self._ask(command, "perf dump"))
        return found

    @staticmethod
    def _ask(command: Any, prefix: str) -> bytes:
        code, reply, message = command(json.dumps({"prefix": prefix, "format": "json"}), b"")
        if code != 0:
            raise OSError(-code, message)
        found: bytes = reply
        return found


@contextmanager
def gauge_of(url: str) -> Iterator[Gauge]:
    """The gauge for a store's URL: ``file://`` or ``ceph://`` on BlueStore."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        yield FileGauge(Path(unquote(parts.path)))
        return
    import rados

    conf = parse_qs(parts.query).get("conf", [rados.Rados.DEFAULT_CONF_FILES])[0]
    with rados.Rados(conffile=conf) as cluster, cluster.open_ioctx(unquote(parts.netloc)) as ioctx:
        ioctx.set_namespace(parts.path.strip("/"))
        yield CephGauge(cluster, ioctx)
