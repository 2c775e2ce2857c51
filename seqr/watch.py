"""Looking after the leader's process, so that its death is noticed at once.

A lease alone would cost its whole length at each crash. A standby therefore keeps a connection to
the leader, on which nothing is said. The kernel of the leader's machine ends it with the process.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from zlog._frames import FRAME, PROTOCOL_VERSION, Kind
from zlog._rados_lock import Holder
from zlog._sequencer.keepalive import keep_alive
from zlog._sequencer.types import parse_address

_CONNECT_SECONDS = 1.0
_PAUSE_SECONDS = 0.02
_PAUSE_SECONDS_MAX = 1.0
"""Between attempts to connect. It doubles each time, and begins anew after a connection that lasted
for a while: if that ended because the process did, it soon shows, but not at once. While a process
dies its connections may go first, and the listening socket last."""

_READ_BYTES = 4096


class LeaderWatch:
    """Watches one leader after the other.

    Args:
        notify: called whenever a look at the lease may be worth while.
    """

    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify = notify
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
        """Whether nobody listens any more at the address of the leader that is being watched.

        Nothing else counts as gone: where connecting fails in another way, perhaps the network is
        at fault, and others still reach the leader.
        """
        return leader.cookie == self._cookie and self._gone

    def stop(self) -> None:
        """Watch nobody."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._cookie, self._gone = "", False

    async def _watch(self, address: str) -> None:
        loop = asyncio.get_running_loop()
        try:
            host, port = parse_address(address)
        except ValueError:
            return  # no sequencer of ours; its lease will show whether it lives
        pause = _PAUSE_SECONDS
        while True:
            began = loop.time()
            try:
                await self._stay_connected(host, port)
                self._notify()
            except ConnectionRefusedError:
                self._gone = True
                self._notify()
            except (OSError, asyncio.TimeoutError):
                self._gone = False
            if loop.time() - began >= _PAUSE_SECONDS_MAX:
                pause = _PAUSE_SECONDS
            await asyncio.sleep(pause)
            pause = min(2 * pause, _PAUSE_SECONDS_MAX)

    async def _stay_connected(self, host: str, port: int) -> None:
        """Connect, and return when the connection has ended. Raises OSError, TimeoutError."""
        connecting = asyncio.open_connection(host, port)
        reader, writer = await asyncio.wait_for(connecting, _CONNECT_SECONDS)
        self._gone = False
        try:
            keep_alive(writer.get_extra_info("socket"))
            writer.write(FRAME.pack(Kind.HELLO, 0, 0, 0, PROTOCOL_VERSION, 0))
            with contextlib.suppress(ConnectionError):
                while await reader.read(_READ_BYTES):
                    pass
        finally:
            writer.close()
