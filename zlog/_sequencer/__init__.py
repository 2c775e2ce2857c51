"""Clients of sequencers: TCP for threads and for asyncio, and the embedded store's shared one."""

from zlog._sequencer.aio import AsyncioSequencer
from zlog._sequencer.blocking import BlockingSequencer
from zlog._sequencer.credentials import CREDENTIAL_OPTIONS, Credentials
from zlog._sequencer.shared import AsyncioSharedSequencer, SharedSequencerClient

__all__ = [
    "CREDENTIAL_OPTIONS",
    "AsyncioSequencer",
    "AsyncioSharedSequencer",
    "BlockingSequencer",
    "Credentials",
    "SharedSequencerClient",
]
