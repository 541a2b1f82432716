"""Hints are sent only after the commit, and are merged into as few as possible."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.domain.status import Status
from rota.ops import enqueue
from rota.store.hints import CancelAsked, Due, Ended, Hint, Ready, merged
from rota.store.port import Tx
from tests.support.world import Boom, RecordingBus, World


def test_a_hint_is_sent_after_its_commit_can_be_read(world: World) -> None:
    seen: list[Status] = []
    item = world.item()
    before, world.store.bus = world.store.bus, RecordingBus(lambda: seen.append(world.status(item.id)))
    try:
        world.store.transact(enqueue.enqueue, world.header(), [item])
    finally:
        world.store.bus = before
    assert seen == [Status.QUEUED]


def test_hints_of_an_operation_that_failed_are_not_sent(world: World, bus: RecordingBus) -> None:
    def tell_and_fail(tx: Tx) -> None:
        tx.tell(Ended(("x",)))
        raise Boom

    with pytest.raises(Boom):
        world.store.transact(tell_and_fail)
    world.enqueue()
    assert not [hint for hint in bus.hints if isinstance(hint, Ended)]


def test_an_operation_that_changes_nothing_sends_no_hint(world: World, bus: RecordingBus) -> None:
    world.promote()
    world.claim(world.join())
    assert bus.hints == []


hints = st.lists(
    st.builds(Ready, st.dictionaries(st.integers(1, 5), st.integers(0, 9), max_size=3))
    | st.builds(Due, st.integers(0, 100))
    | st.builds(CancelAsked, st.integers(1, 3))
    | st.builds(Ended, st.lists(st.sampled_from("abc"), max_size=3).map(tuple)),
    max_size=12,
)


@given(hints)
def test_merged_hints_are_equivalent_and_few(given_hints: list[Hint]) -> None:
    result = merged(given_hints)
    assert {lane for hint in result if isinstance(hint, Ready) for lane in hint.lanes} == {
        lane for hint in given_hints if isinstance(hint, Ready) for lane in hint.lanes
    }
    assert {id for hint in result if isinstance(hint, Ended) for id in hint.ids} == {
        id for hint in given_hints if isinstance(hint, Ended) for id in hint.ids
    }
    assert {hint for hint in result if isinstance(hint, CancelAsked)} == {
        hint for hint in given_hints if isinstance(hint, CancelAsked)
    }
    due = [hint.at for hint in given_hints if isinstance(hint, Due)]
    assert [hint.at for hint in result if isinstance(hint, Due)] == ([min(due)] if due else [])
    for kind in (Ready, Due, Ended):
        assert sum(isinstance(hint, kind) for hint in result) <= 1
    assert merged(result) == result


def test_a_store_whose_bus_is_broken_still_accepts(world: World) -> None:
    """Hints may be lost: a caller must never fail because of one."""
    before, world.store.bus = world.store.bus, RecordingBus(_broken)
    try:
        assert world.status(world.enqueue()) is Status.QUEUED
        assert world.status(world.enqueue()) is Status.QUEUED
    finally:
        world.store.bus = before


def _broken() -> None:
    raise OSError("no buffer space")
