"""Workflows as data: YAML and JSON, the round trip, and errors that carry a JSON pointer."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota import App, WorkflowError
from rota.domain.workflow.graph import Graph, to_data
from rota.sdk.workflow.workflow import Workflow
from tests.workflow.graphs import content
from tests.workflow.test_build import ACCEPTED
from tests.workflow.written import app_of, flow

YAML = """
rota: workflow/1
name: etl
parameters: {day: {type: string}, bucket: {type: string, default: eu}}
steps:
  - {id: extract, job: extract, with: {day: {$: input.day}}}
  - {id: check, job: check, with: {raw: {$: extract}}}
  - id: transform
    job: transform
    map: {$: extract.files}
    as: file
    with: {bucket: {$: input.bucket}}
    at_once: 50
    tolerate: 1%
    after: [check]
    rule: all_success
  - {id: load, job: load, with: {parts: {$: transform}}}
  - {id: tell, job: send, when: [{eq: [{$: load.rows}, 0]}], with: {to: {$text: "empty {day}", day: {$: input.day}}}}
result: {$: load}
"""


def step(**fields: Any) -> dict[str, Any]:
    return {"id": "a", "job": "send", "with": {"to": "x"}, **fields}


def data(*steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"rota": "workflow/1", "name": "w", "steps": list(steps), **fields}


@pytest.fixture
def app(tmp_path: Path) -> App:
    return app_of(tmp_path, "")


def test_yaml_and_json_are_the_same(app: App, tmp_path: Path) -> None:
    workflow = app.workflow_from(YAML)
    again = app_of(tmp_path, "").workflow_from(json.dumps(workflow.to_data()))
    assert again.to_data() == workflow.to_data()
    found = workflow.to_data()
    assert found["required"] == ["day"]
    assert "rule" not in found["steps"][2], "a default is left out"
    assert workflow._definition.parameters["bucket"]["required"] is False


@pytest.mark.parametrize("case", ACCEPTED)
def test_the_round_trip_is_the_same_byte_for_byte(case: str, tmp_path: Path) -> None:
    written = app_of(tmp_path, flow(ACCEPTED[case], options="(timeout='4h', on_failure='stop')")).workflows["w"]
    read = app_of(tmp_path, "").workflow_from(written.to_data())
    assert json.dumps(read.to_data()) == json.dumps(written.to_data())
    assert content(read.graph()) == content(written.graph())
    assert msgspec.json.encode(read.to_data()) == msgspec.json.encode(written.to_data())


DAY = {"day": {"type": "string"}}
WRONG = {
    "unknown field": (data(step(wth={})), "/steps/0/wth", "did you mean 'with'?"),
    "unknown field of the workflow": (data(step(), paramters={}), "/paramters", "did you mean 'parameters'?"),
    "wrong kind": (data(step(**{"with": 3})), "/steps/0/with", "expected `object`, got `int`"),
    "wrong kind in a dict": (data(step(headers={"a": 1})), "/steps/0/headers", "expected `str`, got `int`"),
    "no name": ({"steps": []}, "", "missing required field `name`"),
    "another form": (data(step(), rota="workflow/9"), "/rota", "the form is 'workflow/1'"),
    "no steps": (data(), "/steps", "no steps"),
    "too many steps": (data(*(step(id=f"s{n}") for n in range(1001))), "/steps", "at most 1,000 steps, not 1,001"),
    "bad id": (data(step(id="a.b")), "/steps/0/id", "letters, digits, _ and -"),
    "reserved id": (data(step(id="input")), "/steps/0/id", "arguments of the run"),
    "duplicate id": (data(step(), step()), "/steps/1/id", "two steps 'a'"),
    "no target": (data({"id": "a"}), "/steps/0", "exactly one of job, workflow"),
    "two targets": (data(step(workflow="w")), "/steps/0", "exactly one of job, workflow"),
    "unknown rule": (data(step(rule="all_sucess")), "/steps/0/rule", "did you mean 'all_success'?"),
    "unknown step in after": (data(step(after=["b"])), "/steps/0/after/0", "there is no step 'b'"),
    "unknown step in a value": (
        data(step(id="load"), step(id="b", **{"with": {"to": {"$": "laod.x"}}})),
        "/steps/1/with/to",
        "did you mean 'load'?",
    ),
    "unknown step in a condition": (data(step(when=[{"failed": "b"}])), "/steps/0/when/0", "there is no step 'b'"),
    "unknown step in the result": (data(step(), result={"$": "b"}), "/result", "there is no step 'b'"),
    "malformed reference": (data(step(**{"with": {"to": {"$": "a..b"}}})), "/steps/0/with/to", "cannot be read"),
    "a template for all arguments": (data(step(**{"with": {"$": "input"}})), "/steps/0/with", "given by name"),
    "malformed template": (data(step(**{"with": {"a/b": {"$what": 1}}})), "/steps/0/with/a~1b", "$literal"),
    "malformed condition": (data(step(when=[{"eq": [1]}])), "/steps/0/when/0", "eq"),
    "unknown operator": (data(step(when=[{"equals": [1, 2]}])), "/steps/0/when/0", "equals"),
    "at_once without a map": (data(step(at_once=5)), "/steps/0/at_once", "for a step with a map"),
    "tolerate without a map": (data(step(tolerate=5)), "/steps/0/tolerate", "for a step with a map"),
    "as without a map": (data(step(**{"as": "to"})), "/steps/0/as", "for a step with a map"),
    "nothing at once": (data(step(map=[], at_once=0, **{"as": "text"})), "/steps/0/at_once", "not 0"),
    "bad share": (data(step(map=[], tolerate="half", **{"as": "text"})), "/steps/0/tolerate", "such as '5%'"),
    "more than all": (data(step(map=[], tolerate="101%", **{"as": "text"})), "/steps/0/tolerate", "such as '5%'"),
    "item twice": (data(step(map=[], **{"as": "to"})), "/steps/0/with/to", "takes the item of the map"),
    "shared arguments of calls": (data(step(map=[])), "/steps/0/with", "name the parameter by `as`"),
    "cycle": (
        data(step(after=["c"]), step(id="b", after=["a"]), step(id="c", after=["b"])),
        "/steps/2",
        "in a cycle: ",
    ),
    "itself": (data(step(after=["a"])), "/steps/0", "a → a"),
    "never": (
        data(step(), step(id="b", when=[{"failed": "a"}], **{"with": {"to": {"$": "a"}}})),
        "/steps/1",
        "can never run",
    ),
    "undo of a workflow": (data({"id": "a", "workflow": "w", "undo": "send"}), "/steps/0/undo", "of its own steps"),
    "undo_failed alone": (data(step(undo_failed=True)), "/steps/0/undo_failed", "needs undo"),
    "undo_on twice": (data(step(), undo_on=["failed", "failed"]), "/undo_on", "twice"),
    "undo_on success": (data(step(), undo_on=["success"]), "/undo_on/0", "success"),
    "missing result": (data(step(may_fail=True), result={"$": "a"}), "/result", "default(…)"),
    "bad name": (data(step(), name="a b"), "/name", "a workflow's name"),
    "bad parameter": (data(step(), parameters={"a b": {}}), "/parameters/a b", "a name such as 'day'"),
    "bad timeout": (data(step(), timeout=-1), "/timeout", "longer than zero"),
    "bad queue": (data(step(queue="a b")), "/steps/0/queue", "a queue's name"),
    "bad priority": (data(step(priority=99999999)), "/steps/0/priority", "priority"),
    "bad retry": (data(step(retry={"attempts": 5})), "/steps/0/retry", "malformed"),
    "bad nesting": (data(step(), max_nesting=0), "/max_nesting", "between 1 and"),
    "bad schema": (data(step(), parameters={"day": {"anyOf": 5}}), "/parameters/day", "no JSON schema"),
    "unknown parameter": (
        data(step(**{"with": {"to": {"$": "input.dya"}}}), parameters=DAY),
        "/steps/0/with/to",
        "did you mean 'day'?",
    ),
    "unknown member of the run": (
        data(step(**{"with": {"to": {"$": "run.name"}}}), parameters=DAY),
        "/steps/0/with/to",
        "scheduled_for",
    ),
    "no list": (data(step(map={"$": "input.day"}, **{"as": "text"}), parameters=DAY), "/steps/0/map", "this is string"),
    "no boolean": (data(step(when=[{"is_true": {"$": "input.day"}}]), parameters=DAY), "/steps/0/when/0", "compare it"),
    "required and unknown": (data(step(), required=["day"]), "/required", "no parameter 'day'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors_carry_a_pointer(case: str, app: App) -> None:
    wrong, pointer, words = WRONG[case]
    with pytest.raises(WorkflowError) as caught:
        app.workflow_from(wrong)
    assert caught.value.pointer == pointer
    assert words in str(caught.value)
    assert f"{pointer or '/'}: " in str(caught.value)
    assert app.workflows == {}


LATER = {
    "unknown job": (step(job="sned"), "/steps/0/job", "no job 'sned': did you mean 'send'?"),
    "unknown workflow": ({"id": "a", "workflow": "x"}, "/steps/0/workflow", "the app has no workflow 'x'"),
    "unknown undo": (step(undo="unsned"), "/steps/0/undo", "no job 'unsned' for its undo: did you mean 'unsend'?"),
    "wrong undo": (step(undo="unload"), "/steps/0/undo", "but its result is string"),
    "missing argument": (step(**{"with": {}}), "/steps/0/with", "send() needs the argument 'to'"),
    "unknown argument": (step(**{"with": {"to": "x", "txt": ""}}), "/steps/0/with/txt", "did you mean 'text'?"),
    "unknown item": (step(map=["x"], **{"as": "too"}), "/steps/0/as", "no argument 'too'"),
    "wrong literal": (step(**{"with": {"to": 5}}), "/steps/0/with/to", "takes string, but this is 5"),
    "wrong items": (step(map=[1], **{"as": "text"}), "/steps/0/map", "takes string, but each item is 1"),
}


@pytest.mark.parametrize("case", LATER)
def test_what_steps_run_is_checked_on_first_use(case: str, app: App) -> None:
    wrong, pointer, words = LATER[case]
    workflow = app.workflow_from(data(wrong, parameters=DAY))
    with pytest.raises(WorkflowError) as caught:
        workflow.check()
    assert caught.value.pointer == pointer
    assert words in str(caught.value)


def test_all_problems_are_found_at_once(app: App) -> None:
    workflow = app.workflow_from(data(step(job="x"), step(id="b", job="y")))
    assert [one.pointer for one in workflow.problems()] == ["/steps/0/job", "/steps/1/job"]


def test_a_default_that_is_written_out_changes_nothing(app: App) -> None:
    short = app.workflow_from(data(step()))
    long = app.workflow_from(data(step(after=[], undo=None), name="long", undo_on=["failed", "cancelled"]))
    assert {**long.to_data(), "name": "w"} == short.to_data()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "neither JSON nor YAML"),
        ("a: [", "neither JSON nor YAML"),
        ("- a", "expected `object`, got `array`"),
        ("", "expected `object`, got `null`"),
    ],
)
def test_text_that_is_no_workflow(text: str, words: str, app: App) -> None:
    with pytest.raises(WorkflowError, match=words):
        app.workflow_from(text)


def test_data_that_is_no_json(app: App) -> None:
    with pytest.raises(WorkflowError, match="is not JSON"):
        app.workflow_from({"name": object()})


def test_yaml_needs_an_extra(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(WorkflowError, match=r"install rota\[yaml\], or write it as JSON"):
        app.workflow_from(YAML)


def test_a_workflow_that_is_data_can_be_a_step(tmp_path: Path) -> None:
    app = app_of(tmp_path, flow("return app.workflows['inner'].step(to=day)"))
    app.workflow_from(data(step(), name="inner", parameters={"to": {"type": "integer"}}, result={"$": "a"}))
    (error,) = app.workflows["w"].problems()
    assert "argument 'to' takes integer, but this is string" in str(error)


KEYS = [
    "$",
    "$first",
    "$default",
    "$text",
    "$literal",
    "$outcomes",
    "eq",
    "in",
    "not",
    "all",
    "failed",
    "x",
    "type",
    "items",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "load", "$", "a.b", "input.day", "1%", "$x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=2,
        )
    ),
    max_leaves=6,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container in a structure, with each of its keys."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    items = list(pairs)
    return [(value, key) for key, _ in items] + [place for _, inner in items for place in places(inner)]


@given(st.data())
def test_data_that_is_wrong_somewhere_is_refused_and_nothing_else_happens(drawn: st.DataObject) -> None:
    changed = msgspec.yaml.decode(YAML)
    for _ in range(drawn.draw(st.integers(1, 3))):
        container, key = drawn.draw(st.sampled_from(places(changed)))
        container[key] = drawn.draw(JSON)
    app = App("fuzz")
    try:
        workflow = app.workflow_from(changed)
    except WorkflowError:
        return
    workflow.problems()
    data = made(workflow)
    assert made(App("again").workflow_from(data)) == data


def made(workflow: Workflow[..., Any]) -> dict[str, Any]:
    """The data form of the graph, unchecked."""
    graph = workflow._source.make()
    assert isinstance(graph, Graph)
    return to_data(graph)
