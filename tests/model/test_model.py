"""The protocol as a model (docs/model.md): what is right holds, what is wrong is found."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from .cases import CONFIGURATIONS, VARIANTS, Configuration, Variant
from .search import MODEL, Search, exhaust, shortest

pytestmark = pytest.mark.long

Searches = dict[str, Future[Search]]

# No searches but these at the same time: each keeps a core busy.
_AT_ONCE = 2


@pytest.fixture(scope="module")
def searches() -> Iterator[Searches]:
    """All searches of this module by name, begun at once."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        begun = {each.name: pool.submit(exhaust, each.definitions) for each in CONFIGURATIONS}
        for each in VARIANTS:
            begun[each.name] = pool.submit(shortest, (*each.definitions, each.name))
        yield begun
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=lambda each: each.name)
def test_model_holds_in_every_state(configuration: Configuration, searches: Searches) -> None:
    found = searches[configuration.name].result()
    assert not found.violated, "\n".join(found.steps)
    assert found.complete, found.output
    assert found.states >= configuration.states_min


def test_searches_reach_every_marked_state(searches: Searches) -> None:
    named = set(re.findall(r'reached\("(.*?)"\)', MODEL.read_text()))
    assert len(named) > 20
    reached = {place for each in CONFIGURATIONS for place in searches[each.name].result().reached}
    assert named == reached


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda each: each.name)
def test_search_detects_broken_variant(variant: Variant, searches: Searches) -> None:
    found = searches[variant.name].result()
    assert found.violated == variant.violated, "\n".join(found.steps)
    assert found.steps


def test_every_model_variant_is_tested() -> None:
    switches = {
        "APPENDERS", "READERS", "EPOCHS", "POSITIONS", "FIRST", "SECOND", "REACH", "BREADTH", "FULL"
    }  # fmt: skip
    source = MODEL.read_text()
    names = set(re.findall(r"^#if(?:n?def) (\w+)", source, re.MULTILINE))
    names |= set(re.findall(r"defined\((\w+)\)", source))
    assert names - switches == {each.name for each in VARIANTS}


def test_truncated_search_is_not_complete() -> None:
    cut = exhaust(["APPENDERS=1", "EPOCHS=2"], depth_max=40)
    assert cut.states > 0
    assert not cut.violated
    assert not cut.complete
