"""Ids: UUIDv7, strictly increasing, whatever the clock does."""

from __future__ import annotations

import threading
import uuid

from hypothesis import given
from hypothesis import strategies as st

from rota.clock import ManualClock, SystemClock
from rota.ids import IdSource


@given(st.lists(st.tuples(st.floats(min_value=-5, max_value=5), st.integers(1, 50)), max_size=20), st.integers(0, 9))
def test_ids_increase_even_when_the_clock_goes_back(steps: list[tuple[float, int]], seed: int) -> None:
    clock = ManualClock(seed=seed)
    source = IdSource(clock)
    made: list[str] = []
    for seconds, count in steps:
        clock.advance(seconds)
        made += source.many(count)
    assert made == sorted(set(made))


def test_more_ids_than_a_millisecond_holds_still_increase() -> None:
    made = IdSource(ManualClock()).many(20_000)
    assert made == sorted(set(made))


def test_an_id_is_a_version_7_uuid_that_tells_its_time() -> None:
    clock = ManualClock()
    id = uuid.UUID(IdSource(clock).new())
    assert (id.version, id.variant) == (7, uuid.RFC_4122)
    assert id.int >> 80 == clock.now() // 1000


def test_threads_that_share_a_source_never_get_the_same_id() -> None:
    source = IdSource(SystemClock())
    made: list[list[str]] = [[] for _ in range(8)]
    threads = [threading.Thread(target=lambda mine=mine: mine.extend(source.many(2_000))) for mine in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id for mine in made for id in mine}) == 16_000


def test_a_seed_decides_every_id() -> None:
    assert IdSource(ManualClock(seed=7)).many(5) == IdSource(ManualClock(seed=7)).many(5)
    assert IdSource(ManualClock(seed=7)).many(5) != IdSource(ManualClock(seed=8)).many(5)
