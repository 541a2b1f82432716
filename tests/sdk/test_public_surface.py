"""The public surface: what can be imported from `rota`, what its objects show, and the tree of its errors."""

from __future__ import annotations

import inspect
import pickle
import re
import typing
from datetime import timedelta
from enum import Enum
from typing import Any

import pytest

import rota
from rota import App, Context
from rota.domain import errors
from rota.sdk.dead_letters import DeadLetters
from rota.testing import harness

PUBLIC = """
    Run App Context Emitter EventHandle EventInfo Handle Job JobRef ScheduleHandle Status Unique Workflow
    Attempt CallbackState DeadLetter Delivery EventDetail ExecutionDetail LastTick Paused Progress Remedy Schedule
    StartedBy Tick Usage Why WhyCheck
    CriticalPath MapInfo MapItem Neighbour PartialMap RetryPlan RunDetail StepInfo StepPlace SubRun WaitInfo
    Custom Exponential Fixed Linear
    FailForGood RetryIn Snooze
    RotaError
    UsageError ArgumentsError DefinitionError UnknownEvent UnknownExecution UnknownJob UnknownSchedule
    WorkflowError
    Conflict ClockSkew KeyConflict NotFinished NotUnique QueueFull
    ExecutionError ExecutionCancelled ExecutionFailed ExecutionSkipped
    StoreError CommitUnknown StoreFull StoreMismatch StoreUnavailable
    LeaseLost
"""

# What a user sees who types `app.` or `ctx.`: an attribute that is added must be added here, or be private.

APP = """
    aemit breaker calendar check close command dead declare emit emit_many handle http job jobs name outbox queue run_by
    schedule schedules unschedule watch within workflow workflow_from workflows
"""

JOB = """
    aenqueue aenqueue_many after enqueue enqueue_many handle map name options starmap step within
"""

CONTEXT = """
    acomplete aenqueue attempt cancelled catch_up checkpoint complete deadline enqueue event fence headers id job
    late_by log progress restored run scheduled_for transaction upstream wait_cancelled
"""

HANDLE = """
    aattempts acancel ainfo aresult astatus attempts cancel created id info result status
"""

EVENT_HANDLE = """
    created id info replay
"""

SCHEDULE_HANDLE = """
    info name pause remove resume ticks
"""

WORKFLOW = """
    after astart astart_many check dot graph handle map mermaid name options problems starmap start start_many step text
    to_data within
"""

RUN = """
    aapprove aattempts acancel adetail ainfo apause approve areject aresult aresume aretry astatus asteps attempts
    cancel created detail id info pause reject result resume retry status step steps
"""

DEAD_LETTERS = """
    discard list replay
"""

HARNESS = """
    aadvance advance approve arun_until_idle now reject run_until_idle skip
"""

_OF_EXECUTION = "attempts error_message error_type id job reason"
ERRORS = {
    "WorkflowError": "expression file line pointer",
    "ExecutionError": _OF_EXECUTION,
    "ExecutionFailed": _OF_EXECUTION,
    "ExecutionCancelled": _OF_EXECUTION,
    "ExecutionSkipped": _OF_EXECUTION,
    "NotUnique": "holder",
    "QueueFull": "retry_after",
    "StoreUnavailable": "may_pass",
    "StoreFull": "may_pass",
    "CommitUnknown": "may_pass",
    "RetryIn": "delay",
    "Snooze": "delay",
}
"""Besides `code`, which every RotaError has."""

TREE = {
    "RotaError": "Exception",
    "UsageError": "RotaError",
    "ArgumentsError": "UsageError ValueError",
    "DefinitionError": "UsageError ValueError",
    "WorkflowError": "DefinitionError",
    "UnknownJob": "UsageError",
    "UnknownEvent": "UsageError",
    "UnknownExecution": "UsageError",
    "UnknownSchedule": "UsageError",
    "Conflict": "RotaError",
    "KeyConflict": "Conflict",
    "NotUnique": "Conflict",
    "QueueFull": "Conflict",
    "ClockSkew": "Conflict",
    "NotFinished": "Conflict TimeoutError",
    "ExecutionError": "RotaError",
    "ExecutionFailed": "ExecutionError",
    "ExecutionCancelled": "ExecutionError",
    "ExecutionSkipped": "ExecutionError",
    "StoreError": "RotaError",
    "StoreUnavailable": "StoreError",
    "StoreFull": "StoreUnavailable",
    "CommitUnknown": "StoreUnavailable",
    "StoreMismatch": "StoreError",
    "LeaseLost": "RotaError",
    "Signal": "Exception",
    "RetryIn": "Signal",
    "FailForGood": "Signal",
    "Snooze": "Signal",
    "NotPending": "Conflict",
    "NotEnded": "Conflict",
    "TooMany": "Conflict",
    "KeyReused": "Conflict",
    "NameTaken": "Conflict",
    "RequestInProgress": "Conflict",
    "QuotaExceeded": "Conflict",
    "ReadStopped": "StoreError",
}


def test_the_public_names_are_these() -> None:
    assert sorted(rota.__all__) == sorted(PUBLIC.split())
    assert rota.__all__ == sorted(rota.__all__)
    assert set(rota.__all__) <= set(dir(rota))


@pytest.mark.parametrize("name", PUBLIC.split())
def test_every_public_name_can_be_imported_and_says_what_it_is(name: str) -> None:
    thing = getattr(rota, name)
    assert thing.__name__ == name
    assert inspect.isclass(thing)


def test_every_type_that_a_user_gets_is_public_and_has_no_raw_times() -> None:
    returned: list[Any] = [
        typing.get_type_hints(verb)["return"]
        for kind in (rota.Handle, rota.EventHandle, rota.Emitter, rota.ScheduleHandle, DeadLetters)
        for name, verb in vars(kind).items()
        if inspect.isfunction(verb) and not name.startswith("_")
    ]
    seen: set[Any] = set()
    while returned:
        hint = returned.pop()
        returned += typing.get_args(hint)
        if inspect.isclass(hint) and hint.__module__.startswith("rota.") and hint not in seen:
            seen.add(hint)
            assert getattr(rota, hint.__name__) is hint
            members = {} if issubclass(hint, Enum) else typing.get_type_hints(hint)
            returned += members.values()
            times = [name for name, kind in members.items() if re.search(r"(^|_)(at|by|tick|until)$", name)]
            assert not [name for name in times if {int, float} & {members[name], *typing.get_args(members[name])}]
    assert {rota.ExecutionDetail, rota.Schedule, rota.Tick, rota.DeadLetter, rota.WhyCheck, rota.Usage} <= seen


def test_public_objects_show_only_these_attributes() -> None:
    app = App("shop", url="sqlite://:memory:")

    @app.job
    def context_of(ctx: Context) -> Context:
        return ctx

    command = app.command("clean", ["true"])

    @app.workflow
    def cleaning() -> None:
        command.step()

    with harness(app) as running:
        assert attributes(app) == APP.split()
        for job in (context_of, context_of.options(priority=1), command):
            assert attributes(job) == JOB.split()
        assert attributes(context_of()) == CONTEXT.split()
        assert attributes(command.enqueue()) == HANDLE.split()
        assert attributes(app.schedule(command, every="1h")) == SCHEDULE_HANDLE.split()
        assert attributes(app.emit("cleaned")) == EVENT_HANDLE.split()
        assert attributes(app.dead) == DEAD_LETTERS.split()
        assert attributes(cleaning) == WORKFLOW.split()
        assert attributes(cleaning.start()) == RUN.split()
        assert attributes(running) == HARNESS.split()


@pytest.mark.parametrize("name", [name for name in PUBLIC.split() if issubclass(getattr(rota, name), Exception)])
def test_public_errors_show_only_these_attributes(name: str) -> None:
    kind = getattr(rota, name)
    parameters = [*inspect.signature(kind.__init__).parameters.values()][1:]
    error = kind(*("1" for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD))
    code = ["code"] if issubclass(kind, errors.RotaError) else []
    assert attributes(error) == sorted(code + ERRORS.get(name, "").split())


def test_a_wrapped_function_is_still_there() -> None:
    def send() -> None: ...

    assert App("shop").job(send).__wrapped__ is send  # type: ignore[attr-defined]


def test_jobs_by_name_are_read_only() -> None:
    app = App("shop")

    @app.job
    def send() -> None: ...

    assert app.jobs == {"send": send}
    with pytest.raises(TypeError, match="does not support item assignment"):
        app.jobs["other"] = send  # type: ignore[index]


def attributes(thing: object) -> list[str]:
    """The public names of an object, without those of Python's own classes that it inherits from."""
    inherited = {name for base in type(thing).__mro__ if base.__module__ == "builtins" for name in dir(base)}
    return sorted(name for name in set(dir(thing)) - inherited if not name.startswith("_"))


def test_a_name_that_is_not_public_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = rota.Nothing  # type: ignore[attr-defined]


def test_the_errors_are_one_tree() -> None:
    found = {
        name: " ".join(base.__name__ for base in kind.__bases__)
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, BaseException)
    }
    assert found == TREE


def test_every_error_has_a_code_of_its_own() -> None:
    kinds = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, errors.RotaError)]
    codes = [kind.code for kind in kinds]
    assert len(set(codes)) == len(codes)
    assert all(code.isidentifier() and code.islower() for code in codes)


@pytest.mark.parametrize(
    "error",
    [
        errors.ArgumentsError("x"),
        errors.QueueFull("full", timedelta(seconds=2.5)),
        errors.NotUnique("taken", "id"),
        errors.NameTaken("taken", "id"),
        errors.WorkflowError("no", "flows.py", 5, "x + 1"),
        errors.ExecutionFailed("failed", id="x", job="send", reason="error", attempts=3, error_type="ValueError"),
        errors.RetryIn("5m", "later"),
        errors.Snooze(5),
        errors.Snooze(timedelta(minutes=5)),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_travel_between_processes(error: Exception) -> None:
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert vars(back) == vars(error)
