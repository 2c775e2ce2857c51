"""Stores on a Ceph cluster, through librados, which is looked for when the first one is opened."""

import os
from collections.abc import Mapping

import rados

from zlog._native.core import HostStore
from zlog.store import ObjectClassUse

def find_librados() -> str:
    """Load librados, unless it is loaded; return the path of its file.

    Raises:
        StoreUnavailable: there is none on this machine, or it is too old.
    """

class CephStore(HostStore):
    """Objects in a pool of a Ceph cluster, whose OSDs run the object class.

    An operation that is given up (`execute` whose time is over, `UnderWay.give_up`) is taken from
    librados, and takes effect if an OSD has it already. Starting one never waits for others; only
    over a `rados.Ioctx` it does, by librados' own limit (``objecter_inflight_ops``, 1024).
    """

    def __init__(
        self,
        pool: str,
        namespace: str = "",
        *,
        conf: str | os.PathLike[str] | None = None,
        client_id: str | None = None,
        timeout: float = 10.0,
        object_class: ObjectClassUse = "auto",
        url: str | None = None,
    ) -> None:
        """Connect to a cluster.

        Args:
            pool: name of the pool, which must exist.
            namespace: namespace in the pool.
            conf: path of ceph.conf; None looks where Ceph's own tools do. ``CEPH_ARGS`` counts too.
            client_id: as in ``client.ID``; None is ``admin``.
            timeout: seconds, for connecting and for each answer of a monitor later on.
            object_class: where methods run. ``require``: in the OSDs, which need the class.
                ``never``: in this process. ``auto``: in the OSDs, unless the first answers tell
                that these have no class, or that the client may not use it.
            url: what `url` gives; None makes it of the other arguments.

        Raises:
            StoreTimeout: no monitor answered in time.
            StoreUnavailable: no librados, no such pool, no configuration, refused, or OSDs older
                than Octopus.
        """

    @staticmethod
    def from_ioctx(ioctx: rados.Ioctx, object_class: ObjectClassUse = "auto") -> CephStore:
        """Use an open `rados.Ioctx`: its cluster, pool and namespace of this moment.

        The `rados.Rados` it came from must stay connected until the store is closed.

        Raises:
            StoreUnavailable: it is of a python-rados that zlog does not know; pass a URL then.
        """

    @property
    def plain(self) -> bool:
        """Whether methods run in this process, not in the OSDs; False as long as it is open."""

    def register_service(self, service: str, daemon: str, metadata: Mapping[str, str]) -> None:
        """Have this process shown by ``ceph -s`` as one of the daemons of ``service``.

        It stays there for as long as the store is open. Without a manager nothing is shown, and
        nothing fails; once there is one, the daemon is shown.

        Args:
            service: as ``ceph -s`` names it.
            daemon: tells this one from the others.
            metadata: what ``ceph service dump`` says of it, for good.

        Raises:
            StoreUnavailable: this store is registered already.
        """

    def update_service(self, status: Mapping[str, str]) -> None:
        """Tell what ``ceph service status`` says of the registered daemon from now on.

        Raises:
            StoreUnavailable: librados refused.
        """
