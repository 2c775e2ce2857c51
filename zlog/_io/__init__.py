"""The two drivers of the logic: one blocks a thread, the other suspends on an event loop."""

from zlog._io.aio import AsyncioIo
from zlog._io.blocking import BlockingIo, drive

__all__ = ["AsyncioIo", "BlockingIo", "drive"]
