"""Clients of sequencers: TCP for threads and for asyncio, and the embedded store's shared one."""

from zlog._sequencer.aio import AsyncioSequencer
from zlog._sequencer.blocking import BlockingSequencer
from zlog._sequencer.shared import AsyncioSharedSequencer, SharedSequencerClient
from zlog._sequencer.types import (
    SHARED_ADDRESS,
    Grant,
    LogAddress,
    SequencerClient,
    format_address,
    parse_address,
    parse_host_port,
)

__all__ = [
    "SHARED_ADDRESS",
    "AsyncioSequencer",
    "AsyncioSharedSequencer",
    "BlockingSequencer",
    "Grant",
    "LogAddress",
    "SequencerClient",
    "SharedSequencerClient",
    "format_address",
    "parse_address",
    "parse_host_port",
]
