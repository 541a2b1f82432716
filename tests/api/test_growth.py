"""The comparison of two documents finds what breaks a client, and nothing else.

From the first release on, a test compares the document of the last release with the one of today.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from rota.api.openapi import document
from rota.api.routes import ROUTES
from tests.api.growth import breaks

JOBS = "/api/v1/jobs"


@cache
def today() -> dict[str, Any]:
    return document(ROUTES, "1")


def changed(change: Callable[[Any], object]) -> list[str]:
    after = copy.deepcopy(today())
    change(after)
    return breaks(today(), after)


def body(found: Any) -> Any:
    return found["components"]["schemas"]["JobBody"]


def answer(found: Any) -> Any:
    return found["components"]["schemas"]["JobInFull"]


def added(found: Any) -> None:
    """What may come with any release."""
    found["paths"]["/api/v1/new"] = {}
    found["paths"][JOBS]["post"]["responses"]["202"] = {"description": "later"}
    found["paths"][JOBS]["get"]["parameters"].append(
        {"name": "new", "in": "query", "required": False, "schema": {"type": "string"}}
    )
    body(found)["properties"]["new"] = {"type": "string"}
    answer(found)["properties"]["new"] = {"type": "string"}
    answer(found)["required"].append("new")


def test_growth_breaks_nothing() -> None:
    assert changed(lambda _: None) == []
    assert changed(added) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda found: found["paths"].pop(JOBS), "GET /api/v1/jobs is gone"),
        (lambda found: found["paths"][JOBS].pop("post"), "POST /api/v1/jobs is gone"),
        (lambda found: found["paths"][JOBS]["get"]["parameters"].clear(), "GET /api/v1/jobs: parameter app is gone"),
        (
            lambda found: found["paths"][JOBS]["get"]["parameters"][0].update(required=True),
            "GET /api/v1/jobs: parameter limit is required now",
        ),
        (
            lambda found: found["paths"][JOBS]["post"]["responses"].pop("201"),
            "POST /api/v1/jobs: status 201 is gone",
        ),
        (lambda found: body(found)["properties"].pop("command"), "POST /api/v1/jobs: member command is gone"),
        (lambda found: body(found)["required"].append("app"), "POST /api/v1/jobs: member app is required now"),
        (
            lambda found: body(found)["properties"].update(name={"type": "integer"}),
            "POST /api/v1/jobs.name: string became integer",
        ),
        (lambda found: answer(found)["properties"].pop("jobId"), "POST /api/v1/jobs 201: member jobId is gone"),
        (
            lambda found: answer(found)["required"].remove("jobId"),
            "POST /api/v1/jobs 201: member jobId may be missing now",
        ),
        (
            lambda found: answer(found)["properties"].update(jobId={"anyOf": [{"type": "string"}, {"type": "null"}]}),
            "POST /api/v1/jobs 201.jobId: string became null",
        ),
    ],
)
def test_what_a_client_relies_on_is_missed(change: Callable[[Any], object], expected: str) -> None:
    assert expected in changed(change)
