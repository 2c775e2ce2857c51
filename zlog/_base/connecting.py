"""The errors of connecting to a Ceph cluster. They name the files that librados used."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import NamedTuple

from zlog._base.cephx import key_type, librados_version
from zlog.errors import StoreTimeout, StoreUnavailable

_CONFS = ("/etc/ceph/ceph.conf", "~/.ceph/ceph.conf", "./ceph.conf")
"""The files in which librados looks for its configuration (Ceph's manual, "Config")."""

_ANOTHER = "To use another client, add ?id=NAME to the URL or -n client.NAME to the command."


class Attempt(NamedTuple):
    """A failed attempt to connect.

    Attributes:
        error: a negative errno.
        step: which step failed.
        pool: the pool to open.
        client: the ID in ``client.ID``; empty for librados' default.
        keyring: the value of the option ``keyring``: paths, separated by commas.
        monitors: the value of the option ``mon_host``.
    """

    error: int
    step: str
    pool: str
    client: str = ""
    keyring: str = ""
    monitors: str = ""


def refusal(attempt: Attempt) -> StoreUnavailable:
    """Return the exception for a failed attempt."""
    error, step = attempt.error, attempt.step
    reason = os.strerror(-error)
    if error == -errno.EPROTO:
        return StoreUnavailable(
            "the cluster allows OSDs older than Ceph Octopus, which don't return the answers"
            " of class methods",
            hint="Upgrade the OSDs, then `ceph osd require-osd-release octopus` or later.",
        )
    if error == -errno.ETIMEDOUT:
        return StoreTimeout(
            f"can't {step}: {reason}",
            hint="Check that the monitors in ceph.conf (mon_host) are up and reachable: `ceph -s`.",
        )
    if error == -errno.ENOENT and step == "open the pool":
        return StoreUnavailable(
            f"the cluster has no pool {attempt.pool!r}",
            hint=f"Create it with `ceph osd pool create {attempt.pool}`. `ceph osd pool ls`"
            " lists the existing pools.",
        )
    if error == -errno.ENOENT and step == "find a ceph.conf":
        named = os.environ.get("CEPH_CONF")
        looked = f"{named} ($CEPH_CONF)" if named else ", ".join(_CONFS)
        return StoreUnavailable(
            f"there is no ceph.conf: looked for {looked}",
            hint="Specify its path with ?conf=PATH in the URL, with -c PATH, or in $CEPH_CONF.",
        )
    if step == "connect to the cluster" and (why := _not_let_in(attempt, reason)):
        return why
    return StoreUnavailable(
        f"can't {step}: {reason}",
        hint="Check ceph.conf, the client's id and its keyring; `ceph -s` uses the same ones.",
    )


def _not_let_in(attempt: Attempt, reason: str) -> StoreUnavailable | None:
    client = f"client.{attempt.client or 'admin'}"
    paths = [path.strip() for path in attempt.keyring.split(",") if path.strip()]
    used = next((path for path in paths if os.access(path, os.R_OK)), None)
    if attempt.error == -errno.ENOENT and used is None:
        looked = ", ".join(
            f"{path} (exists, but this user cannot read it)" if Path(path).exists() else path
            for path in paths
        )
        return StoreUnavailable(
            f"there is no keyring for {client}: looked for {looked}",
            hint=f"With an admin's keyring, `ceph auth get {client} -o PATH` writes it. {_ANOTHER}",
        )
    if attempt.error == -errno.ENOENT and not attempt.monitors:
        return StoreUnavailable(
            "the configuration names no monitors",
            hint="Put mon_host into ceph.conf; `ceph config generate-minimal-conf` prints one.",
        )
    if attempt.error in (-errno.EACCES, -errno.EPERM, -errno.EIO):
        return StoreUnavailable(
            f"the cluster rejects the key of {client} in {used}: {reason}",
            hint=f"With an admin's keyring, `ceph auth get {client}` prints the right key."
            f" {_about_key(used, client)}{_ANOTHER}",
        )
    return None


def _about_key(keyring: str | None, client: str) -> str:
    """Return how the type of a rejected key can be the reason, or nothing if it is unknown."""
    kind = key_type(Path(keyring), client) if keyring else None
    if kind is None:
        return ""
    release = librados_version() or "of an unknown release"
    reason = (
        "which monitors can refuse (`ceph mon dump` shows auth_allowed_ciphers)"
        if kind == "AES"
        else "which only librados 19.2.6, 20.2.4, 21.2 and later of each series can use"
    )
    return f"The key's type is {kind}, {reason}; this is librados {release}. "
