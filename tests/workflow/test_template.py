"""Templates and conditions: what they use, how they are settled, and what they say when a value is missing."""

from __future__ import annotations

from typing import Any

import pytest

from rota.domain.errors import DefinitionError
from rota.domain.workflow import condition
from rota.domain.workflow.template import TemplateError, is_literal, lowered, references, resolve

VALUES = {"a": {"files": [{"name": "x"}, {"name": "y"}], "any key": 1}, "b": 5, "input": {"day": "monday"}}


def uses(template: Any) -> list[tuple[str, ...]]:
    return [(use.kind, *map(str, use.references)) for use in references(template)]


def value(template: Any, letters: dict[str, str] | None = None) -> Any:
    return resolve(lowered(template, letters or {}), VALUES.__getitem__, lambda step: [f"items of {step}"])


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ({"$": "a.files[0].name"}, "x"),
        ({"$": "a.files[-1].name"}, "y"),
        ({"$": 'a["any key"]'}, 1),
        ([1, {"x": {"$": "b"}}], [1, {"x": 5}]),
        (
            {"$text": "{day}: {n}, {on} {{day}}", "day": {"$": "input.day"}, "n": {"$": "b"}, "on": True},
            "monday: 5, true {day}",
        ),
        ({"$literal": {"$": "b"}}, {"$": "b"}),
        ({"$outcomes": "m"}, ["items of m"]),
        ({"$first": [{"$": "bad"}, {"$": "b"}, {"$": "a"}]}, 5),
        ({"$first": [{"$": "bad"}, {"$": "input.day"}]}, "monday"),
        ({"$default": [{"$": "b"}, 0]}, 5),
        ({"$default": [{"$": "bad"}, {"x": {"$": "b"}}]}, {"x": 5}),
        ({"$default": [{"$first": [{"$": "bad"}, {"$": "gone"}]}, None]}, None),
    ],
)
def test_value_of_a_template(template: Any, expected: Any) -> None:
    assert value(template, {"a": "s", "b": "S", "bad": "f", "gone": "k", "m": "f"}) == expected


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ({"$": "a.fils"}, "a.fils has no value: a has no member 'fils'"),
        ({"$": "a.files[7].name"}, "a.files[7].name has no value: a.files has 2 items"),
        ({"$": "a.files.name"}, "a.files.name has no value: a.files is a list, which has no members"),
        ({"$": "b[0]"}, "b[0] has no value: b is a number, which has no items"),
        ({"$default": [{"$": "a.fils"}, 0]}, "a.fils has no value: a has no member 'fils'"),
        ({"$": "bad.x"}, "bad.x has no value: bad is failed"),
        ({"$first": [{"$": "bad.x"}, {"$": "gone"}]}, "none of bad.x, gone has a value"),
    ],
)
def test_missing_value_is_named(template: Any, message: str) -> None:
    with pytest.raises(TemplateError) as raised:
        value(template, {"bad": "f", "gone": "k"})
    assert str(raised.value) == message


def test_references_by_value_by_end_and_as_a_group() -> None:
    template = {
        "x": [{"$": "a.n"}, {"$text": "{t}", "t": {"$": "b"}}],
        "y": {"$first": [{"$": "c"}, {"$": "d.n"}]},
        "z": {"$default": [{"$": "e"}, {"$": "f"}]},
        "o": {"$outcomes": "m"},
        "q": {"$literal": {"$": "g"}},
    }
    expected = [("value", "a.n"), ("value", "b"), ("first", "c", "d.n"), ("end", "e"), ("value", "f"), ("end", "m")]
    assert uses(template) == expected
    assert is_literal({"x": [1, {"$literal": {"$": "g"}}]})
    assert not is_literal({"$outcomes": "m"})


def test_lowered_templates_have_no_choices() -> None:
    template = [{"$first": [{"$": "a.n"}, {"$": "b"}]}, {"$default": [{"$": "a"}, {"$literal": {"$": 1}}]}]
    assert lowered(template, {"a": "b", "b": "s"}) == [{"$": "b"}, {"$literal": {"$": 1}}]


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ({"$firts": []}, "an object with the keys $firts is not a template"),
        ({"$": "a", "x": 1}, "an object with the keys $, x is not a template"),
        ({"$": "a..b"}, "cannot be read"),
        ({"$first": []}, "is not a reference to a value"),
        ({"$first": [1]}, "1 is not a reference to a value"),
        ({"$default": [{"$": "a"}]}, "takes a list of two"),
        ({"$default": [5, 6]}, "5 is not a reference to a value"),
        ({"$outcomes": "a.b"}, "not the path a.b"),
        ({"$text": "on {day} {}", "x": 1}, "has no value for"),
        ({"$text": 5}, "takes a text, not a number"),
    ],
)
def test_malformed_template_is_refused(template: Any, message: str) -> None:
    with pytest.raises(DefinitionError) as raised:
        list(references([template]))
    assert message in str(raised.value)


def holds(one: dict[str, Any]) -> bool:
    return condition.holds(one, {"a": "s", "bad": "c", "stuck": "b", "gone": "K"}, {"a": 5, "t": "x"}.__getitem__)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        ({"eq": [{"$": "a"}, 5.0]}, True),
        ({"eq": [{"$": "a"}, "5"]}, False),
        ({"ne": [{"$": "a"}, None]}, True),
        ({"ge": [{"$": "a"}, 5]}, True),
        ({"lt": [{"$": "t"}, "y"]}, True),
        ({"in": [{"$": "a"}, [4, 5]]}, True),
        ({"is_none": {"$default": [{"$": "bad"}, None]}}, True),
        ({"is_true": True}, True),
        ({"failed": "bad"}, True),
        ({"failed": "stuck"}, True),
        ({"failed": "gone"}, False),
        ({"skipped": "gone"}, True),
        ({"skipped": "stuck"}, False),
        ({"succeeded": "a"}, True),
        ({"not": {"succeeded": "a"}}, False),
        ({"all": [{"failed": "a"}, {"gt": [{"$": "a.missing"}, 1]}]}, False),
        ({"any": [{"eq": [{"$": "a"}, 5]}, {"gt": [{"$": "a.missing"}, 1]}]}, True),
    ],
)
def test_condition(one: dict[str, Any], expected: bool) -> None:
    assert holds(one) is expected


@pytest.mark.parametrize(
    ("one", "message"),
    [
        ({"gt": [{"$": "a"}, "5"]}, "gt cannot compare a number with a text"),
        ({"lt": [{"$": "a"}, None]}, "lt cannot compare a number with null"),
        ({"le": [True, {"$": "a"}]}, "le cannot compare a boolean with a number"),
        ({"in": [1, {"$": "a"}]}, "the operator `in` needs a list on its right side, not a number"),
        ({"is_true": {"$": "a"}}, "a value that stands as a condition is true or false, not a number"),
        ({"is_none": {"$": "a.n"}}, "a.n has no value: a is a number, which has no members"),
        ({"is_none": {"$outcomes": "a"}}, "the outcomes of a are known to the arguments of a step only"),
    ],
)
def test_condition_that_cannot_be_judged(one: dict[str, Any], message: str) -> None:
    with pytest.raises(TemplateError) as raised:
        holds(one)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("one", "message"),
    [
        ({}, "an object with one operator"),
        ({"eq": [1, 2], "ne": [1, 2]}, "an object with one operator"),
        ({"like": [1, 2]}, "'like' is not an operator"),
        ({"eq": [1]}, "eq takes two values"),
        ({"all": []}, "all takes a list of conditions"),
        ({"not": [1]}, "an object with one operator"),
        ({"failed": {"$": "a"}}, "failed takes the name of a step"),
    ],
)
def test_malformed_condition_is_refused(one: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError) as raised:
        list(condition.references(one))
    assert message in str(raised.value)
