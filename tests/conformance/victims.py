"""Objects that bad requests are sent to."""

from __future__ import annotations

import re

from .objects import Directory, Head, Store, Stripe
from .replies import Code
from .requests import SET, Entry, Part

_OF_DIRECTORY = re.compile("directory|sequencer")
_OF_HEAD = re.compile("head|epoch|tail|trim_point|view|stripe|cursor|retention|delivery")


def kind_of(method: str) -> type[Stripe | Head | Directory]:
    """Return the kind of object that has the method."""
    if _OF_DIRECTORY.match(method):
        return Directory
    return Head if _OF_HEAD.match(method) else Stripe


class Victims:
    """One object of each kind, as bad requests find them: made, and holding something."""

    def __init__(self, store: Store, prefix: str) -> None:
        name = f"{prefix}.victim"
        self.stripe = Stripe(store, f"{name}.stripe")
        assert self.stripe.seal(1).code == Code.OK
        assert self.stripe.write(1, [Entry(p, p, b"held") for p in range(6)]).code == Code.OK
        self.head = Head(store, f"{name}.head")
        assert self.head.create("log", 7).code == Code.OK
        assert self.head.epoch_next().code == Code.OK
        assert self.head.cursor_commit("held", SET, 3).code == Code.OK
        assert self.head.delivery_begin(Part("query", 3, 1)).code == Code.OK
        self.directory = Directory(store, f"{name}.directory")
        assert self.directory.add("held").code == Code.OK
        self.names = (self.stripe.name, self.head.name, self.directory.name, f"{name}.missing")


def targets(method: str, victims: Victims) -> tuple[str, str]:
    """The object that a method is for, and one that it is not for."""
    stripe, head, directory, missing = victims.names
    found = {Directory: (directory, stripe), Head: (head, missing), Stripe: (stripe, head)}
    return found[kind_of(method)]
