"""Clients of sequencers: TCP for threads and for asyncio, and the embedded store's shared one."""

from zlog._sequencer.aio import AsyncioSequencer
from zlog._sequencer.blocking import BlockingSequencer
from zlog._sequencer.credentials import Credentials
from zlog._sequencer.shared import AsyncioSharedSequencer, SharedSequencerClient

__all__ = [
    "AsyncioSequencer",
    "AsyncioSharedSequencer",
    "BlockingSequencer",
    "Credentials",
    "SharedSequencerClient",
]
