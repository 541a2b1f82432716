"""The context of an attempt, over the state that the engine has of it."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from rota import Context, DefinitionError
from rota.executors.attempt_state import AttemptState
from tests.executors.test_command import claim_of
from tests.support.waiting import eventually


@pytest.mark.parametrize("timeout", [600, "10m", timedelta(minutes=10)])
def test_a_wait_takes_any_duration_and_ends_when_the_attempt_is_asked_to_stop(timeout: Any) -> None:
    attempt = AttemptState(claim_of({}), None)
    found: list[bool] = []
    waiting = threading.Thread(target=lambda: found.append(Context(attempt).wait_cancelled(timeout)))
    waiting.start()
    eventually(lambda: attempt._waiter is not None)
    attempt.ask_to_stop()
    waiting.join(60)
    assert found == [True]
    assert attempt.saw_stop


@pytest.mark.parametrize("timeout", [0, "0s", timedelta(0), 0.001])
def test_a_wait_ends_after_its_time(timeout: Any) -> None:
    attempt = AttemptState(claim_of({}), None)
    assert not Context(attempt).wait_cancelled(timeout)
    assert not attempt.saw_stop


@pytest.mark.parametrize("timeout", ["soon", -1, None])
def test_a_wait_of_no_duration_is_refused(timeout: Any) -> None:
    with pytest.raises(DefinitionError, match="wait_cancelled must be"):
        Context(AttemptState(claim_of({}), None)).wait_cancelled(timeout)


@pytest.mark.parametrize("tick", [None, 30_000_001])
def test_times_are_datetimes_in_utc(tick: int | None) -> None:
    run_at = 40_000_001 if tick else 30_000_001  # The tick counts; the run is later if it has a jitter.
    claim = msgspec.structs.replace(claim_of({}), run_at=run_at, tick=tick, started_at=42_000_001)
    context = Context(AttemptState(claim, None))
    assert context.scheduled_for == datetime(1970, 1, 1, 0, 0, 30, 1, tzinfo=UTC)
    assert context.scheduled_for.tzinfo is UTC
    assert context.late_by == timedelta(seconds=12)
    early = msgspec.structs.replace(claim, started_at=0)
    assert Context(AttemptState(early, None)).late_by == timedelta(0)
