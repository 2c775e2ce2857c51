"""The control side of a cluster, through python-rados: only for those who have it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, unquote, urlsplit

ADMIN = "admin"
"""The client that Ceph's own tools are by default, and that may do everything."""


class Target(NamedTuple):
    """What a ``ceph://`` URL says.

    Attributes:
        pool: the pool's name.
        namespace: in the pool; empty for the default one.
        conf: path of ceph.conf; None for Ceph's own defaults.
        client_id: as in ``client.ID``.
    """

    pool: str
    namespace: str
    conf: str | None
    client_id: str

    @classmethod
    def parse(cls, url: str) -> Target:
        """Read the URL of a store that was opened, and so is in order."""
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        return cls(
            unquote(parts.netloc),
            unquote(parts.path.strip("/")),
            query.get("conf", [None])[0],
            query.get("id", [ADMIN])[0],
        )


def new_client(target: Target) -> str:
    """Return how to make a client that may use a pool's logs.

    A new one, since ``ceph auth caps`` would replace all that an existing one may do elsewhere.
    """
    where = f"pool {target.pool}"
    path = quote(target.pool, safe="")
    if target.namespace:
        where += f" namespace {target.namespace}"
        path += f"/{quote(target.namespace, safe='')}"
    return (
        "make a client for it, ceph auth get-or-create client.zlog mon 'allow r'"
        f" osd 'allow {where} class zlog' -o /etc/ceph/ceph.client.zlog.keyring, and use"
        f" --store 'ceph://{path}?id=zlog'"
    )


@contextmanager
def connected(url: str, timeout: float | None) -> Iterator[tuple[Any, Any]]:
    """Connect to a store's cluster and pool; gives a ``rados.Rados`` and a ``rados.Ioctx``.

    Args:
        url: of the store.
        timeout: seconds for connecting and for each of the monitors' answers; None for 30.

    Raises:
        rados.Error: the cluster refuses.
    """
    import rados

    target = Target.parse(url)
    seconds = max(1, int(30 if timeout is None else timeout))
    cluster = rados.Rados(
        conffile=rados.Rados.DEFAULT_CONF_FILES if target.conf is None else target.conf,
        rados_id=target.client_id,
        conf={"client_mount_timeout": str(seconds), "rados_mon_op_timeout": str(seconds)},
    )
    cluster.connect(timeout=seconds)
    try:
        with cluster.open_ioctx(target.pool) as ioctx:
            ioctx.set_namespace(target.namespace)
            yield cluster, ioctx
    finally:
        cluster.shutdown()
