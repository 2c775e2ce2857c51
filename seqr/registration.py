"""Being seen in ``ceph -s``."""

from __future__ import annotations

import logging
import socket

from zlog.errors import ZlogError
from zlog.seqr.election.candidate import Role
from zlog.store import Store

_logger = logging.getLogger(__name__)

SERVICE = "zlog-seqr"


class Registration:
    """This process among the daemons that Ceph's manager knows, if the store is on Ceph.

    Nothing depends on it: where it fails, the sequencer goes on without.

    Args:
        store: over whose connection to the cluster it is kept up.
        address: of this sequencer, ``tcp://HOST:PORT`` or ``tls://HOST:PORT``; the daemon's name
            is HOST:PORT.
        version: of the program.
    """

    def __init__(self, store: Store, address: str, version: str) -> None:
        self._store = None
        if not store.pool:
            return
        from zlog._native.rados import CephStore

        if not isinstance(store, CephStore):
            return
        metadata = {
            "address": address,
            "hostname": socket.gethostname(),
            "pool": store.pool,
            "namespace": store.namespace,
            "zlog_version": version,
        }
        try:
            store.register_service(SERVICE, address.partition("://")[2], metadata)
        except ZlogError as error:
            _logger.warning("ceph -s won't show this sequencer: %s", error)
            return
        self._store = store

    def tell(self, role: Role) -> None:
        """Have ``ceph service status`` say what this sequencer is in the store it serves."""
        if self._store is not None:
            try:
                self._store.update_service({"role": role.value})
            except ZlogError as error:
                _logger.warning("ceph service status is out of date: %s", error)
