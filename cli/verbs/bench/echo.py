"""Servers that do nothing with frames: what a sequencer in Python could reach at most."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import zlog
from zlog._sequencer.frames import FRAME, FRAME_BYTES
from zlog.cli.verbs.bench.processes import python
from zlog.seqr.service import new_event_loop


class _Echo(asyncio.Protocol):
    """Sends every chunk back as it came."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


class _Frames(_Echo):
    """Takes every chunk apart and puts it together again, frame by frame.

    One ``iter_unpack`` and one write per chunk, as a sequencer does, and no decision at all.
    """

    rest = b""

    def data_received(self, data: bytes) -> None:
        data = self.rest + data
        whole = len(data) - len(data) % FRAME_BYTES
        self.rest = data[whole:]
        pack = FRAME.pack
        self.transport.write(b"".join([pack(*frame) for frame in FRAME.iter_unpack(data[:whole])]))


KINDS = {"echo": _Echo, "frames": _Frames}


def serve(kind: str) -> None:
    """Be such a server on a free port, until killed; says on stdout which."""
    loop = new_event_loop()
    listening = loop.run_until_complete(loop.create_server(KINDS[kind], "127.0.0.1", 0))
    print(f"listening on=127.0.0.1:{listening.sockets[0].getsockname()[1]}", flush=True)
    loop.run_forever()


class EchoProcess:
    """Such a server as a process.

    Attributes:
        pid: of the process.
        address: where it listens, ``tcp://HOST:PORT``.
    """

    def __init__(self, pid: int, address: str) -> None:
        self.pid = pid
        self.address = address


@contextmanager
def running_echo(kind: str) -> Iterator[EchoProcess]:
    """Run a server for the length of a ``with`` block: ``echo`` or ``frames``."""
    code = f"from zlog.cli.verbs.bench.echo import serve; serve({kind!r})"
    with subprocess.Popen(  # noqa: S603  # our own program, no shell
        python(code), stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"on=(\S+)", process.stdout.readline())
            if found is None:
                raise zlog.ZlogError("the benchmark's echo server did not start")
            yield EchoProcess(process.pid, f"tcp://{found[1]}")
        finally:
            process.terminate()
            process.wait()
