"""A TCP proxy that cuts connections and loses replies: what stands before a sequencer."""

from __future__ import annotations

import asyncio
import contextlib
import threading


class Proxy:
    """Passes connections on to a port of this machine, in a thread of its own.

    Attributes:
        address: where it listens, ``HOST:PORT``.
        target: the port to which it passes new connections on.
        loses_replies: drop what comes back; requests still arrive.
    """

    def __init__(self) -> None:
        self.target = 0
        self.loses_replies = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._passing: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        ready.wait()

    def cut(self) -> None:
        """Break all connections."""
        self._loop.call_soon_threadsafe(self._abort)

    def close(self) -> None:
        """End."""
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve(ready))
        self._loop.close()

    async def _serve(self, ready: threading.Event) -> None:
        self._stopping = asyncio.Event()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        self.address = f"{host}:{port}"
        ready.set()
        await self._stopping.wait()
        server.close()
        await self._turns()  # in which what was just accepted begins
        while self._passing:
            self._abort()
            await asyncio.gather(*self._passing)
        await self._turns()  # in which aborted connections close their sockets

    async def _turns(self) -> None:
        for _ in range(3):
            await asyncio.sleep(0)

    def _abort(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._pass(reader, writer))
        self._passing.add(task)
        task.add_done_callback(self._passing.discard)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        behind = None
        with contextlib.suppress(OSError):
            requests, behind = await asyncio.open_connection("127.0.0.1", self.target)
            self._writers.add(behind)
            pumps = [
                asyncio.ensure_future(self._pump(reader, behind)),
                asyncio.ensure_future(self._pump(requests, writer, replies=True)),
            ]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
        for each in (writer, behind):
            if each is not None:
                self._writers.discard(each)
                each.transport.abort()

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, replies: bool = False
    ) -> None:
        while data := await source.read(1 << 16):
            if not (replies and self.loses_replies):
                sink.write(data)
                await sink.drain()
