"""CORFU's client in miniature, over a store: enough to try the paper's claims at the protocol's
level.

It has no retries, no time-outs and no network of its own; what a test wants to go wrong it does by
hand.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .objects import Head, Store, Stripe
from .replies import Answer, Code, Slot
from .requests import StripeView, View
from .wire import OPEN_END

LOG_ID = 7


@dataclass
class Sequencer:
    """A counter: whatever it says, the log must stay right."""

    tail: int = 0

    def next(self) -> int:
        """The next position."""
        self.tail += 1
        return self.tail - 1


@dataclass
class MiniLog:
    """A log of one writer's choosing: objects by name, a head, and the view that the client
    holds."""

    store: Store
    prefix: str
    view: View = field(default_factory=lambda: View(0, LOG_ID))

    @property
    def head(self) -> Head:
        """The head object."""
        return Head(self.store, f"{self.prefix}.head")

    def create(self, width: int) -> None:
        """Make the head and the first view, and seal its objects."""
        assert self.head.create("log", LOG_ID).code == Code.OK
        epoch = self.next_epoch(width)
        stripe = StripeView(epoch, 0, OPEN_END, width)
        self.seal(stripe, epoch, create=True)
        assert self.propose(View(epoch, LOG_ID, stripes=(stripe,))).code == Code.OK

    def next_epoch(self, width: int = 0) -> int:
        """An epoch that no other client has, and in which a stripe of that width may be made."""
        epoch: int = self.head.epoch_next(width).value[0]
        return epoch

    def objects(self, stripe: StripeView) -> list[Stripe]:
        """The objects of a stripe."""
        names = (f"{self.prefix}.{stripe.id}.{i}" for i in range(stripe.width))
        return [Stripe(self.store, name, stripe.width, i) for i, name in enumerate(names)]

    def seal(self, stripe: StripeView, epoch: int, create: bool = False) -> int | None:
        """Seal all objects of a stripe, or make them; the highest position in it."""
        answers = [stripe_object.seal(epoch, create) for stripe_object in self.objects(stripe)]
        assert all(answer.code == Code.OK for answer in answers), answers
        found = [answer.value.highest for answer in answers]
        return max((p for p in found if p is not None), default=None)

    def propose(self, view: View) -> Answer:
        """Propose a view after the one held; hold it if it is accepted."""
        answer = self.head.view_propose(self.view.epoch, view)
        if answer.code == Code.OK:
            self.view = view
        return answer

    def locate(self, position: int) -> Stripe:
        """The object that a position lives in, by the view held."""
        stripe = next(s for s in self.view.stripes if s.start <= position < s.end)
        return self.objects(stripe)[position % stripe.width]

    def write(self, position: int, data: bytes, writer: bytes = b"w" * 16) -> Answer:
        """Write where the sequencer said, under the view held."""
        return self.locate(position).put(self.view.epoch, position, data, writer)

    def append(self, sequencer: Sequencer, data: bytes, writer: bytes = b"w" * 16) -> int:
        """Take positions until one is free."""
        while True:
            position = sequencer.next()
            answer = self.write(position, data, writer)
            if answer.code == Code.OK:
                return position
            assert answer.code == Code.READ_ONLY, answer

    def read(self, position: int) -> Slot:
        """What a position holds, under the view held."""
        answer = self.locate(position).read(self.view.epoch, [position])
        assert answer.code == Code.OK, answer
        slot: Slot = answer.value.slots[0]
        return slot

    def fill(self, position: int) -> Answer:
        """Fill a position, under the view held."""
        return self.locate(position).fill(self.view.epoch, [position])

    def slow_tail(self) -> int:
        """The tail without a sequencer: one past the highest of all objects of the last stripe."""
        stripe = self.view.stripes[-1]
        found = [o.max_position(self.view.epoch).value.highest for o in self.objects(stripe)]
        return max((p + 1 for p in found if p is not None), default=stripe.start)
