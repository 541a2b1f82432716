"""Retries: what is kept, what runs again, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from rota.domain.errors import Conflict, UsageError
from rota.domain.workflow.graph import Graph
from rota.domain.workflow.retry import Retry, plan
from tests.workflow import graphs

STEPS: list[dict[str, Any]] = [
    {"id": "extract", "job": "extract"},
    {"id": "check", "job": "check", "with": {"raw": {"$": "extract"}}},
    {"id": "transform", "job": "transform", "map": {"$": "extract.files"}, "as": "file", "after": ["check"]},
    {"id": "load", "job": "load", "with": {"parts": {"$": "transform"}}},
    {"id": "page", "job": "page", "when": [{"failed": "load"}]},
    {"id": "other", "job": "other"},
]


def etl(**changes: dict[str, Any]) -> Graph:
    return graphs.graph({"name": "etl", "steps": [step | changes.get(step["id"], {}) for step in STEPS]})


ETL = etl()


@pytest.mark.parametrize(
    ("letters", "from_", "expected"),
    [
        ("sssfss", None, Retry("SSS..S", (3, 4), ())),
        ("ssfbks", None, Retry("SS...S", (2, 3, 4), (2,))),
        ("ssfbkf", "transform", Retry("SS...F", (2, 3, 4), (2,))),
        ("ssssks", "transform", Retry("SS...S", (2, 3, 4), ())),
        ("sfbbsc", None, Retry("S.....", (1, 2, 3, 4, 5), ())),
        ("SSSfks", None, Retry("SSS..S", (3, 4), ())),
        ("ssssks", "start", Retry("......", (0, 1, 2, 3, 4, 5), ())),
        ("sssfss", "page", Retry("SSSF.S", (4,), ())),
    ],
)
def test_plan(letters: str, from_: str | None, expected: Retry) -> None:
    assert plan(ETL, letters, from_) == expected


@pytest.mark.parametrize(
    ("letters", "options", "partial", "sub_retries"),
    [
        ("sff", {}, (2,), (1, 2)),
        ("scc", {}, (2,), (1, 2)),
        ("ssf", {}, (2,), (2,)),
        ("fbb", {}, (), ()),
        ("sff", {"from_": "many"}, (2,), ()),
        ("sff", {"from_": "first"}, (), ()),
        ("sff", {"step_arguments": ["one"]}, (2,), (2,)),
        ("sff", {"undone": [0]}, (), ()),
        ("sff", {"undone": [2]}, (), (1,)),
    ],
)
def test_sub_runs_with_the_same_inputs_are_retried(
    letters: str, options: dict[str, Any], partial: tuple[int, ...], sub_retries: tuple[int, ...]
) -> None:
    steps = [
        {"id": "first", "job": "first"},
        {"id": "one", "workflow": "sub", "with": {"x": {"$": "first"}}},
        {"id": "many", "workflow": "sub", "map": {"$": "first.list"}, "as": "x"},
    ]
    found = plan(graphs.graph({"name": "main", "steps": steps}), letters, **options)
    assert (found.partial, found.sub_retries) == (partial, sub_retries)


def test_a_map_with_other_arguments_repeats_every_item() -> None:
    assert plan(ETL, "ssfbks", step_arguments=["transform"]).partial == ()


@pytest.mark.parametrize(
    ("letters", "options", "message"),
    [
        ("ssssks", {}, "no step failed, was cancelled or was blocked"),
        ("sssfss", {"from_": "lod"}, "no step 'lod': its steps are extract, check"),
        ("sssfss", {"has_arguments": True}, "retry it from 'start'"),
        ("sssfss", {"step_arguments": ["extract"]}, "'extract': the step is kept"),
        ("sssfss", {"step_arguments": ["lod"]}, "has no such step"),
        ("ssfbss", {"from_": "load"}, "'load' would not run again, because what it needs is kept: transform (failed)"),
    ],
)
def test_refusal(letters: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        plan(ETL, letters, **options)
    assert message in str(raised.value)


def test_an_open_run_is_not_retried() -> None:
    with pytest.raises(Conflict, match="has not ended"):
        plan(ETL, "ssso.s")


def test_the_latest_version_may_change_only_what_runs_again() -> None:
    changed_load = etl(load={"job": "load_all"})
    assert plan(ETL, "sssfks", latest=changed_load).letters == "SSS..S"
    with pytest.raises(UsageError, match="step 'check' is kept, but the latest version changed its job"):
        plan(ETL, "sssfks", latest=etl(check={"job": "check_all"}))
    assert plan(ETL, "ssfbks", latest=etl(transform={"with": {"bucket": "eu"}})).partial == ()


def test_steps_that_are_new_in_the_latest_version_run() -> None:
    latest = graphs.graph({"name": "etl", "steps": [*STEPS, {"id": "new", "job": "new", "after": ["other"]}]})
    assert plan(ETL, "ssssks", latest=latest) == Retry("SSSSKS.", (6,), ())
