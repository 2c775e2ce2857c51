"""Finds a sequencer for a log that has none, from the announcement in the store's directory.

If the announced sequencer seems to be gone for good, a client withdraws the announcement, so that
writers stop trying to reach it. A mistake does no harm: a sequencer checks its announcement every
few seconds (`zlog.seqr.election.leadership`) and renews it.
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

_POLL_SECONDS = 1.0
"""How often a writer without a sequencer polls for an announcement."""

_PAUSE_POLLS = 4.0
"""The shortest pause before the next poll, as a multiple of how long the last poll took."""

_GONE_SECONDS = 60.0
"""How long connecting must fail before a sequencer counts as gone. If the connection is refused,
the sequencer counts as gone at once, because its host is up but no process listens."""


class Announcements:
    """Finds a sequencer for one log. Its writers call this."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._io = layout.io
        self._next_poll = 0.0
        self._missing = ""
        self._missing_since = 0.0

    def postpone(self) -> None:
        """Do not poll for a while, because the log has just lost its sequencer."""
        self._next_poll = self._io.monotonic() + _POLL_SECONDS

    async def poll(self, view: View, deadline: Deadline) -> None:
        """Look for a sequencer for a log whose view has none, but at most once per interval.

        A log that is ordered by its object never gets one.

        Raises SequencerRefused if the announced sequencer and this client do not trust each other.
        """
        io, limit = self._io, self._layout.outage.limit
        began = io.monotonic()
        if view.ordered or began < self._next_poll:
            return
        # One of many concurrent appends polls. The others need not wait for the result.
        self._next_poll = began + _POLL_SECONDS + limit
        announced = await self._layout.directory.sequencer(deadline)
        if not announced:
            self._missing = ""
        elif not await self._have_opened(announced, view, deadline):
            announced = ""
        if not announced and io.store.sequencer() is not None:
            await self._layout.change(unless_newer(view, sequencer=SHARED_ADDRESS), deadline)
        now = io.monotonic()
        self._next_poll = now + max(_POLL_SECONDS, _PAUSE_POLLS * (now - began))

    async def _have_opened(self, announced: str, view: View, deadline: Deadline) -> bool:
        """Ask the announced sequencer to take over the log. Returns whether it has done so."""
        io = self._io
        began = io.monotonic()
        try:
            step = deadline.sooner(self._layout.outage.limit)
            await io.sequencer(announced).open(self._layout.address, view.epoch, step)
        except SequencerBusy:
            return False
        except SequencerRefused:
            self._next_poll = io.monotonic()  # so that the next append polls and fails as well
            raise
        except OtherStore:
            await self._withdraw(announced, deadline)
            return False
        except NotConnected as error:
            if self._missing != announced:
                self._missing, self._missing_since = announced, began
            if error.refused or io.monotonic() - self._missing_since >= _GONE_SECONDS:
                await self._withdraw(announced, deadline)
            return False
        except SequencerUnavailable:
            self._missing = ""
            return False
        self._missing = ""
        return True

    async def _withdraw(self, announced: str, deadline: Deadline) -> None:
        """Withdraw the announcement of a dead sequencer, if it was not replaced."""
        log, store = self._layout.view.log, self._io.store.url
        try:
            await self._layout.directory.withdraw(announced, deadline)
        except ZlogError as error:  # not permitted, or too slow; the log works anyway
            _logger.debug(
                "could not withdraw the announcement of %s in %s: %s", announced, store, error
            )
            return
        self._missing = ""
        _logger.info(
            "withdrew the announcement of %s in %s: log %r can't reach it", announced, store, log
        )
