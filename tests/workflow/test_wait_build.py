"""The authoring of steps that wait: what a function compiles to, what is refused, and how it is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rota import App, WorkflowError
from rota.domain.workflow.difference import differences
from rota.domain.workflow.graph import decode
from tests.workflow.graphs import content
from tests.workflow.written import app_of, built, flow, refused

RELEASE = """
answer = approve("Release to production?", who=["ops"], timeout="2d")
with when(answer.approved): send.step(day)
with otherwise(): send.step(day, answer.note)
"""
FULFIL = """
paid = wait_for_event(["order.paid", "order.declined"], subject=day, where={"size": {"gt": 1}}, timeout="3d")
with when(paid.name == "order.paid"): x = send.after(sleep("10m")).step(day)
return default(x, None)
"""
NAMED = """
seen = approve.options(name="seen", may_fail=True)(text("{d}?", d=day), timeout=60, on_timeout="fail", required=True)
late = wait_for_event.after(seen, rule="all_done")("built", lookback="1h", timeout="1h", on_timeout="skip")
chain(late, sleep(5.5), [send.step(day), sleep("1w")], extract.step(day))
return first(late.payload, day)
"""
PROGRAMS = {"release": RELEASE, "fulfil": FULFIL, "named": NAMED}


def test_the_data_form_of_an_approval(tmp_path: Path) -> None:
    ok, *_ = built(tmp_path, RELEASE)["steps"]
    assert ok == {"id": "approve", "approve": {"text": "Release to production?", "who": ["ops"], "timeout": "2d"}}


def test_the_data_form_of_an_event_and_of_a_sleep(tmp_path: Path) -> None:
    paid, nap, *_ = built(tmp_path, FULFIL)["steps"]
    assert paid == {
        "id": "wait_for_event",
        "event": {
            "names": ["order.paid", "order.declined"],
            "subject": {"$": "input.day"},
            "where": {"size": {"gt": 1}},
            "timeout": "3d",
        },
    }
    is_paid = {"eq": [{"$": "wait_for_event.name"}, "order.paid"]}
    assert nap == {"id": "sleep", "sleep": "10m", "when": [is_paid]}


def test_names_options_and_order(tmp_path: Path) -> None:
    seen, late, *rest = built(tmp_path, NAMED)["steps"]
    assert seen["id"] == "seen"
    assert seen["may_fail"] is True
    assert seen["approve"]["text"] == {"$text": "{d}?", "d": {"$": "input.day"}}
    assert (late["after"], late["rule"], late["event"]["on_timeout"]) == (["seen"], "all_done", "skip")
    assert [(step["id"], step.get("after")) for step in rest] == [
        ("sleep", ["wait_for_event"]),
        ("send", ["sleep"]),
        ("sleep_2", ["sleep"]),
        ("extract", ["send", "sleep_2"]),
    ]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_round_trip_is_the_same_byte_for_byte(program: str, tmp_path: Path) -> None:
    app = app_of(tmp_path, flow(PROGRAMS[program]))
    once = app.workflows["w"].to_data()
    again = app_of(tmp_path, "").workflow_from(once)
    assert content(again.graph()) == content(app.workflows["w"].graph())
    assert decode(content(again.graph())) == again.graph()


def test_written_defaults_make_no_other_version() -> None:
    app = App("shop", url="sqlite://:memory:")
    plain = {"text": "ok?", "timeout": "1d", "required": True}
    full = {**plain, "who": [], "on_timeout": "reject"}
    one, other = (
        app.workflow_from({"rota": "workflow/1", "name": name, "steps": [{"id": "ok", "approve": approve}]}).to_data()
        for name, approve in (("a", plain), ("b", full))
    )
    assert one["steps"] == other["steps"]


YAML = """
rota: workflow/1
name: w
steps:
  - {id: page, job: send, with: {to: a}}
  - {id: ok, approve: {text: "Release?", who: [ops], timeout: 2d}, after: [page], rule: none_failed}
  - {id: nap, sleep: 3d}
  - {id: came, event: {names: [a], subject: {$: page}, where: {x: 1}, timeout: 1h}, after: [nap]}
result: {$: ok.approved}
"""


def test_the_data_form_of_the_specification(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    workflow = app_of(tmp_path, "").workflow_from(YAML)
    workflow.check()
    assert [step.runs for step in workflow.graph().steps] == ["send", "approve", "sleep", "wait_for_event"]


# --- Refused --------------------------------------------------------------------------------------

REFUSED = {
    "if": ("x = approve('?', timeout=1).approved\nif x:  #!\n    send.step('a')", "x", "with when"),
    "f-string": ("x = approve('?', timeout=1)\nsend.step(f'{x.by}')  #!", "f'{x.by}'", "text("),
    "is none": (
        "x = wait_for_event('a', timeout=1)\nif x.subject is None: send.step('a')  #!",
        "x.subject is None",
        "is_none",
    ),
    "member": ("x = approve('?', timeout=1)\nsend.step(x.notes)  #!", "x.notes", "did you mean 'note'?"),
    "try": ("try:  #!\n    x = approve('?', timeout=1)\nexcept Exception: pass", "try:", "when(failed(x))"),
    "try after": (
        "try:  #!\n    x = approve.after(send.step('a'))('?', timeout=1)\nexcept Exception: pass",
        "try:",
        "failed",
    ),
    "sleep alone": ("send.step('a')\nsleep('1h')  #!", "sleep('1h')", "job.after(sleep(…))"),
    "sleep last": ("chain(send.step('a'), sleep('1h'))  #!", "sleep('1h')", "job.after(sleep(…))"),
    "answer unused": (
        "send.after(approve('?', timeout=1)).step('a')  #!",
        "approve('?', timeout=1)",
        "with when(answer.approved)",
    ),
    "only its end": (
        "x = approve('?', timeout=1)  #!\nwith when(succeeded(x)): send.step('a')",
        "approve('?', timeout=1)",
        "required=True",
    ),
    "after without a call": ("x = send.step('a')\napprove.after(x)  #!", "approve.after(x)", "`(…)` is missing"),
    "duration": ("send.after(sleep('soon')).step('a')  #!", "sleep('soon')", "'30s', '5m'"),
    "no time": ("send.after(sleep(0)).step('a')  #!", "sleep(0)", "longer than zero"),
    "unknown duration": ("send.after(sleep(day)).step('a')  #!", "sleep(day)", "known when the workflow is built"),
    "on_timeout": (
        "x = approve('?', timeout=1, on_timeout='skip')  #!\nsend.step(x.note)",
        "approve('?', timeout=1, on_timeout='skip')",
        "reject, approve, fail",
    ),
    "who": (
        "x = approve('?', who='ops', timeout=1)  #!\nsend.step(x.note)",
        "approve('?', who='ops', timeout=1)",
        "list of texts",
    ),
    "text": (
        "x = approve(extract.step(day).rows, timeout=1)  #!\nsend.step(x.note)",
        "approve(extract.step(day).rows, timeout=1)",
        "the text takes string, but this is integer",
    ),
    "event name": ("wait_for_event('a b', timeout=1)  #!", "wait_for_event('a b', timeout=1)", "an event's name"),
    "no event": ("wait_for_event([], timeout=1)  #!", "wait_for_event([], timeout=1)", "at least one event"),
    "type": ("x = approve('?', timeout=1)\ntransform.step(x.approved)  #!", "transform.step(x.approved)", "boolean"),
    "maybe missing": (
        "x = wait_for_event('a', timeout=1, on_timeout='skip')\nreturn x.name  #!",
        "return x.name",
        "default(…)",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_pitfalls(case: str, tmp_path: Path) -> None:
    body, expression, way_out = REFUSED[case]
    error = refused(tmp_path, body)
    lines = Path(error.file or "").read_text().splitlines()
    assert "#!" in lines[(error.line or 0) - 1], str(error)
    assert expression in error.expression
    assert way_out in str(error)


@pytest.mark.parametrize("call", ["sleep(1)", "approve('?', timeout=1)", "wait_for_event('a', timeout=1)"])
def test_outside_of_a_workflow(call: str) -> None:
    import rota.workflow as functions

    with pytest.raises(WorkflowError, match="is for the function of a workflow"):
        eval(call, vars(functions))


def step(**fields: Any) -> dict[str, Any]:
    send = {"id": "z", "job": "send", "after": ["s"], "with": {"to": "a"}}
    return {"rota": "workflow/1", "name": "w", "steps": [{"id": "s", **fields}, send]}


DATA = {
    "two kinds": (step(sleep="1s", job="send"), "/steps/0", "exactly one of job, workflow, sleep, approve and event"),
    "arguments": (step(sleep="1s", **{"with": {"a": 1}}), "/steps/0/with", "with is for a step that runs a job"),
    "queue": (step(sleep="1s", queue="a"), "/steps/0/queue", "queue is for a step that runs a job"),
    "map": (step(sleep="1s", map=[1]), "/steps/0/map", "map is for a step that runs a job"),
    "duration": (step(sleep="soon"), "/steps/0/sleep", "such as '30s'"),
    "no timeout": (step(approve={"text": "?"}), "/steps/0/approve", "missing required field `timeout`"),
    "timeout": (step(approve={"text": "?", "timeout": "x"}), "/steps/0/approve/timeout", "timeout must be"),
    "unknown field": (step(event={"names": ["a"], "timeout": 1, "foo": 1}), "/steps/0/event/foo", "no field 'foo'"),
    "reference": (step(approve={"text": {"$": "x"}, "timeout": 1}), "/steps/0/approve/text", "there is no step 'x'"),
    "subject": (step(event={"names": ["a"], "timeout": 1, "subject": {"$": "y"}}), "/steps/0/event/subject", "'y'"),
    "on_timeout": (step(event={"names": ["a"], "timeout": 1, "on_timeout": "x"}), "/steps/0/event/on_timeout", "'x'"),
}


@pytest.mark.parametrize("case", DATA)
def test_data_that_is_refused(case: str, tmp_path: Path) -> None:
    data, pointer, message = DATA[case]
    with pytest.raises(WorkflowError) as caught:
        app_of(tmp_path, "").workflow_from(data).check()
    assert caught.value.pointer == pointer
    assert message in str(caught.value)


# --- Drawn and compared ---------------------------------------------------------------------------


def test_pictures(tmp_path: Path) -> None:
    workflow = app_of(tmp_path, flow(NAMED)).workflows["w"]
    assert '  seen (approve)   "{d}?", 60s, then fail, required   may fail' in workflow.text()
    assert "wait_for_event   after all_done seen   built, 1h, then skip" in workflow.text()
    assert '    s2(["sleep<br/>5.5s"])' in workflow.mermaid()
    assert "    s1 -.-> s2" in workflow.mermaid()
    assert '"sleep_2" [label="sleep_2 (sleep)\\n1w", shape=oval];' in workflow.dot()


def test_a_difference_names_the_wait(tmp_path: Path) -> None:
    one, other = (
        app_of(tmp_path, flow(f"send.after(sleep({time!r})).step(day)")).workflows["w"].graph() for time in ("1h", "2h")
    )
    (change,) = differences(one, other)
    assert (change.kind, change.step, change.field, change.before, change.after) == (
        "changed",
        "sleep",
        "sleep",
        "1h",
        "2h",
    )
