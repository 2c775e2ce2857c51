"""Clients of sequencers: TCP for threads and for asyncio, and the embedded store's shared one."""

from zlog._sequencer.aio import AsyncioSequencer
from zlog._sequencer.blocking import BlockingSequencer
from zlog._sequencer.credentials import CREDENTIAL_OPTIONS, Credentials
from zlog._sequencer.shared import AsyncioSharedSequencer, SharedSequencerClient
from zlog._sequencer.types import (
    SHARED_ADDRESS,
    Endpoint,
    Grant,
    LogAddress,
    SequencerClient,
    format_address,
    is_remote,
    parse_address,
    parse_given_address,
    parse_host_port,
)

__all__ = [
    "CREDENTIAL_OPTIONS",
    "SHARED_ADDRESS",
    "AsyncioSequencer",
    "AsyncioSharedSequencer",
    "BlockingSequencer",
    "Credentials",
    "Endpoint",
    "Grant",
    "LogAddress",
    "SequencerClient",
    "SharedSequencerClient",
    "format_address",
    "is_remote",
    "parse_address",
    "parse_given_address",
    "parse_host_port",
]
