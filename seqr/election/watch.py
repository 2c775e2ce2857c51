"""Watching the leader's process, so that standbys notice at once when it ends.

With the lease alone, each crash would cost the length of the lease. So a standby keeps an idle
connection to the leader, which the kernel of the leader's machine closes when the process ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Callable

from zlog._base.sequencer import Endpoint, parse_address
from zlog._sequencer.credentials import NO_CREDENTIALS, Credentials
from zlog._sequencer.frames import FRAME, FRAME_BYTES, PROTOCOL_VERSION, Code, Kind
from zlog._sequencer.keepalive import keep_alive
from zlog._sequencer.token import Pair, new_number
from zlog.errors import SequencerRefused
from zlog.seqr.election.lock import Holder

_logger = logging.getLogger(__name__)

_CONNECT_SECONDS = 1.0
_PAUSE_SECONDS = 0.02
_PAUSE_SECONDS_MAX = 1.0
"""Between attempts to connect. The pause doubles each time, and is short again after a connection
that lasted a while. It is not zero then: a process that ends may close its connections before its
listening socket."""

_READ_BYTES = 4096


class LeaderWatch:
    """Watches one leader at a time.

    Args:
        notify: called when the lease should be read.
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
        """Whether the watched leader's address refuses connections.

        Other failures do not count: the network may be at fault, and others reach the leader.
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
            leader = parse_address(address)
        except ValueError:
            return  # not a zlog sequencer: only the lease shows whether it is alive
        pause = _PAUSE_SECONDS
        warned = False
        while True:
            began = loop.time()
            try:
                await self._stay_connected(leader)
                self._notify()
            except ConnectionRefusedError:
                self._gone = True
                self._notify()
            except (OSError, asyncio.TimeoutError, SequencerRefused) as error:
                self._gone = False
                if isinstance(error, (ssl.SSLError, SequencerRefused)) and not warned:
                    warned = True
                    _logger.warning(
                        "can't watch the leader at %s, whose death would be noticed late: %s",
                        address,
                        error,
                    )
            if loop.time() - began >= _PAUSE_SECONDS_MAX:
                pause = _PAUSE_SECONDS
            await asyncio.sleep(pause)
            pause = min(2 * pause, _PAUSE_SECONDS_MAX)

    async def _stay_connected(self, leader: Endpoint) -> None:
        """Connect, and return when the connection has ended.

        Raises:
            OSError, asyncio.TimeoutError: the connection failed.
            SequencerRefused: the certificate, key or list of authorities is invalid.
        """
        token = self._credentials.token()
        context = self._credentials.context() if leader.tls else None
        connecting = asyncio.open_connection(leader.host, leader.port, ssl=context)
        reader, writer = await asyncio.wait_for(connecting, _CONNECT_SECONDS)
        self._gone = False
        try:
            keep_alive(writer.get_extra_info("socket"))
            number = 0 if token is None else new_number()
            writer.write(FRAME.pack(Kind.HELLO, 0, 0, 0, PROTOCOL_VERSION, number))
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                if token is not None:
                    _, code, _, _, *challenge = FRAME.unpack(await reader.readexactly(FRAME_BYTES))
                    if code == Code.TOKEN_WANTED:
                        proof = token.client_proof(number, Pair(*challenge))
                        writer.write(FRAME.pack(Kind.PROVE, 0, 0, 1, *proof))
                while await reader.read(_READ_BYTES):
                    pass
        finally:
            writer.close()
