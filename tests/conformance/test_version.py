"""What an object's host says of itself: who it is, and what it understands."""

from __future__ import annotations

import errno
import re

import zlog
from zlog._native import messages as native
from zlog.admin import is_plain

from ..support.programs import REPOSITORY
from .messages import METHODS, STRUCTS, decode, request
from .objects import Stripe
from .replies import Answer, Code


def fields_of(message: str) -> int:
    """The fields of a message, and those of the elements of its lists."""
    kinds = STRUCTS[message].kinds
    elements = [kind.removeprefix("list of ") for kind in kinds if kind.startswith("list of ")]
    return len(kinds) + sum(fields_of(each) for each in elements if each in STRUCTS)


def test_version_of_host(store: zlog.Store, prefix: str) -> None:
    stripe = Stripe(store, prefix)
    assert stripe.version() == Answer(-errno.ENOENT)
    assert stripe.seal(1).code == Code.OK
    code, reply = store.execute(prefix, "version", request("version"))
    told = decode("VersionReply", reply)
    theirs = native.version_reply(reply)
    assert (code, theirs._replace(formats=tuple(theirs.formats))) == (Code.OK, told)
    methods = METHODS.values()
    assert told.protocol == len(methods) + sum(
        fields_of(each.request) + fields_of(each.reply) for each in methods
    )
    formats = {name.title(): version for name, version in told.formats if name != "record"}
    assert formats == {name: STRUCTS[name].version for name in ("Head", "View", "Stripe", "Header")}
    assert ("record", 4) in told.formats
    (release,) = re.findall('^version = "(.*)"', (REPOSITORY / "pyproject.toml").read_text(), re.M)
    assert told.release == release


def test_instance_is_of_one_osd_process(store: zlog.Store, prefix: str) -> None:
    stripes = [Stripe(store, f"{prefix}.{number}") for number in range(2)]
    assert all(stripe.seal(1).code == Code.OK for stripe in stripes)
    first, again, other = (stripe.version().value.instance for stripe in (stripes[0], *stripes))
    in_an_osd = store.url.startswith("ceph://") and not is_plain(store)
    assert first == again == other  # the clusters of this suite have one OSD
    assert (first != 0) == in_an_osd
