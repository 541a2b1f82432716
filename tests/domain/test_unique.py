"""When a held key blocks another execution, and which texts may be keys."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.domain.errors import DefinitionError
from rota.domain.instant import MICROSECONDS
from rota.domain.status import PENDING, TERMINAL, Status
from rota.domain.unique import LONGEST_KEY, OnConflict, Scope, Unique, check_key, holds
from tests.domain.strategies import instants

statuses = st.none() | st.sampled_from(list(Status))


@given(st.sampled_from([Scope.QUEUED, Scope.ACTIVE]), st.sampled_from(sorted(TERMINAL)), instants, instants)
def test_an_ended_holder_does_not_block_in_a_scope_that_ends_with_it(
    scope: Scope, status: Status, taken_at: int, now: int
) -> None:
    assert not holds(scope, 0.0, status, taken_at, now)


@given(st.sampled_from(sorted(PENDING)), instants, instants)
def test_a_pending_holder_blocks_others(status: Status, taken_at: int, now: int) -> None:
    assert holds(Scope.QUEUED, 0.0, status, taken_at, now)
    assert holds(Scope.ACTIVE, 0.0, status, taken_at, now)


@given(instants, instants)
def test_a_running_holder_blocks_others_only_in_the_scope_active(taken_at: int, now: int) -> None:
    assert not holds(Scope.QUEUED, 0.0, Status.RUNNING, taken_at, now)
    assert holds(Scope.ACTIVE, 0.0, Status.RUNNING, taken_at, now)


@given(statuses, st.floats(min_value=0.001, max_value=1e6), instants, instants)
def test_a_window_depends_on_time_alone(status: Status | None, window_s: float, taken_at: int, now: int) -> None:
    assert holds(Scope.WINDOW, window_s, status, taken_at, now) == (now < taken_at + round(window_s * MICROSECONDS))


@given(statuses, instants, instants)
def test_a_key_with_the_scope_forever_never_ends(status: Status | None, taken_at: int, now: int) -> None:
    assert holds(Scope.FOREVER, 0.0, status, taken_at, now)


def test_a_scope_is_a_name_or_a_duration() -> None:
    assert Unique().kind() is Scope.ACTIVE
    assert Unique(scope="queued").kind() is Scope.QUEUED
    assert Unique(scope="forever").kind() is Scope.FOREVER
    assert (Unique(scope="10m").kind(), Unique(scope="10m").window_s()) == (Scope.WINDOW, 600)
    assert (Unique(scope=90).kind(), Unique(scope=90).window_s()) == (Scope.WINDOW, 90)
    assert Unique().window_s() == 0


@pytest.mark.parametrize("scope", ["sometimes", "", "running", 0, -1, "0s", True, None])
def test_other_scopes_are_refused(scope: Any) -> None:
    with pytest.raises(DefinitionError, match="unique scope"):
        Unique(scope=scope)


@pytest.mark.parametrize("action", ["ignore", "", "RETURN", None, 3])
def test_other_conflict_actions_are_refused(action: Any) -> None:
    with pytest.raises(DefinitionError, match=r"on_conflict must be one of return, reject, replace, debounce"):
        Unique(on_conflict=action)


@pytest.mark.parametrize("action", list(OnConflict))
def test_every_conflict_action_has_a_name(action: OnConflict) -> None:
    assert Unique(on_conflict=action.value).on_conflict == action


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), min_size=1, max_size=LONGEST_KEY))
def test_printable_text_may_be_a_key(key: str) -> None:
    if key.isprintable():
        assert check_key(key, "key") == key


@pytest.mark.parametrize("key", ["", "a\x00", "a\nb", "\ud800", "x" * (LONGEST_KEY + 1), "\u202e", 5, None, b"x"])
def test_other_keys_are_refused(key: Any) -> None:
    with pytest.raises(DefinitionError, match="key must be 1 to"):
        check_key(key, "key")
