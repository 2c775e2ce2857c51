"""Sequencers on a real cluster: who leads, and a fail-over seen while the console looks."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

from playwright.sync_api import expect

import zlog

from ..support.ceph import CephCluster
from ..support.console import ConsoleProcess
from ..support.sequencer import SequencerProcess
from ..support.waiting import wait_until
from .conftest import Visitor


def test_page_shows_leader_and_failover(
    ceph_cluster: CephCluster, tmp_path: Path, visit: Visitor
) -> None:
    url = ceph_cluster.url(f"test-{uuid4().hex[:12]}")
    with SequencerProcess(url) as first, SequencerProcess(url) as second:
        leader, standby = first, second
        wait_until(lambda: {first.role(), second.role()} == {"leader", "standby"})
        if second.role() == "leader":
            leader, standby = second, first
        with ExitStack() as stack:
            store = stack.enter_context(zlog.connect(url))
            log = stack.enter_context(zlog.Log.create(store, "orders"))
            log.append_many([b"entry"] * 3)  # from here on the log names its sequencer
            console = stack.enter_context(ConsoleProcess(url, tmp_path, "--interval", "0.3"))
            page = visit(console, "/#/sequencers")
            expect(page.locator("#leader")).to_contain_text(
                leader.address,
            )
            expect(page.locator("#page")).to_contain_text("None. Fail-overs show here")
            leader.kill()
            wait_until(lambda: standby.role() == "leader")
            log.append(b"after the fail-over")
            changes = page.locator("table", has_text="Before")
            row = changes.locator("tr", has_text="sequencer")
            expect(row.first).to_contain_text("orders")
            expect(row.first).to_contain_text(leader.address)
            expect(row.first).to_contain_text(standby.address)
            expect(page.locator("#leader")).to_contain_text(
                standby.address,
            )
            row.first.get_by_role("link").click()
            newest = page.locator("tbody tr").first
            expect(newest).to_contain_text("fail-over: another sequencer")
            expect(newest).to_contain_text(standby.address)
            views = log.views()
            expect(page.locator("tbody tr")).to_have_count(len(views))
            page.goto(f"{console.address}/#/doctor")
            expect(page.get_by_role("button", name="Run again")).to_be_enabled(timeout=60_000)
            expect(page.get_by_text(standby.address).first).to_be_visible()
