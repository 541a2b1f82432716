"""When executions and steps are expected to start and to end; forms from parameters."""

from __future__ import annotations

from typing import Any

import pytest

from rota.domain import parameter_schema
from rota.domain.execution_forecast import Expected, Step, in_line, running, steps, usual

S = 1_000_000


def test_usual_is_the_median() -> None:
    assert (usual([3, 1, 100]), usual([]), usual([1, 2])) == (3, None, 2)


@pytest.mark.parametrize(
    ("ahead", "slots", "took", "expected"),
    [
        (0, 1, 10 * S, Expected(100 * S, 110 * S)),
        (12, 4, 10 * S, Expected(130 * S, 140 * S)),
        (12, 0, 10 * S, Expected()),
        (12, 4, None, Expected()),
    ],
)
def test_the_start_of_a_queued_one(ahead: int, slots: int, took: int | None, expected: Expected) -> None:
    assert in_line(100 * S, ahead, slots, took) == expected


@pytest.mark.parametrize(
    ("took", "share", "ends_at"),
    [(50 * S, None, 110 * S), (10 * S, None, None), (None, None, None), (10 * S, 0.5, 140 * S), (50 * S, 0.0, 110 * S)],
)
def test_the_end_of_a_running_one(took: int | None, share: float | None, ends_at: int | None) -> None:
    """It started at 60 s, and it is 100 s now."""
    assert running(100 * S, 60 * S, took, share) == Expected(60 * S, ends_at)


def test_steps_follow_each_other() -> None:
    done = Step(frozenset(), 10 * S, 20 * S, took=10 * S)
    runs = Step(frozenset({0}), 90 * S, took=20 * S)
    skipped = Step(frozenset({0}), is_left_out=True)
    join = Step(frozenset({1, 2}), took=5 * S)
    unknown = Step(frozenset({3}))
    after = Step(frozenset({4}), took=1 * S)
    assert steps(100 * S, [done, runs, skipped, join, unknown, after]) == {
        1: Expected(90 * S, 110 * S),
        3: Expected(110 * S, 115 * S),
        4: Expected(115 * S, None),
        5: Expected(None, None),
    }


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("str", {"type": "string"}),
        ("int | None", {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        ("int | float | None", {"anyOf": [{"type": "integer"}, {"type": "number"}, {"type": "null"}]}),
        ("list[int]", {"type": "array", "items": {"type": "integer"}}),
        ("dict[str, bool]", {"type": "object", "additionalProperties": {"type": "boolean"}}),
        ("datetime.date", {"type": "string", "format": "date"}),
        ("Order", {}),
        ("any", {}),
        ("<lambda>", {}),
    ],
)
def test_the_schema_of_a_type(text: str, schema: dict[str, Any]) -> None:
    assert parameter_schema.of_type(text) == schema


def test_the_schema_of_parameters() -> None:
    known = {"to": {"type": "str", "required": True}, "kwargs": {"type": "any", "required": False, "others": True}}
    assert parameter_schema.schema(known) == {
        "type": "object",
        "properties": {"to": {"type": "string"}},
        "required": ["to"],
        "additionalProperties": True,
    }
