"""A head stays small however long its log lives: few stripes in a view, few views in the head."""

from __future__ import annotations

import errno
from dataclasses import replace

from .head_model import (
    OFFLOAD_SEGMENTS_MAX,
    OFFLOAD_URL_BYTES_MAX,
    STRIPES_MOVED_MAX,
    VIEW_STRIPES_MAX,
    VIEWS_KEPT_MAX,
)
from .objects import Head, Store
from .replies import Answer, Code
from .requests import StripeView, View, offload, parse_view
from .wire import OPEN_END

LOG_ID = 7


def rolled(view: View, epoch: int, start: int, keep: int = VIEW_STRIPES_MAX) -> View:
    """The next view: the live stripe ends at `start`, where a new one begins."""
    closed = view.stripes[-1]._replace(end=start)
    stripes = (*view.stripes[:-1], closed, StripeView(epoch, start, OPEN_END, 1))
    return replace(view, epoch=epoch, stripes=stripes[-keep:])


def roll(head: Head, view: View, start: int, keep: int = VIEW_STRIPES_MAX) -> View:
    """Bring it in."""
    epoch = head.epoch_next(1).value[0]
    following = rolled(view, epoch, start, keep)
    assert head.view_propose(view.epoch, following) == Answer(Code.OK)
    return following


def make(store: Store, prefix: str) -> tuple[Head, View]:
    """A head with its first view."""
    head = Head(store, prefix)
    assert head.create("log", LOG_ID).code == Code.OK
    first = View(1, LOG_ID, stripes=(StripeView(1, 0, OPEN_END, 1),))
    assert head.epoch_next(1).code == Code.OK
    assert head.view_propose(0, first).code == Code.OK
    return head, first


def test_view_archives_older_stripes(store: Store, prefix: str) -> None:
    head, view = make(store, prefix)
    every = view.stripes
    for start in range(10, 10 * (VIEW_STRIPES_MAX + 8), 10):
        view = roll(head, view, start)
        every = (*every[:-1], every[-1]._replace(end=start), view.stripes[-1])
    epoch = head.epoch_next(1).value[0]
    too_long = rolled(view, epoch, 10_000, keep=VIEW_STRIPES_MAX + 1)
    assert head.view_propose(view.epoch, too_long) == Answer(-errno.EINVAL)
    archived = head.stripes_read(LOG_ID).value
    assert archived == (False, every[:-VIEW_STRIPES_MAX])
    assert view.stripes == every[-VIEW_STRIPES_MAX:]
    assert head.stripes_read(LOG_ID, 25, 2).value == (True, every[2:4])


def test_head_keeps_recent_views(store: Store, prefix: str) -> None:
    head, view = make(store, prefix)
    for epoch in range(2, VIEWS_KEPT_MAX + 4):
        assert head.epoch_next().value[0] == epoch
        view = replace(view, epoch=epoch)
        assert head.view_propose(epoch - 1, view).code == Code.OK
    kept = head.view_read(0, 1024).value.views
    assert [parse_view(each).epoch for each in kept] == list(range(4, VIEWS_KEPT_MAX + 4))
    for _ in range(VIEWS_KEPT_MAX):  # epochs without a view count too
        head.epoch_next()
    view = replace(view, epoch=head.epoch_read().value.counter)
    assert head.view_propose(VIEWS_KEPT_MAX + 3, view).code == Code.OK
    assert head.view_read(0, 1024).value.views == head.view_read(latest=True).value.views


def test_trim_moves_archived_stripes_in_steps(store: Store, prefix: str) -> None:
    head, view = make(store, prefix)
    count = STRIPES_MOVED_MAX + 10
    for start in range(1, count + 1):
        view = roll(head, view, start, keep=1)
    assert head.trim_point_raise(count) == Answer(Code.OK, True)
    assert head.stripes_read(LOG_ID).value.stripes[0].start == STRIPES_MOVED_MAX
    assert len(head.stripes_loose(LOG_ID, 0, 1024).value.stripes) == STRIPES_MOVED_MAX
    assert head.trim_point_raise(0) == Answer(Code.OK, False)
    assert head.stripes_read(LOG_ID).value == (False, ())
    loose = head.stripes_loose(LOG_ID, 0, 1024).value
    assert loose.stripes == tuple((id_, 1) for id_ in range(1, count + 1))
    assert head.epoch_read().value.trim_point == count


def test_largest_offload_record(store: Store, prefix: str) -> None:
    head, first = make(store, prefix)
    end = OFFLOAD_SEGMENTS_MAX + 1
    roll(head, replace(first, offloads=True), end)
    assert head.offload_put(offload(1, 0, end, ends=range(1, end + 1))) == Answer(-errno.EINVAL)
    largest = offload(1, 0, end, b"x" * OFFLOAD_URL_BYTES_MAX, range(2, end + 1))
    assert head.offload_put(largest) == Answer(Code.OK)
    assert head.offload_list(0).value == (False, (largest,))
    assert head.offload_put(largest._replace(checksum=bytes(32))) == Answer(Code.EXISTS, 1)
