"""Objects that bad requests are sent to, and which answers to them are fine."""

from __future__ import annotations

import errno

from .messages import METHODS
from .objects import SET, Directory, Head, Store, Stripe
from .replies import WRITE_REPLY_BYTES_MAX, Code
from .requests import Entry, Part

HEAD_METHODS = ("head", "epoch", "tail", "trim_point", "view", "stripe", "cursor", "delivery")
KINDS = (".head", ".stripe", ".directory")
REFUSALS = frozenset({-errno.EINVAL, -errno.ENOENT, -errno.EEXIST, -errno.ERANGE})


class Victims:
    """One object of each kind, as bad requests find them: made, and holding something."""

    def __init__(self, store: Store, prefix: str) -> None:
        self._store = store
        self._prefix = prefix
        self._made = 0
        self.replace()

    def replace(self) -> None:
        """Take new ones."""
        self._made += 1
        name = f"{self._prefix}.victim{self._made}"
        self.stripe = Stripe(self._store, f"{name}.stripe")
        assert self.stripe.seal(1).code == Code.OK
        assert self.stripe.write(1, [Entry(p, p, b"held") for p in range(6)]).code == Code.OK
        self.head = Head(self._store, f"{name}.head")
        assert self.head.create("log", 7).code == Code.OK
        assert self.head.epoch_next().code == Code.OK
        assert self.head.cursor_commit("held", SET, 3).code == Code.OK
        assert self.head.delivery_begin(Part("query", 3, 1)).code == Code.OK
        self.directory = Directory(self._store, f"{name}.directory")
        assert self.directory.add("held").code == Code.OK
        self.names = (self.stripe.name, self.head.name, self.directory.name, f"{name}.missing")


def targets(method: str, victims: Victims) -> tuple[str, str]:
    """The object that a method is for, and one that it is not for."""
    stripe, head, directory, missing = victims.names
    if method.startswith(("directory", "sequencer")):
        return directory, stripe
    if method.startswith(HEAD_METHODS):
        return head, missing
    return stripe, head


def wrong_with(name: str, method: str, code: int, reply: bytes) -> str:
    """Say what is wrong with an answer, nothing if it is one that the method may give.

    EIO is for stored bytes that are not the method's own, and so for objects of another kind.
    """
    if code < 0:
        foreign = code == -errno.EIO and name.endswith(KINDS) and not _is_for(method, name)
        if reply:
            return "an error with a reply"
        return "" if code in REFUSALS or foreign else "an error that is not documented"
    if code not in set(Code):
        return "no code of the class"
    if not METHODS[method].reads and len(reply) > WRITE_REPLY_BYTES_MAX:
        return "a reply that is too long"
    return ""


def _is_for(method: str, name: str) -> bool:
    kind = name.rpartition(".")[2]
    if method.startswith(("directory", "sequencer")):
        return kind == "directory"
    if method.startswith(HEAD_METHODS):
        return kind == "head"
    return kind == "stripe"
