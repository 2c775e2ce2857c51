"""Watches the leader's process, so that standbys notice at once when it ends.

Without a watch, a standby could take over only when the lease of a crashed leader expires. So each
standby keeps an idle connection to the leader, which the kernel of the leader's machine closes when
the process ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from zlog._base.deadline import Deadline
from zlog._base.sequencer import NotConnected, parse_address
from zlog._sequencer import AsyncioSequencer
from zlog._sequencer.credentials import NO_CREDENTIALS, Credentials
from zlog._sequencer.link import LinkLost
from zlog.errors import SequencerRefused, SequencerUnavailable
from zlog.seqr.election.lock import Holder

_logger = logging.getLogger(__name__)

_CONNECT_SECONDS = 1.0
_PAUSE_SECONDS = 0.02
_PAUSE_SECONDS_MAX = 1.0
"""Pause between attempts to connect. It doubles each time, and is reset after a connection that
lasted for a while. It is never zero, because a process that ends may close its connections before
its listening socket."""


class LeaderWatch:
    """Keeps a connection to the leader's process, to notice when the process ends.

    Args:
        notify: a function that is called when the process may have ended.
    """

    def __init__(
        self, notify: Callable[[], None], credentials: Credentials = NO_CREDENTIALS
    ) -> None:
        self._notify = notify
        self._credentials = credentials
        self._cookie = ""
        self._gone = False
        self._task: asyncio.Task[None] | None = None

    def follow(self, leader: Holder) -> None:
        """Watch this leader from now on."""
        if leader.cookie != self._cookie:
            self.stop()
            self._cookie = leader.cookie
            self._task = asyncio.ensure_future(self._watch(leader.description))

    def gone(self, leader: Holder) -> bool:
        """Return whether the leader's address refuses connections, so that its process has ended.

        Other errors do not count, because the network may be at fault.
        """
        return leader.cookie == self._cookie and self._gone

    def stop(self) -> None:
        """Stop watching."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._cookie, self._gone = "", False

    async def _watch(self, address: str) -> None:
        loop = asyncio.get_running_loop()
        try:
            parse_address(address)
        except ValueError:
            return  # not a zlog sequencer: only the lease shows whether it runs
        pause = _PAUSE_SECONDS
        warned = False
        while True:
            began = loop.time()
            client = AsyncioSequencer(address, self._credentials)
            try:
                ended = await client.connect(Deadline(_CONNECT_SECONDS, loop.time))
                self._gone = False
                await asyncio.wait({ended})
                self._notify()
            except SequencerUnavailable as error:
                self._gone = isinstance(error, NotConnected) and error.refused
                if self._gone or isinstance(error, LinkLost):
                    self._notify()
                if isinstance(error, SequencerRefused) and not warned:
                    warned = True
                    _logger.warning(
                        "can't watch the leader at %s, so its failure would be noticed late: %s",
                        address,
                        error,
                    )
            finally:
                await client.close()
            if loop.time() - began >= _PAUSE_SECONDS_MAX:
                pause = _PAUSE_SECONDS
            await asyncio.sleep(pause)
            pause = min(2 * pause, _PAUSE_SECONDS_MAX)
