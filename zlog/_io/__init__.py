"""The two implementations of ``Io``: for threads and for asyncio."""

from zlog._io.aio import AsyncioIo
from zlog._io.blocking import BlockingIo, drive

__all__ = ["AsyncioIo", "BlockingIo", "drive"]
