"""Random histories of one object: hypothesis looks for one in which a host and the model differ."""

from __future__ import annotations

from itertools import count, zip_longest
from typing import Any

from hypothesis import HealthCheck, note, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from .objects import Store
from .replies import Answer, Read

SHOWN_CHARS_MAX = 400
_numbers = count()


class Machine(RuleBasedStateMachine):
    """One history. A subclass makes the object, `real`, and its model."""

    store: Store
    prefix: str
    real: Any = None
    model: Any = None

    def __init__(self) -> None:
        super().__init__()
        self.name = f"{self.prefix}.{next(_numbers)}"

    def both(self, method: str, *arguments: Any) -> Answer:
        """Ask the host and the model; they must say the same."""
        found: Answer = getattr(self.real, method)(*arguments)
        note(f"{method}{arguments}"[:SHOWN_CHARS_MAX] + f" -> {found}"[:SHOWN_CHARS_MAX])
        expected = self.expected(method, found, arguments)
        assert found == expected, difference(found, expected)
        return found

    def expected(self, method: str, found: Answer, arguments: tuple[Any, ...]) -> Answer:
        """Return the answer of the model; `found` is the host's."""
        del found
        answer: Answer = getattr(self.model, method)(*arguments)
        return answer


def difference(found: Any, expected: Any) -> str:
    """The first element of two lists or reads that differs; whole ones are too long to look at."""
    if isinstance(found, Answer):
        if not (isinstance(found.value, Read) and isinstance(expected.value, Read)):
            return f"{found} instead of {expected}"[:SHOWN_CHARS_MAX]
        found, expected = found.value.slots, expected.value.slots
    for i, (ours, theirs) in enumerate(zip_longest(found, expected)):
        if ours != theirs:
            return f"{i}: {ours} instead of {theirs}"
    return ""


def run_histories(
    machine: type[Machine], store: Store, prefix: str, steps: tuple[int, int]
) -> None:
    """Run a number of histories of up to a number of steps, on a store."""
    run_state_machine_as_test(
        type(machine.__name__, (machine,), {"store": store, "prefix": prefix}),
        settings=settings(
            max_examples=steps[0],
            stateful_step_count=steps[1],
            deadline=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
