"""A head object against its model, over random histories."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from .head_model import HeadModel
from .histories import Machine, run_histories
from .objects import Head, Store
from .requests import ADVANCE, CREATE, SET, Grant, Part, StripeView, View, offload
from .wire import OPEN_END

STEPS = {"mem": (100, 50), "file": (20, 30), "ceph": (8, 30)}
LOG_ID = 7
CURSOR = st.sampled_from(["a", "b", "b.b", "_", "Z", "z" * 128, ".bad", ""])
PRODUCER = st.sampled_from(["a", "a", "a", "a.b", "z" * 128, ".bad"])
SEQUENCE = st.sampled_from([0, 1, 1, 2, 2**64 - 2, 2**64 - 1])
PART = st.sampled_from([0, 1, 2**32 - 1])
LOG_ID_SENT = st.sampled_from([LOG_ID] * 9 + [LOG_ID + 1])
DELIVERED = st.builds(Part, PRODUCER, SEQUENCE, PART, LOG_ID_SENT)
FLAWS = ["base", "epoch", "log_id", "stripes", "width", "unannounced", "offloads"]


class HeadMachine(Machine):
    """One history of one head object: mostly sound proposals, with one thing wrong at times."""

    @initialize(views=st.integers(0, 4))
    def make(self, views: int) -> None:
        """Start without the object; most histories have some stripes before all else."""
        self.real, self.model = Head(self.store, self.name), HeadModel()
        self.both("epoch_next")
        self.both("create", "log", LOG_ID)
        for _ in range(views):
            self.propose(10, 0, True, "", "none", 1, offloads=True, ordered=False)

    @rule(happens=st.integers(0, 4))
    def create(self, happens: int) -> None:
        if happens == 0:
            self.both("create", "log", LOG_ID + 1)

    @rule(width=st.sampled_from([0, 1, 4, 1024, 1025]))
    def epoch_next(self, width: int) -> None:
        self.both("epoch_next", width)

    @rule()
    def epoch_read(self) -> None:
        self.both("epoch_read")

    @rule(offset=st.sampled_from([0, 0, 0, -1, 1]), tail=st.integers(0, 50), log_id=LOG_ID_SENT)
    def tail_raise(self, offset: int, tail: int, log_id: int) -> None:
        self.both("tail_raise", max(self.model.counter + offset, 0), tail, log_id)

    @rule(
        cut=st.integers(0, 30),
        drop=st.sampled_from([0, 0, 0, 1, 2]),
        grow=st.booleans(),
        sequencer=st.sampled_from(["", "store:", "tcp://a:1"]),
        flaw=st.sampled_from(["none"] * 6 + FLAWS),
        removed=st.integers(0, 12),
        offloads=st.booleans(),
        ordered=st.sampled_from([False] * 5 + [True]),
    )
    def propose(
        self,
        cut: int,
        drop: int,
        grow: bool,
        sequencer: str,
        flaw: str,
        removed: int,
        offloads: bool,
        ordered: bool,
    ) -> None:
        """The next view, reconfigured or not, perhaps with one flaw; in an epoch of its own."""
        if flaw != "epoch":
            width = 1 + cut if self.model.views else 4
            self.both("epoch_next", 0 if flaw == "unannounced" else width)
        view = self._next_view(cut, drop, grow)
        view = replace(view, sequencer=sequencer, removed=removed == 0)
        view = replace(view, offloads=view.offloads or offloads, ordered=ordered)
        base = self.model.newest + (1 if flaw == "base" else 0)
        self.both("view_propose", base, _spoil(view, flaw))

    def _next_view(self, cut: int, drop: int, grow: bool) -> View:
        epoch = self.model.counter
        if not self.model.views:
            return View(epoch, self.model.log_id, stripes=(StripeView(epoch, 0, OPEN_END, 4),))
        base: View = self.model.views[-1]
        stripes = list(base.stripes)
        if grow:
            last = stripes.pop()
            end = last.start + cut
            stripes += [last._replace(end=end)] if cut else []
            stripes.append(StripeView(epoch, end, OPEN_END, 1 + cut))
        return replace(base, epoch=epoch, stripes=tuple(stripes[min(drop, len(stripes) - 1) :]))

    @rule(point=st.integers(0, 60), log_id=LOG_ID_SENT, past_cursors=st.booleans())
    def trim_point_raise(self, point: int, log_id: int, past_cursors: bool) -> None:
        self.both("trim_point_raise", point, log_id, past_cursors)

    @rule(
        name=CURSOR,
        mode=st.sampled_from([ADVANCE, ADVANCE, CREATE, SET]),
        position=st.integers(0, 60),
        time=st.integers(0, 3),
        log_id=LOG_ID_SENT,
    )
    def cursor_commit(self, name: str, mode: int, position: int, time: int, log_id: int) -> None:
        self.both("cursor_commit", name, mode, position, time, log_id)

    @rule(name=CURSOR, log_id=LOG_ID_SENT)
    def cursor_read(self, name: str, log_id: int) -> None:
        self.both("cursor_read", name, log_id)

    @rule(name=CURSOR, log_id=LOG_ID_SENT, happens=st.integers(0, 2))
    def cursor_remove(self, name: str, log_id: int, happens: int) -> None:
        if happens == 0:
            self.both("cursor_remove", name, log_id)

    @rule(after=st.one_of(st.just(""), CURSOR), count_max=st.sampled_from([1, 2, 1024]))
    def cursor_list(self, after: str, count_max: int) -> None:
        self.both("cursor_list", after, count_max)

    @rule(log_id=LOG_ID_SENT)
    def retention_read(self, log_id: int) -> None:
        self.both("retention_read", log_id)

    @rule(back=st.sampled_from([0, 0, 0, 1, -1]), state=st.binary(max_size=9), log_id=LOG_ID_SENT)
    def retention_write(self, back: int, state: bytes, log_id: int) -> None:
        self.both("retention_write", max(self.model.retention[0] - back, 0), state, log_id)

    @rule(part=DELIVERED, time=st.integers(0, 3))
    def delivery_begin(self, part: Part, time: int) -> None:
        self.both("delivery_begin", part, time)

    @rule(
        part=DELIVERED,
        attempt=st.integers(0, 3),
        back=st.sampled_from([0, 0, 0, 1]),
        other=st.sampled_from([0, 0, 0, 0, -1, 1]),
        first=st.integers(0, 60),
        count=st.sampled_from([0, 1, 3, 5]),
        reserve=st.booleans(),
        opened=st.sampled_from([False, False, True]),
    )
    def delivery_grant(
        self,
        part: Part,
        attempt: int,
        back: int,
        other: int,
        first: int,
        count: int,
        reserve: bool,
        opened: bool,
    ) -> None:
        epoch = max(self.model.counter - back, 0)
        incarnation = max(self.model.incarnations.get(part.producer, 1) + other, 0)
        grant = Grant(part, attempt, epoch, first, count, reserve, incarnation, opened)
        self.both("delivery_grant", grant)

    @rule(part=DELIVERED)
    def delivery_read(self, part: Part) -> None:
        self.both("delivery_read", part)

    @rule(
        producer=PRODUCER,
        sequence=SEQUENCE,
        happens=st.integers(0, 2),
        named=st.sampled_from(["seen", "seen", "seen", "next", "next", "none", "before"]),
        time=st.integers(0, 3),
        log_id=LOG_ID_SENT,
        back=st.sampled_from([None, None, 0, 1]),
    )
    def delivery_done(
        self,
        producer: str,
        sequence: int,
        happens: int,
        named: str,
        time: int,
        log_id: int,
        back: int | None,
    ) -> None:
        if happens != 0:
            return
        seen = self.model.incarnations.get(producer, 0)
        numbers = {"next": self.model.incarnation + 1, "none": 0, "before": max(seen - 1, 0)}
        epoch = 0 if back is None else max(self.model.counter - back, 0)
        number = numbers.get(named, seen)
        self.both("delivery_done", producer, sequence, number, time, log_id, epoch)

    @rule(part=DELIVERED)
    def producer_parts(self, part: Part) -> None:
        self.both("producer_parts", part)

    @rule(
        producer=PRODUCER,
        other=st.sampled_from([0, 0, 0, -1, 1, 2]),
        back=st.sampled_from([0, 0, 0, 1]),
        parts=st.lists(
            st.tuples(
                SEQUENCE,
                PART,
                st.just(1),
                st.integers(0, 3),
                st.lists(st.tuples(st.integers(0, 5), st.integers(1, 5)), max_size=3),
                st.sampled_from([0, 0, 1, 4]),
            ),
            max_size=3,
        ),
        time=st.integers(0, 3),
        log_id=LOG_ID_SENT,
    )
    def producer_copy(
        self,
        producer: str,
        other: int,
        back: int,
        parts: list[tuple[object, ...]],
        time: int,
        log_id: int,
    ) -> None:
        known = self.model.incarnations.get(producer, self.model.incarnation + 1)
        epoch = max(self.model.counter - back, 0)
        incarnation = max(known + other, 0)
        self.both("producer_copy", producer, incarnation, epoch, parts, time, time, log_id)

    @rule(
        after=st.one_of(st.just(""), PRODUCER),
        count_max=st.sampled_from([0, 1, 2, 1024, 1025]),
        log_id=LOG_ID_SENT,
    )
    def delivery_list(self, after: str, count_max: int, log_id: int) -> None:
        self.both("delivery_list", after, count_max, log_id)

    @rule(
        start=st.integers(0, 40), count_max=st.sampled_from([1, 2, 5, 1024]), latest=st.booleans()
    )
    def view_read(self, start: int, count_max: int, latest: bool) -> None:
        self.both("view_read", start, count_max, latest)

    @rule(position=st.integers(0, 100), count_max=st.sampled_from([0, 1, 2, 1024]))
    def stripes_read(self, position: int, count_max: int) -> None:
        self.both("stripes_read", LOG_ID, position, count_max)

    @rule(after=st.integers(0, 20), count_max=st.sampled_from([1, 2, 1024, 1025]))
    def stripes_loose(self, after: int, count_max: int) -> None:
        self.both("stripes_loose", LOG_ID, after, count_max)

    @rule(back=st.integers(-1, 20), log_id=st.sampled_from([LOG_ID, LOG_ID, LOG_ID, 8]))
    def stripe_forget(self, back: int, log_id: int) -> None:
        self.both("stripe_forget", log_id, max(self.model.newest - back, 0))

    @precondition(lambda self: self._ended())
    @rule(
        which=st.integers(0, 9),
        files=st.lists(st.sampled_from([(b"a", 1), (b"a", 2), (b"a", 3), (b"b", 1)]), max_size=4),
        beside=st.sampled_from([0, 0, 0, 0, 1]),
        log_id=LOG_ID_SENT,
    )
    def offload_put(
        self, which: int, files: list[tuple[bytes, int]], beside: int, log_id: int
    ) -> None:
        ended = self._ended()
        id_, start, end, *_ = ended[which % len(ended)]
        for url, state in files:
            self.both("offload_put", offload(id_, start + beside, end, url, state=state), log_id)

    def _ended(self) -> list[Any]:
        newest = self.model.views[-1:]
        return [*self.model.archived, *(each for view in newest for each in view.stripes[:-1])]

    @rule(position=st.integers(0, 60), count_max=st.sampled_from([0, 1, 2, 128]))
    def offload_list(self, position: int, count_max: int) -> None:
        self.both("offload_list", position, count_max)

    @precondition(lambda self: self.model.offloads)
    @rule(which=st.integers(0, 9), url=st.sampled_from([b"a", b"b"]), log_id=LOG_ID_SENT)
    def offload_forget(self, which: int, url: bytes, log_id: int) -> None:
        ends = [*self.model.offloads]
        self.both("offload_forget", ends[which % len(ends)], url, log_id)

    @rule(offset=st.sampled_from([-1, 0, 0, 1]))
    def remove(self, offset: int) -> None:
        if self.both("remove", max(self.model.newest + offset, 0)).code == 0:
            self.both("epoch_read")
            self.both("create", "log", LOG_ID)

    def teardown(self) -> None:
        """At the end of a history everything is looked at."""
        if self.model is not None:
            self.both("view_read", 0, 1024)
            self.both("cursor_list", "", 1024)
            self.both("delivery_list", "", 1024)
            self.both("stripes_read", LOG_ID, 0, 1024)
            self.both("stripes_loose", LOG_ID, 0, 1024)
            self.both("offload_list", 0, 128)


def _spoil(view: View, flaw: str) -> View:
    last = view.stripes[-1]
    if flaw == "log_id":
        return replace(view, log_id=view.log_id + 1)
    if flaw == "stripes":
        return replace(view, stripes=(*view.stripes[:-1], last._replace(start=last.start + 1)))
    if flaw == "offloads":
        return replace(view, offloads=False)
    if flaw == "width":
        return replace(view, stripes=(*view.stripes[:-1], last._replace(width=last.width + 1)))
    return view


def test_head_object_agrees_with_model(store: Store, prefix: str, host: str) -> None:
    run_histories(HeadMachine, store, prefix, STEPS[host])
