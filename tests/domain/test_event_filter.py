"""`where=`: which payloads match."""

from __future__ import annotations

from typing import Any

import pytest

from rota.domain import event_filter
from rota.domain.errors import DefinitionError

PAYLOAD = {"n": 5, "name": "ab", "none": None, "list": [{"x": 1}, 2], "flag": True, "odd key": {"": 1}}


@pytest.mark.parametrize(
    ("where", "matches"),
    [
        ({}, True),
        ({"n": 5}, True),
        ({"n": 5.0}, True),
        ({"n": "5"}, False),
        ({"n": {"gt": 4, "lt": 6}}, True),
        ({"n": {"gt": 4, "lt": 5}}, False),
        ({"n": {"ge": 5, "le": 5}, "name": "ab"}, True),
        ({"n": {"gt": "4"}}, False),
        ({"name": {"gt": "aa"}}, True),
        ({"name": {"prefix": "a"}}, True),
        ({"name": {"prefix": "b"}}, False),
        ({"n": {"prefix": "5"}}, False),
        ({"n": {"in": [4, 5]}}, True),
        ({"n": {"in": []}}, False),
        ({"n": {"ne": 4}}, True),
        ({"missing": {"ne": 4}}, False),
        ({"missing": {"exists": False}}, True),
        ({"none": {"exists": True}}, True),
        ({"none": None}, True),
        ({"missing": None}, False),
        ({"list[0].x": 1}, True),
        ({"list[-1]": 2}, True),
        ({"list[2]": {"exists": False}}, True),
        ({"list.x": {"exists": False}}, True),
        ({"list[0]": {"eq": {"x": 1}}}, True),
        ({"n.x": {"exists": False}}, True),
        ({"flag": True}, True),
    ],
)
def test_what_matches(where: dict[str, Any], matches: bool) -> None:
    assert event_filter.matches(event_filter.check(where, "job"), PAYLOAD) is matches


@pytest.mark.parametrize("payload", [None, 5, "text", [1], [], {}])
def test_a_payload_that_is_no_object_has_no_path(payload: Any) -> None:
    assert not event_filter.matches({"n": 5}, payload)
    assert event_filter.matches({"n": {"exists": False}}, payload)


@pytest.mark.parametrize("value", [{}, float("nan"), {"eq": float("inf")}, "\0", {"in": ["\ud800"]}])
def test_a_malformed_filter_is_refused(value: Any) -> None:
    with pytest.raises(DefinitionError, match="job: where"):
        event_filter.check({"n": value}, "job")


def test_values_of_steps_are_checked_when_they_are_known() -> None:
    where = {"order": {"$": "input.id"}, "total": {"gt": {"$": "a.total"}, "lt": 5}}
    event_filter.check(where, "event", with_templates=True)
    with pytest.raises(DefinitionError, match="no operator"):
        event_filter.check(where, "job")
    with pytest.raises(DefinitionError, match="no operator 'over'"):
        event_filter.check({"total": {"over": 5}}, "event", with_templates=True)
    # Whatever a value turns out to be, judging it does not fail.
    for operand in (None, 5, "x", [1], {"over": 1}):
        for name in ("eq", "lt", "in", "prefix"):
            assert event_filter.matches({"n": {name: operand}}, PAYLOAD) in (True, False)
        assert event_filter.matches({"n": operand}, PAYLOAD) in (True, False)
