"""Archived stripes that several threads of one handle look up at the same time."""

from __future__ import annotations

import zlog
from zlog._base.deadline import Deadline
from zlog._catalog.head import Head
from zlog._io import BlockingIo, drive
from zlog._layout.stripe_index import StripeIndex


class Overtaken(StripeIndex):
    """One whose pages are gone at once: another thread, which knew of none, has stored its own."""

    @property  # type: ignore[override]
    def _known(self) -> tuple[()]:
        return ()

    @_known.setter
    def _known(self, _: object) -> None:
        pass


def test_what_another_thread_stores_does_not_hide_what_was_found(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders", width=1)
    for number in range(34):
        log.append(b"%d" % number)
        log.reconfigure(width=2 - number % 2)
    index = Overtaken(Head(BlockingIo(memory), "orders"), log.view.log_id)
    found = drive(index.look_up(0, Deadline(10)))
    assert found is not None
    assert (found.start, found.end) == (0, 1)
    assert drive(index.look_up(40, Deadline(10))) is None
