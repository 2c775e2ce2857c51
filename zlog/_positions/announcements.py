"""A log without a sequencer looks for one on offer, and takes back the offer of one that is gone.

The offer in the store's directory is a hint. Its sequencer looks every few seconds that it is there
(`zlog.seqr.election.leadership`), so one that was taken back wrongly, by a client whose network is
at fault, is out again soon. Without that the offer of a sequencer that is gone for good would stay,
and every writer would try it.
"""

from __future__ import annotations

import logging

from zlog._base.deadline import Deadline
from zlog._base.sequencer import SHARED_ADDRESS, NotConnected, OtherStore
from zlog._layout.layout import Layout
from zlog._layout.views import unless_newer
from zlog.errors import SequencerBusy, SequencerRefused, SequencerUnavailable, ZlogError
from zlog.view import View

_logger = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0
"""How often a writer without a sequencer looks whether one is on offer."""

_PAUSE_LOOKS = 4.0
"""How many times as long as it took the next look waits at least."""

_GONE_SECONDS = 60.0
"""How long connecting must fail before a sequencer counts as gone. A refused connection shows it at
once: then the network is there, and no process at the address."""


class Offers:
    """Finds a sequencer for one log, on behalf of its writers.

    Args:
        layout: of the log.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._io = layout.io
        self._next_look = 0.0
        self._missing = ""
        self._missing_since = 0.0

    def postpone(self) -> None:
        """Do not look just now: the log has only just lost its sequencer."""
        self._next_look = self._io.monotonic() + _LOOK_SECONDS

    async def look(self, view: View, deadline: Deadline) -> None:
        """Look, once in a while, for a sequencer for a view that has none.

        Raises:
            SequencerRefused: the one on offer and this client don't trust each other.
        """
        io, limit = self._io, self._layout.outage.limit
        began = io.monotonic()
        if began < self._next_look:
            return
        # Of many appends at once, one looks; the others need not wait for what it finds.
        self._next_look = began + _LOOK_SECONDS + limit
        offered = await self._layout.directory.sequencer(deadline)
        if not offered:
            self._missing = ""
        elif not await self._have_opened(offered, view, deadline):
            offered = ""
        if not offered and io.store.sequencer() is not None:
            await self._layout.change(unless_newer(view, sequencer=SHARED_ADDRESS), deadline)
        now = io.monotonic()
        self._next_look = now + max(_LOOK_SECONDS, _PAUSE_LOOKS * (now - began))

    async def _have_opened(self, offered: str, view: View, deadline: Deadline) -> bool:
        """Ask the sequencer on offer to take the log over. Returns whether it has."""
        io = self._io
        began = io.monotonic()
        try:
            step = deadline.sooner(self._layout.outage.limit)
            await io.sequencer(offered).open(self._layout.address, view.epoch, step)
        except SequencerBusy:
            return False
        except SequencerRefused:
            self._next_look = io.monotonic()  # the next append shall fail, too
            raise
        except OtherStore:
            await self._take_back(offered, deadline)
            return False
        except NotConnected as error:
            if self._missing != offered:
                self._missing, self._missing_since = offered, began
            if error.refused or io.monotonic() - self._missing_since >= _GONE_SECONDS:
                await self._take_back(offered, deadline)
            return False
        except SequencerUnavailable:
            self._missing = ""
            return False
        self._missing = ""
        return True

    async def _take_back(self, offered: str, deadline: Deadline) -> None:
        """Strike off the offer of a sequencer that is gone, unless it is another's by now."""
        log, store = self._layout.view.log, self._io.store.url
        try:
            await self._layout.directory.withdraw(offered, deadline)
        except ZlogError as error:  # not permitted, or too slow: the log does without all the same
            _logger.debug("could not take back the offer of %s in %s: %s", offered, store, error)
            return
        self._missing = ""
        _logger.info("took back the offer of %s in %s: log %r can't reach it", offered, store, log)
