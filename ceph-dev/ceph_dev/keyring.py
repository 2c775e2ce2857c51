"""The keys of a cluster, with which its monitor starts."""

from __future__ import annotations

from collections.abc import Iterable

from .daemon import program, run

_CAPS = {
    "mon": {"mon": "allow *"},
    "mgr": {"mon": "allow profile mgr", "osd": "allow *", "mds": "allow *"},
    "osd": {"mon": "allow profile osd", "mgr": "allow profile osd", "osd": "allow *"},
    "client": {"mon": "allow *", "mgr": "allow *", "osd": "allow *"},
}


def render_keyring(names: Iterable[str]) -> str:
    """Return a keyring with a new key and caps for each name (such as `osd.0`)."""
    lines = []
    for name in names:
        lines += [f"[{name}]", f"\tkey = {_new_key()}"]
        caps = _CAPS[name.partition(".")[0]]
        lines += [f'\tcaps {service} = "{cap}"' for service, cap in caps.items()]
    return "\n".join(lines) + "\n"


def _new_key() -> str:
    """Return a new cephx secret of the type that this release of Ceph prefers."""
    return run([program("ceph-authtool"), "--gen-print-key"], "ceph-authtool").strip()
