"""The head's records of offloaded stripes, as clients use them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import zlog
from zlog._base.codes import OFFLOADS_PAGE_MAX, Code
from zlog._base.io import deadline_of
from zlog._catalog.head import Head
from zlog._io import BlockingIo, drive
from zlog.offload import Offloader


def record_of(stripe: zlog.Stripe) -> zlog.StripeFile:
    """The record of a stripe whose positions have no entries."""
    segments = (zlog.FileSegment(stripe.end, 0, 0, 0, 0),)
    bounds = stripe.id, stripe.start, stripe.end
    return zlog.StripeFile(*bounds, 1, "file:///absent/a", 0, bytes(32), 0, 0, 0, segments)


def test_records_of_many_stripes(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders", width=1)
    io = BlockingIo(memory)
    head, deadline = Head(io, "orders"), deadline_of(io, None)
    epoch, _ = drive(head.epoch_next(deadline))
    assert drive(
        head.propose(log.view.epoch, replace(log.view, epoch=epoch, offloads=True), deadline)
    )
    for _ in range(OFFLOADS_PAGE_MAX + 2):
        log.append(b"entry")
        assert log.roll().offloads
    log_id, written = log.view.log_id, [record_of(each) for each in log.stripes()[:-1]]
    records = [each._replace(state=2) for each in written]
    for each in written:
        assert drive(head.offload_put(log_id, each, deadline)) == Code.OK
    assert log.stripe_files() == []  # readers use the objects
    for each in records:
        assert drive(head.offload_put(log_id, each, deadline)) == Code.OK
    assert log.stripe_files() == records
    assert log.stripe_files(1, OFFLOADS_PAGE_MAX) == records[1:OFFLOADS_PAGE_MAX]
    assert log.stripe_files(1, 1) == []
    other = written[0]._replace(url="file:///absent/b")
    assert drive(head.offload_put(log_id, other, deadline)) == Code.EXISTS
    assert drive(head.offload_list(log_id, 1, deadline)) == records[1:]
    log.trim_to(1)
    assert log.stripe_files() == records[1:]
    assert drive(head.offload_put(log_id, other, deadline)) == Code.BELOW_TRIM_POINT
    assert drive(head.offload_list(log_id, 0, deadline)) == records[1:]


def test_audit_finds_stripes_that_are_offloaded_meanwhile(
    memory: zlog.Store, tmp_path: Path
) -> None:
    with (
        zlog.Log.create(memory, "orders", width=2) as log,
        zlog.Log.open(memory, "orders") as other,
    ):
        for _ in range(3):
            log.append_many([b"entry"] * 10)
            log.roll()
        audit = log.check(progress=lambda *_: [*Offloader(other, str(tmp_path)).run()])
        assert [*audit] == []
        summary = audit.summary
    assert (summary.entries, summary.lost, summary.offloaded, summary.files) == (30, 0, 20, 2)
