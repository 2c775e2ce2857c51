"""``ceph://`` URLs, and clients for them."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qs, parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from zlog.store import ObjectClassUse

ADMIN = "admin"
"""The default client of Ceph's own tools, which has all rights."""


class Target(NamedTuple):
    """The parts of a ``ceph://`` URL.

    Attributes:
        namespace: the namespace in the pool; empty means the default namespace.
        conf: the path of ceph.conf; None means that Ceph searches its default paths.
    """

    pool: str
    namespace: str
    conf: str | None
    client_id: str

    @classmethod
    def parse(cls, url: str) -> Target:
        """Parse the URL of a store. It must be valid: the store was opened."""
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        return cls(
            unquote(parts.netloc),
            unquote(parts.path.strip("/")),
            query.get("conf", [None])[0],
            query.get("id", [ADMIN])[0],
        )


def with_class(url: str, use: ObjectClassUse) -> str:
    """Return the URL of a store on Ceph with another use of the object class."""
    parts = urlsplit(url)
    query = [pair for pair in parse_qsl(parts.query) if pair[0] != "class"]
    return urlunsplit(parts._replace(query=urlencode([*query, ("class", use)], safe="/")))


def new_client(target: Target, *, plain: bool = False) -> str:
    """Return a shell command that creates a Ceph client with read and write access to a pool.

    The command does not change existing clients: ``ceph auth caps`` would replace all their caps.

    Args:
        plain: whether to leave out the right to call the object class.
    """
    caps = f"rw pool={target.pool}" if plain else f"pool {target.pool}"
    path = quote(target.pool, safe="")
    if target.namespace:
        caps += f" namespace{'=' if plain else ' '}{target.namespace}"
        path += f"/{quote(target.namespace, safe='')}"
    if not plain:
        caps += " class zlog"
    return (
        f"create a client with ceph auth get-or-create client.zlog mon 'allow r' osd 'allow {caps}'"
        f" -o /etc/ceph/ceph.client.zlog.keyring, then use --store 'ceph://{path}?id=zlog'"
    )
