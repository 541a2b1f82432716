"""The checker of the chaos run finds what it is there to find, and the measures measure what they say."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from tests.chaos import check, measures
from tests.chaos.check import Story
from tests.chaos.measures import Rate, Spread, spread
from tests.chaos.storm import Fault
from tests.kill.crew import Death, Pause
from tests.kill.effects import Answer, Effect, Recorded
from tests.kill.evidence import Attempt, Evidence, Execution, Tick
from tests.kill.journal import Entry, Word

S = 1_000_000
LOST_ERROR, BOOM = '{"type": "WorkerLost"}', '{"type": "tests.kill.jobs.Boom"}'
TIMEOUT, SIGNAL = '{"type": "Timeout"}', '{"type": "Signal"}'
KILLED = Death(11, 15 * S, Fault.SUPERVISOR, 11)
"""The worker process of the first attempt."""


def attempt(id: str, fence: int, status: str, reason: str, at: float, **more: object) -> Attempt:
    """A second long, by a worker process whose number is ten more than the fence."""
    base = Attempt(id, fence, False, status, reason, 0, 0, 10 + fence, int(at * S), int((at + 1) * S), None, None)
    return replace(base, **more)


def effect(id: str, fence: int, kind: str, at: float, answer: Answer = Answer.COUNTED) -> Recorded:
    return Recorded(Effect(id, fence, kind, kind == "charge", 10 + fence), answer, int(at * S))


LOST = attempt("s", 1, "lost", "crashed", 14.5, crashes=1, error=LOST_ERROR)
AGAIN = attempt("s", 2, "failed", "error", 16, crashes=1, error=BOOM)
DONE = attempt("s", 3, "success", "completed", 18, crashes=1, final=True, attempts=1, result="3")
TOLD = attempt("l", 1, "cancelled", "cancelled", 20, final=True, finished_at=22 * S)
LATE = attempt("o", 1, "failed", "timeout", 20, error=TIMEOUT, finished_at=int(21.25 * S))
LAST = attempt(
    "o", 2, "failed", "retries_exhausted", 22, error=TIMEOUT, finished_at=int(23.1 * S), final=True, attempts=2
)
TICKED = attempt("t", 1, "success", "completed", 30, final=True, result="1")
FIRED = Tick("second", 30 * S, 30 * S, 1, "fired", "t")
SKIPPED = Tick("second", 31 * S, 33 * S, 3, "missed", None)
OTHER = Tick("other_second", 30 * S, 30 * S, 1, "overlap", None)
ENTRIES = [
    *(Entry(f"ticket-{id}", True, at=at * S) for id, at in (("s", 13), ("l", 19), ("o", 19))),
    *(Entry(f"ticket-{id}", True, id, at=at * S) for id, at in (("s", 14), ("l", 20), ("o", 20))),
    Entry("ticket-l", True, "l", Word.CANCEL, int(20.5 * S)),
    Entry("ticket-l", True, "l", Word.CANCELLED, int(20.8 * S)),
    Entry("ticket-x", False, None, Word.TOO_MUCH, 22 * S),
    Entry("ticket-x", False, None, Word.REFUSED, 22 * S),
]
EFFECTS = [
    *(effect("s", 1, kind, 14.7) for kind in ("from 0", "step 0", "step 1")),
    *(effect("s", 2, kind, 16.7) for kind in ("from 1", "step 1", "step 2")),
    *(effect("s", 3, kind, 18.7) for kind in ("from 3", "step 3", "step 4")),
    effect("s", 3, "charge", 18.8, Answer.DONE),
    effect("l", 1, "start", 20.1),
    effect("l", 1, "told", 20.9),
    effect("o", 1, "start", 20.1),
    effect("o", 2, "start", 22.1),
    effect("t", 1, "charge", 30.1, Answer.DONE),
]
HEALTHY = Story(
    [ENTRIES],
    EFFECTS,
    Evidence(
        executions=[
            Execution("s", "stepped", "ticket-s"),
            Execution("l", "long", "ticket-l"),
            Execution("o", "overrun", "ticket-o"),
            Execution("t", "second", None, "second", 30 * S),
        ],
        attempts={"s": [LOST, AGAIN, DONE], "l": [TOLD], "o": [LATE, LAST], "t": [TICKED]},
        pending={"ready": 0},
        dead={"o"},
        live_workers=0,
        integrity="ok",
        ticks=[OTHER, FIRED, SKIPPED],
    ),
    deaths=[KILLED],
)


def with_database(**changes: object) -> Story:
    return replace(HEALTHY, database=replace(HEALTHY.database, **changes))


def with_history(id: str, *attempts: Attempt) -> Story:
    return with_database(attempts={**HEALTHY.database.attempts, id: list(attempts)})


def with_effects(*more: Recorded) -> Story:
    return replace(HEALTHY, effects=[*HEALTHY.effects, *more])


def with_ticks(*ticks: Tick) -> Story:
    return with_database(ticks=[OTHER, *ticks])


def with_poison(*crashes: Attempt) -> Story:
    """The overrun is poison instead."""
    executions = [replace(one, job="poison") if one.id == "o" else one for one in HEALTHY.database.executions]
    history = {**HEALTHY.database.attempts, "o": list(crashes)}
    return with_database(executions=executions, attempts=history)


def loop(*, until: int) -> list[Attempt]:
    """So many crashes, of which the last ends it."""
    crashes = [attempt("o", n, "lost", "crashed", 20 + 2 * n, crashes=n, error=LOST_ERROR) for n in range(1, until + 1)]
    return [*crashes[:-1], replace(crashes[-1], status="failed", reason="crash_loop", final=True)]


TALES: dict[str, tuple[str, Callable[[], Story]]] = {
    "a success with an old fence's result": (
        "outcomes",
        lambda: with_history("s", LOST, AGAIN, replace(DONE, result="2")),
    ),
    "a death without a killer": ("outcomes", lambda: replace(HEALTHY, deaths=[])),
    "a killer who came too late": ("outcomes", lambda: replace(HEALTHY, deaths=[replace(KILLED, at=40 * S)])),
    "a command that died without a kill": (
        "outcomes",
        lambda: replace(with_history("o", replace(LATE, error=SIGNAL), LAST), deaths=[KILLED]),
    ),
    "an error of its own": (
        "outcomes",
        lambda: with_history("s", LOST, replace(AGAIN, error='{"type": "OSError"}'), DONE),
    ),
    "an overrun that succeeded": (
        "outcomes",
        lambda: with_history("o", LATE, replace(LAST, status="success", reason="completed", result="2")),
    ),
    "poison given up too early": ("outcomes", lambda: with_poison(*loop(until=2))),
    "poison that got away": ("outcomes", lambda: with_poison(LATE, LAST)),
    "stored although refused": (
        "refused",
        lambda: with_database(executions=[*HEALTHY.database.executions, Execution("x", "call", "ticket-x")]),
    ),
    "started after its cancel": (
        "cancelled",
        lambda: with_history(
            "l", replace(TOLD, final=False), attempt("l", 2, "cancelled", "cancelled", 23, final=True)
        ),
    ),
    "failed after its cancel": (
        "cancelled",
        lambda: with_history("l", replace(TOLD, status="failed", reason="retries_exhausted")),
    ),
    "acting after its time": ("stopped", lambda: with_effects(effect("o", 1, "end", 27))),
    "acting after its cancel": ("stopped", lambda: with_effects(effect("l", 1, "end", 28))),
    "a missing tick": ("ticks", lambda: with_ticks(FIRED, replace(SKIPPED, at=32 * S, count=2))),
    "a tick twice": ("ticks", lambda: with_ticks(FIRED, replace(SKIPPED, at=30 * S, count=4))),
    "a range that is counted wrongly": ("ticks", lambda: with_ticks(FIRED, replace(SKIPPED, count=2))),
    "a tick off its time": ("ticks", lambda: with_ticks(replace(FIRED, at=30 * S + 1, until=30 * S + 1))),
    "no ledger at all": ("ticks", lambda: with_database(ticks=[FIRED])),
    "a tick without its execution": ("ticks", lambda: with_ticks(replace(FIRED, execution="u"))),
    "two executions of a tick": (
        "ticks",
        lambda: with_database(
            executions=[*HEALTHY.database.executions, Execution("u", "second", None, "second", 30 * S)]
        ),
    ),
    "too early": ("ticks", lambda: with_history("t", replace(TICKED, started_at=29 * S))),
    "a checkpoint forgotten": ("checkpoints", lambda: with_effects(effect("s", 4, "from 0", 20))),
    "a checkpoint of no attempt": ("checkpoints", lambda: with_effects(effect("s", 4, "from 9", 20))),
}


def test_a_healthy_story_has_no_problems() -> None:
    assert check.problems(HEALTHY) == []
    assert set(check.counted([])) == {rule.__name__ for rule in check.RULES}


@pytest.mark.parametrize("tale", TALES)
def test_a_wrong_story_is_found(tale: str) -> None:
    rule, told = TALES[tale]
    found = check.problems(told())
    assert check.counted(found)[rule] > 0, found


def test_three_crashes_are_the_expected_end_of_a_poison_job() -> None:
    assert check.counted(check.problems(with_poison(*loop(until=3))))["outcomes"] == 0


def test_a_crash_of_a_cancelled_execution_may_be_recorded_as_a_cancel() -> None:
    crashed = replace(TOLD, crashes=1, error=LOST_ERROR)
    assert check.counted(check.problems(with_history("l", crashed)))["history"] == 0
    assert check.counted(check.problems(with_history("l", replace(crashed, crashes=2))))["history"] == 1
    assert check.counted(check.problems(with_history("l", replace(TOLD, crashes=1))))["history"] == 1


def test_a_stopped_worker_explains_late_effects() -> None:
    late = with_effects(effect("o", 1, "end", 27))
    paused = replace(late, pauses=[Pause([11], Fault.STOP_BOTH, 19 * S, 25 * S)])
    assert check.counted(check.problems(paused))["stopped"] == 0


def test_only_executions_that_the_run_killed_three_times_are_left_out_of_the_success_rate() -> None:
    crashes = [replace(one, id="s") for one in loop(until=3)]
    blows = [Death(10 + n, int((20.5 + 2 * n) * S), Fault.CHILD, 10 + n) for n in (1, 2, 3)]
    ours = replace(with_history("s", *crashes), deaths=blows)
    assert measures.success(ours) == (Rate(1, 1), 1)
    not_ours = replace(ours, deaths=blows[:2])
    assert measures.success(not_ours) == (Rate(1, 2), 0)
    assert check.counted(check.problems(not_ours))["outcomes"] > 0


def test_a_second_is_available_if_an_enqueue_was_accepted_and_an_attempt_started_in_it() -> None:
    # Accepted in 14 and 20; started in 14, 16, 18, 20, 22 and 30.
    everything, apart = measures.availability(replace(HEALTHY, blackouts=[15 * S]), 13 * S, 21 * S)
    assert everything == Rate(2, 7)
    # From 15 until 20, when both had been seen again.
    assert apart == Rate(1, 1)
    assert measures.recoveries(replace(HEALTHY, blackouts=[15 * S])) == Spread(1, 5.0, 5.0, 5.0)


def test_measures_have_the_expected_values() -> None:
    assert measures.restarts(HEALTHY) == Spread(1, 1.0, 1.0, 1.0)
    assert measures.restarts(replace(HEALTHY, blackouts=[int(15.5 * S)])) == Spread()
    assert measures.notices(HEALTHY) == Spread()
    orphaned = replace(KILLED, kind=Fault.CHILD, parent=5)
    by_child = replace(HEALTHY, deaths=[orphaned])
    assert measures.notices(by_child) == Spread(1, 0.5, 0.5, 0.5)
    assert measures.notices(replace(by_child, deaths=[orphaned, Death(5, int(15.2 * S))])) == Spread()
    assert measures.tellings(HEALTHY, Word.CANCEL) == Spread(1, 0.4, 0.4, 0.4)
    assert measures.tellings(HEALTHY, Word.CANCELLED) == Spread(1, 0.1, 0.1, 0.1)
    assert measures.overshoots(HEALTHY) == Spread(2, 0.1, 0.25, 0.25)
    assert spread(range(1, 201)) == Spread(200, 100, 198, 200)
