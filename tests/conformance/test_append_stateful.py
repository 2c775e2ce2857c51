"""Appends to a stripe object against the model, mixed with everything else that happens to one.

Parts come with conditions of every kind, and requests come back, whole and in part, in epochs that
are over, after trims and compactions.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from .append_model import AppendModel
from .histories import run_histories
from .objects import Store, Stripe
from .replies import Answer
from .requests import TIME, AppendPart
from .test_stripe_stateful import BLOCKS, EPOCH_OFFSET, SIZE, WANTED, WRITER, StripeMachine

CONDITION = st.one_of(
    st.just({}),
    st.builds(lambda delta: {"expect": delta}, st.sampled_from([-2, 0, 0, 1])),
    st.builds(
        lambda back, sets: {"start": back, "unless": tuple(map(tuple, sets))},
        st.sampled_from([None, -1, 0, 1, 3, 20, 300]),
        st.lists(WANTED.map(sorted), min_size=1, max_size=3),
    ),
)
PARTS = st.lists(st.tuples(st.integers(1, 4), CONDITION), min_size=1, max_size=4)
STEPS = {"mem": (150, 50), "file": (20, 40), "ceph": (15, 40)}


class AppendMachine(StripeMachine):
    """One history of one stripe object of stride 1."""

    def __init__(self) -> None:
        super().__init__()
        self._appended: list[tuple[list[AppendPart], bytes, int]] = []

    @initialize(
        stripe_unit=st.sampled_from([1, 16]),
        epoch=st.integers(1, 3),
        tagged=st.booleans(),
        start=st.sampled_from([None, 0, 5]),
    )
    def make(self, stripe_unit: int, epoch: int, tagged: bool, start: int | None) -> None:
        """Start without the object; the stripe may begin above 0."""
        self._tagged = tagged
        self.real = Stripe(self.store, self.name, 1, 0, stripe_unit)
        self.model = AppendModel(1, 0, stripe_unit)
        self.both("seal", epoch, True, start)

    def expected(self, method: str, found: Answer, arguments: tuple[Any, ...]) -> Answer:
        """Return the answer of the model; a host may have forgotten what was trimmed."""
        if method == "append":
            return self.model.append_as_host(found, *arguments)
        return super().expected(method, found, arguments)

    @rule(offset=EPOCH_OFFSET, shapes=PARTS, size=SIZE, writer=WRITER, blocks=BLOCKS)
    def append_parts(self, offset: int, shapes: Any, size: int, writer: bytes, blocks: int) -> None:
        """The object says where; conditions are about positions near the tail, or about all."""
        parts, tail = [], self.model.tail
        for count, condition in shapes:
            entries = tuple(self._entries(range(count), size))
            if "expect" in condition:
                position = tail + sum(len(part.entries) for part in parts) + condition["expect"]
                parts.append(AppendPart(entries, expect=max(position, 0)))
            elif condition:
                back = condition["start"]
                start = 0 if back is None else max(tail - back, 0)
                parts.append(AppendPart(entries, None, start, condition["unless"]))
            else:
                parts.append(AppendPart(entries))
        self.both("append", self._epoch(offset), parts, writer, tail, TIME, blocks)
        self._appended.append((parts, writer, tail))

    @precondition(lambda self: self._appended)
    @rule(
        which=st.integers(0, 10**6),
        offset=st.sampled_from([0, -1, 1]),
        kept=st.sampled_from([slice(None)] * 3 + [slice(1, None), slice(0, 1), slice(0, None, 2)]),
        below=st.sampled_from([0, 0, 1, 50]),
        blocks=BLOCKS,
    )
    def append_again(self, which: int, offset: int, kept: slice, below: int, blocks: int) -> None:
        """The same request, or some of its parts, as after a lost reply."""
        parts, writer, since = self._appended[which % len(self._appended)]
        since = max(since - below, 0)
        if parts[kept]:
            self.both("append", self._epoch(offset), parts[kept], writer, since, TIME, blocks)

    def _remove(self, ahead: int) -> None:
        super()._remove(ahead)
        self._appended = []


def test_appends_agree_with_model(store: Store, prefix: str, host: str) -> None:
    run_histories(AppendMachine, store, prefix, STEPS[host])
