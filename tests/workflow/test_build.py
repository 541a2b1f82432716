"""What a traced function becomes: steps, names, edges, conditions, options, sub-workflows."""

from __future__ import annotations

import threading
from pathlib import Path
from textwrap import dedent
from typing import Any, get_args

import pytest

from rota import App, DefinitionError, UsageError, WorkflowError
from rota.domain.job import content, digest
from rota.domain.workflow.rules import RULES
from rota.sdk.workflow import order
from rota.testing import harness
from tests.workflow.written import app_of, built, flow, module, refused


def steps(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {step["id"]: step for step in data["steps"]}


def test_values_become_references(tmp_path: Path) -> None:
    data = built(
        tmp_path,
        """
        x = extract.step(day)
        first_one = x.files[0]
        anything.step({"a": [x.note, x.files[-1], 5], "run": this_run.scheduled_for, "whole": x})
        anything.step(Raw(files=[first_one], rows=x.rows))
        return {"rows": x.rows}
        """,
    )
    assert data["parameters"] == {"day": {"type": "string"}}
    assert data["required"] == ["day"]
    assert steps(data)["extract"]["with"] == {"day": {"$": "input.day"}}
    assert steps(data)["anything"]["with"]["value"] == {
        "a": [{"$": "extract.note"}, {"$": "extract.files[-1]"}, 5],
        "run": {"$": "run.scheduled_for"},
        "whole": {"$": "extract"},
    }
    second = steps(data)["anything_2"]["with"]["value"]
    assert second == {"files": [{"$": "extract.files[0]"}], "rows": {"$": "extract.rows"}, "note": None}
    assert data["result"] == {"rows": {"$": "extract.rows"}}


def test_objects_that_look_like_templates_are_quoted(tmp_path: Path) -> None:
    data = built(tmp_path, "anything.step({'a': {'$': 'extract', 'b': {'$text': 1}}})")
    assert steps(data)["anything"]["with"]["value"] == {"a": {"$literal": {"$": "extract", "b": {"$text": 1}}}}
    assert "cannot hold values" in str(refused(tmp_path, "anything.step({'$x': day})"))


def test_a_fixed_tuple_can_be_unpacked(tmp_path: Path) -> None:
    data = built(tmp_path, "number, text_ = pair.step(day)\nsend.step(text_)\nreturn number")
    assert steps(data)["send"]["with"] == {"to": {"$": "pair[1]"}}
    assert data["result"] == {"$": "pair[0]"}


def test_names_are_those_of_the_jobs_and_numbered(tmp_path: Path) -> None:
    data = built(
        tmp_path,
        """
        for text_ in ("a", "b"):
            send.step(text_)
        send.options(name="last").step("c")
        send.step("d")
        """,
    )
    assert list(steps(data)) == ["send", "send_2", "last", "send_3"]


def test_names_that_no_step_can_have_are_changed(tmp_path: Path) -> None:
    source = "\n@app.job(name='run')\ndef a() -> int: ...\n@app.job(name='mail.send')\ndef b() -> int: ...\n"
    app = app_of(tmp_path, source + flow("a.step()\nb.step()"))
    data = app.workflows["w"].to_data()
    assert [(step["id"], step["job"]) for step in data["steps"]] == [("run_2", "run"), ("mail_send", "mail.send")]


def test_maps(tmp_path: Path) -> None:
    data = built(
        tmp_path,
        """
        x = extract.step(day)
        parts = transform.options(at_once=5, tolerate="1%").map(x.files, bucket="us")
        more = transform.map(["a", x.note])
        star = transform.starmap([("a",), {"file": x.note, "bucket": "eu"}])
        send.step("done", text=text("{n} of {day}", n=parts[0], day=day))
        return outcomes(star)
        """,
    )
    found = steps(data)
    assert {name: found["transform"][name] for name in ("map", "as", "with", "at_once", "tolerate")} == {
        "map": {"$": "extract.files"},
        "as": "file",
        "with": {"bucket": "us"},
        "at_once": 5,
        "tolerate": "1%",
    }
    assert found["transform_2"]["map"] == ["a", {"$": "extract.note"}]
    assert found["transform_3"]["map"] == [{"file": "a"}, {"file": {"$": "extract.note"}, "bucket": "eu"}]
    assert "as" not in found["transform_3"]
    assert found["send"]["with"]["text"] == {
        "$text": "{n} of {day}",
        "n": {"$": "transform[0]"},
        "day": {"$": "input.day"},
    }
    assert data["result"] == {"$outcomes": "transform_3"}


def test_commands_and_jobs_with_a_context_can_be_mapped(tmp_path: Path) -> None:
    source = """
        report = app.command("report", ["echo", "{month}"])
        @app.job
        def late(ctx: Context, n: int) -> int: ...
        """
    body = flow("report.map(['a', 'b'])\nlate.map([1])\nanything.starmap([(day,)])")
    found = steps(app_of(tmp_path, dedent(source) + body).workflows["w"].to_data())
    assert (found["report"]["as"], found["late"]["as"]) == ("month", "n")
    assert found["anything"]["map"] == [{"value": {"$": "input.day"}}]


def test_a_job_that_takes_any_number_of_arguments_cannot_be_mapped(tmp_path: Path) -> None:
    source = "\n@app.job\ndef every(*n: int) -> int: ...\n"
    (error,) = app_of(tmp_path, source + flow("every.map([1])")).workflows["w"].problems()
    assert "use starmap" in str(error)
    data = app_of(tmp_path, source + flow("every.step(1, 2)")).workflows["w"].to_data()
    assert data["steps"][0]["with"] == {"n": [1, 2]}


def test_blocks_nest_and_otherwise_is_the_opposite(tmp_path: Path) -> None:
    data = built(
        tmp_path,
        """
        x = extract.step(day)
        with when(all_of(x.rows > 1, not_(one_of(x.note, ["a", "b"])))):
            with when(check.step(x)):
                a = send.step("a")
            with otherwise():
                b = send.step("b")
        with otherwise():
            c = send.step("c")
        with when(any_of(is_none(x.note), skipped(a), succeeded(b), 5 == x.rows)):
            send.step("d")
        return first(a, b, c)
        """,
    )
    found = steps(data)
    outer = {"all": [{"gt": [{"$": "extract.rows"}, 1]}, {"not": {"in": [{"$": "extract.note"}, ["a", "b"]]}}]}
    inner = {"is_true": {"$": "check"}}
    assert found["check"]["when"] == [outer]
    assert found["send"]["when"] == [outer, inner]
    assert found["send_2"]["when"] == [outer, {"not": inner}]
    assert found["send_3"]["when"] == [{"not": outer}]
    (last,) = found["send_4"]["when"]
    assert last["any"] == [
        {"is_none": {"$": "extract.note"}},
        {"skipped": "send"},
        {"succeeded": "send_2"},
        {"eq": [{"$": "extract.rows"}, 5]},
    ]


def test_order_edges(tmp_path: Path) -> None:
    data = built(
        tmp_path,
        """
        a, b, c, d = send.step("a"), send.step("b"), send.step("c"), send.step("d")
        chain(a, [b, c], d)
        send.after(a).after(d).step("e")
        send.after([b, c], rule="all_done").options(name="last").step("f")
        """,
    )
    after = {name: (step.get("after"), step.get("rule")) for name, step in steps(data).items()}
    assert after == {
        "send": (None, None),
        "send_2": (["send"], None),
        "send_3": (["send"], None),
        "send_4": (["send_2", "send_3"], None),
        "send_5": (["send", "send_4"], None),
        "last": (["send_2", "send_3"], "all_done"),
    }


def test_options_of_steps(tmp_path: Path) -> None:
    options = (
        "queue='q', priority='high', delay='5s', timeout='1m', tags=['x'], headers={'a': 'b'}, retry=3, may_fail=True"
    )
    data = built(tmp_path, f"send.options({options}).step('a')")
    (step,) = data["steps"]
    assert step["retry"].pop("policy") == "Exponential"
    assert {name: step[name] for name in ("queue", "delay", "timeout", "tags", "headers", "may_fail")} == {
        "queue": "q",
        "delay": 5.0,
        "timeout": 60.0,
        "tags": ["x"],
        "headers": {"a": "b"},
        "may_fail": True,
    }
    assert step["priority"] > 0


def test_first_and_default_can_be_combined(tmp_path: Path) -> None:
    data = built(
        tmp_path,
        """
        a = extract.options(may_fail=True).step(day)
        with when(failed(a)):
            b = extract.step("other")
        send.step(first(a, b).files[0])
        return default(first(a, b).rows, 0)
        """,
    )
    both = [{"$": "extract.files[0]"}, {"$": "extract_2.files[0]"}]
    assert steps(data)["send"]["with"] == {"to": {"$first": both}}
    assert data["result"] == {"$default": [{"$first": [{"$": "extract.rows"}, {"$": "extract_2.rows"}]}, 0]}


ACCEPTED = {
    "undo": """
        x = extract.options(undo=anything).step(day)
        a = transform.options(undo=anything, undo_failed=True, tolerate=1).map(x.files)
        return load.options(undo=unload, undo_failed=True).step(a)
        """,
    "a fallback": """
        a = send.options(may_fail=True).step("a")
        with when(failed(a)):
            b = send.step("b")
        return first(a, b)
        """,
    "both sides": """
        x = extract.step(day)
        with when(x.rows > 1): a = send.step("a")
        with otherwise(): b = send.step("b")
        return send.step(first(a, b))
        """,
    "a join by none_failed": """
        x = extract.step(day)
        with when(x.rows > 1): a = send.step("a")
        with otherwise(): b = send.step("b")
        return send.after(a, b, rule="none_failed").step("c")
        """,
    "nested sides": """
        x = extract.step(day)
        with when(x.rows > 1):
            with when(x.rows > 5): a = send.step("a")
            with otherwise(): b = send.step("b")
            ab = send.step(first(a, b))
        with otherwise(): c = send.step("c")
        return first(ab, c)
        """,
    "a fallback in a branch": """
        x = extract.step(day)
        with when(x.rows > 1):
            a = send.options(may_fail=True).step("a")
            with when(failed(a)): b = send.step("b")
        with otherwise(): c = send.step("c")
        return first(a, b, c)
        """,
    "a default": "a = send.options(may_fail=True).step('a')\nreturn default(a, None)",
    "the opposite condition written out": """
        x = extract.step(day)
        with when(x.rows > 1): a = send.step("a")
        with when(x.rows <= 1): b = send.step("b")
        return first(a, b)
        """,
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_results_that_are_always_there(case: str, tmp_path: Path) -> None:
    assert built(tmp_path, ACCEPTED[case])["result"]


REFUSED = {
    "another condition": """
        x = extract.step(day)
        with when(x.rows > 1): a = send.step("a")
        with when(x.rows < 1): b = send.step("b")
        return first(a, b)
        """,
    "no third side": """
        x = extract.step(day)
        with when(x.rows > 1):
            with when(x.rows > 5): a = send.step("a")
            with otherwise(): b = send.step("b")
        return first(a, b)
        """,
    "many conditions": """
        x = extract.step(day)
        with when(x.rows != 1), when(x.rows != 2), when(x.rows != 3), when(x.rows != 4), when(x.rows != 5), \\
             when(x.rows != 6), when(x.rows != 7), when(x.rows != 8), when(x.rows != 9), when(x.rows != 10), \\
             when(x.rows != 11), when(x.rows != 12), when(x.rows != 13), when(x.rows != 14), when(x.rows != 15), \\
             when(x.rows != 16), when(x.rows != 17), when(x.rows != 18), when(x.rows != 19), when(x.rows != 20):
            a = send.step("a")
        return a
        """,
    "behind what may fail": "a = send.options(may_fail=True).step('a')\nreturn send.step(a)",
    "one_failed": "a = send.step('a')\nreturn send.after(a, rule='one_failed').step('b')",
}


@pytest.mark.parametrize("case", REFUSED)
def test_results_that_can_be_missing(case: str, tmp_path: Path) -> None:
    assert "the result can be missing" in str(refused(tmp_path, REFUSED[case]))


def test_two_constants_exclude_each_other(tmp_path: Path) -> None:
    body = """
        x = extract.step(day)
        with when(x.note == "a"): a = send.step("a")
        with when(x.note == "b"): b = send.step("b")
        send.step(text("{a}{b}", a=a, b=b))
        """
    assert "can never run" in str(refused(tmp_path, body))


def test_workflows_are_steps_and_may_name_each_other_and_themselves(tmp_path: Path) -> None:
    source = """
        @app.workflow
        def outer(day: str) -> list[int]:
            x = extract.step(day)
            inner.options(name="one", may_fail=True).step(x.rows)
            outer.step("again")
            return inner.map([1, 2])

        @app.workflow(max_nesting=3, name="inner")
        def inner(n: int, deep: bool = False) -> int:
            with when(n > 0):
                outer.after(anything.step(n)).step("deeper")
            return n
        """
    app = app_of(tmp_path, source)
    outer, inner = app.workflows["outer"].to_data(), app.workflows["inner"].to_data()
    assert [(step["id"], step.get("workflow")) for step in outer["steps"]] == [
        ("extract", None),
        ("one", "inner"),
        ("outer", "outer"),
        ("inner", "inner"),
    ]
    assert outer["steps"][3] == {"id": "inner", "workflow": "inner", "map": [1, 2], "as": "n"}
    assert inner["parameters"] == {"n": {"type": "integer"}, "deep": {"type": "boolean", "default": False}}
    assert inner["required"] == ["n"]
    assert inner["max_nesting"] == 3
    assert inner["result"] == {"$": "input.n"}


def test_arguments_of_sub_workflows_are_checked(tmp_path: Path) -> None:
    source = "\n@app.workflow\ndef inner(n: int) -> int:\n    return transform.step('a')\n"
    wrong = app_of(tmp_path, source + flow("inner.step(day)"))
    (error,) = wrong.workflows["w"].problems()
    assert "argument 'n' takes integer, but this is string" in str(error)
    with pytest.raises(WorkflowError, match=r"timeout= cannot be set for a step: set it with @app\.workflow"):
        app_of(tmp_path, source + flow("inner.options(timeout=5).step(1)")).workflows["w"].check()


def test_options_of_workflows(tmp_path: Path) -> None:
    options = (
        "(name='flow', timeout='4h', on_failure='stop', priority='high', max_width=7, description='What it does.')"
    )
    app = app_of(tmp_path, flow("send.step(day)", options=options))
    workflow = app.workflows["flow"]
    data = workflow.to_data()
    assert (data["name"], data["timeout"], data["on_failure"], data["max_width"]) == ("flow", 14400.0, "stop", 7)
    assert data["description"] == workflow._definition.description == "What it does."
    assert workflow._definition.priority > 0
    assert repr(workflow) == "Workflow(shop.flow)"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("(tmeout=5)", "there is no option 'tmeout': did you mean timeout?"),
        ("(schedule='0 2 * * *')", "there is no option 'schedule': did you mean cron?"),
        ("(timeout=0)", "timeout must be longer than zero"),
        ("(on_failure='halt')", "on_failure must be 'finish' or 'stop'"),
        ("(max_width=True)", "max_width must be a number"),
        ("(name='send')", "already has a job 'send'"),
        ("(cron='0 2 * * *')", "arguments= must be what it takes"),
    ],
)
def test_options_of_workflows_that_are_wrong(options: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=words):
        app_of(tmp_path, flow("send.step(day)", options=options))


def test_numbers_out_of_bounds_are_found_by_the_check(tmp_path: Path) -> None:
    error = refused(tmp_path, "send.step(day)", options="(max_width=2_000_000)")
    assert "max_width must be between 1 and 1,000,000" in str(error)


def test_a_job_cannot_take_the_name_of_a_workflow() -> None:
    app = App("a")
    app.workflow(name="w")(lambda: None)
    with pytest.raises(UsageError, match="already has a workflow 'w'"):
        app.job(name="w")(lambda: None)


def test_the_graph_is_part_of_the_version(tmp_path: Path) -> None:
    one, same, other = (
        app_of(tmp_path, flow(body)).workflows["w"]._definition
        for body in ("send.step(day)", "send.step(day)  # a comment", "send.step('x')")
    )
    assert one.target["kind"] == "workflow"
    assert one.target["graph"]["steps"][0]["id"] == "send"
    assert digest(content(one)) == digest(content(same)) != digest(content(other))


def test_a_schedule_starts_runs_by_itself(tmp_path: Path) -> None:
    app = app_of(tmp_path, flow("send.step(day)", options="(cron='0 2 * * *', arguments={'day': 'x'})"))
    with harness(app):
        (schedule,) = app.schedules()
    assert schedule.name == "w"


def test_nothing_is_built_before_it_is_needed(tmp_path: Path) -> None:
    found = module(tmp_path, "\ntraced = []\n" + flow("traced.append(1)\nsend.step(day)"))
    assert found.traced == []
    with harness(found.app) as running:
        assert found.traced == [1, 1]
        found.send.enqueue("a")
        running.run_until_idle()
    found.w.graph()
    assert found.traced == [1, 1]


def test_a_broken_workflow_does_not_break_an_enqueue(tmp_path: Path) -> None:
    found = module(tmp_path, flow("send.step(str(day))"))
    found.send.enqueue("a")
    with pytest.raises(WorkflowError):
        found.app.check()
    found.app.close()


def test_threads_build_once(tmp_path: Path) -> None:
    found = module(tmp_path, "\ntraced = []\n" + flow("traced.append(1)\nsend.step(day)"))
    threads = [threading.Thread(target=found.w.graph) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found.traced == [1, 1]


def test_more_than_a_thousand_steps_are_refused(tmp_path: Path) -> None:
    assert "at most 1,000 steps" in str(refused(tmp_path, "while True:\n    send.step('a')"))


def test_a_function_without_source_is_traced_too() -> None:
    names: dict[str, Any] = {"app": App("a")}
    exec(
        "@app.job\ndef send(to: str) -> str: ...\n@app.workflow\ndef w(to: str) -> str:\n    return send.step(to)",
        names,
    )
    assert names["w"].to_data()["result"] == {"$": "send"}


def test_every_rule_can_be_named() -> None:
    assert set(get_args(order.Rule)) == set(RULES)


def test_values_can_be_shown() -> None:
    app, shown = App("a"), []

    @app.job
    def send(to: str) -> str:
        return to

    @app.workflow
    def w(to: str) -> str:
        shown.append(repr(to))
        shown.append(repr(to == "a"))
        return send.step(to)

    w.graph()
    assert shown[:2] == ["<rota value input.to>", "<rota condition {'eq': [{'$': 'input.to'}, 'a']}>"]


def test_a_schedule_can_be_made_at_run_time(tmp_path: Path) -> None:
    app = app_of(tmp_path, flow("send.step(day)"))
    with harness(app):
        app.schedule("w", every="5m", arguments={"day": "x"})
        app.schedule(app.workflows["w"], name="again", every="1h", arguments={"day": "y"})
        assert sorted(one.name for one in app.schedules()) == ["again", "w"]
