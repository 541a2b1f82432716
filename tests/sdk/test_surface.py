"""The public surface: what can be imported from `rota`, and the tree of its errors."""

from __future__ import annotations

import inspect
import pickle

import pytest

import rota
from rota.domain import errors

PUBLIC = """
    App Context Handle Job JobRef Schedule Status Unique
    Custom Exponential Fixed Linear
    FailForGood RetryIn Snooze
    RotaError
    UsageError ArgumentsError DefinitionError UnknownExecution UnknownJob UnknownSchedule
    Conflict ClockSkew KeyConflict NotFinished NotUnique QueueFull
    ExecutionError ExecutionCancelled ExecutionFailed ExecutionSkipped
    StoreError CommitUnknown StoreFull StoreMismatch StoreUnavailable
    LeaseLost
"""

TREE = {
    "RotaError": "Exception",
    "UsageError": "RotaError",
    "ArgumentsError": "UsageError ValueError",
    "DefinitionError": "UsageError ValueError",
    "UnknownJob": "UsageError",
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
        errors.QueueFull("full", 2.5),
        errors.NotUnique("taken", "id"),
        errors.RetryIn("5m", "later"),
        errors.Snooze(5),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_travel_between_processes(error: Exception) -> None:
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert vars(back) == vars(error)
