"""Objects that bad requests are sent to."""

from __future__ import annotations

import re

from .objects import Directory, Head, Store, Stripe
from .replies import Code
from .requests import SET, Entry, Part, StripeView, View
from .wire import OPEN_END

_OF_DIRECTORY = re.compile("directory|sequencer")
_OF_HEAD = re.compile(
    "head|epoch|tail|trim_point|view|stripe|cursor|retention|delivery|producer|offload"
)


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
        ended, live = StripeView(1, 0, 5, 1), StripeView(2, 5, OPEN_END, 1)
        for epoch, stripes in enumerate([(ended._replace(end=OPEN_END),), (ended, live)], 1):
            assert self.head.epoch_next(1).code == Code.OK
            view = View(epoch, 7, stripes=stripes, offloads=True)
            assert self.head.view_propose(epoch - 1, view).code == Code.OK
        assert self.head.cursor_commit("held", SET, 3).code == Code.OK
        assert self.head.delivery_begin(Part("query", 3, 1)).code == Code.OK
        self.directory = Directory(store, f"{name}.directory")
        assert self.directory.add("held").code == Code.OK

    def name_of(self, method: str) -> str:
        """Return the name of the object that a method is for."""
        found = {Directory: self.directory, Head: self.head, Stripe: self.stripe}
        return found[kind_of(method)].name
