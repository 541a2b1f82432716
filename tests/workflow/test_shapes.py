"""What runs do on both databases: chains, joins, maps, conditions, rules and nesting."""

from __future__ import annotations

from typing import Any

import pytest

from rota.domain.retry import Fixed
from rota.domain.status import Status
from tests.support.proving import proof
from tests.workflow.stage import Fail, Stage


def ref(path: str) -> dict[str, str]:
    return {"$": path}


def fail(**_: Any) -> None:
    raise Fail("boom")


def unlucky(x: int, **_: Any) -> int:
    if x in (3, 7, 11):
        raise Fail(f"{x} is unlucky")
    return x * x


@pytest.fixture(autouse=True)
def jobs(stage: Stage) -> None:
    stage.job("numbers", lambda n: list(range(n)))
    stage.job("square", lambda x, plus=0: x * x + plus)
    stage.job("total", lambda parts: sum(parts))
    stage.job("unlucky", unlucky)
    stage.job("fail", fail)
    stage.job("collect", lambda **given: given)


SQUARES = (
    {"id": "numbers", "job": "numbers", "with": {"n": ref("input.n")}},
    {"id": "square", "job": "square", "map": ref("numbers"), "as": "x"},
    {"id": "total", "job": "total", "with": {"parts": ref("square")}},
)

pytestmark = pytest.mark.parametrize("store", ["sqlite", proof("postgres")], indirect=True)


def run(stage: Stage, name: str = "main", **arguments: Any) -> str:
    id = stage.start(name, arguments)
    stage.work()
    stage.check()
    return id


def test_a_chain_passes_results_on(stage: Stage) -> None:
    stage.workflow(
        "main",
        {"id": "a", "job": "echo", "with": {"x": ref("input.x")}},
        {"id": "b", "job": "echo", "with": {"x": {"deep": [ref("a"), 1]}}},
        {"id": "c", "job": "echo", "with": {"x": ref("b.deep[0]")}},
        result={"c": ref("c"), "about": ref("run.workflow"), "text": {"$text": "{a}!", "a": ref("a")}},
    )
    assert stage.result(run(stage, x="hello")) == {"c": "hello", "about": "main", "text": "hello!"}
    assert stage.count("echo") == 3


def test_no_step_starts_before_its_upstreams_end(stage: Stage) -> None:
    stage.workflow("main", *({"id": f"s{n}", "job": "echo", "after": [f"s{n - 1}"] if n else []} for n in range(4)))
    id = stage.start("main")
    for _ in range(4):
        (attempt,) = stage.take()
        assert stage.take() == []
        stage.finish(attempt)
    assert stage.end(id) == ("success", "completed")
    stage.check()


def test_a_diamond_joins_once(stage: Stage) -> None:
    stage.workflow(
        "main",
        {"id": "a", "job": "echo", "with": {"x": 1}},
        {"id": "b", "job": "echo", "with": {"x": ref("a")}},
        {"id": "c", "job": "echo", "with": {"x": ref("a")}},
        {"id": "d", "job": "total", "with": {"parts": [ref("b"), ref("c")]}},
        result=ref("d"),
    )
    id = stage.start("main")
    stage.finish(*stage.take())
    left, right = stage.take()
    stage.finish(right)
    assert stage.take() == []
    stage.finish(left)
    stage.work()
    assert stage.result(id) == 2
    assert stage.count("total") == 1
    stage.check()


def test_both_parents_in_one_report_join_once(stage: Stage) -> None:
    stage.workflow(
        "main",
        {"id": "b", "job": "echo", "with": {"x": 1}},
        {"id": "c", "job": "echo", "with": {"x": 2}},
        {"id": "d", "job": "total", "with": {"parts": [ref("b"), ref("c")]}},
        result=ref("d"),
    )
    assert stage.result(run(stage)) == 3
    assert stage.count("total") == 1


@pytest.mark.parametrize("width", [0, 1, 99, 100, 101, 501, 1700])
def test_a_map_gives_its_results_in_order(stage: Stage, width: int) -> None:
    stage.workflow("main", *SQUARES, result={"total": ref("total"), "all": ref("square")})
    squares = [x * x for x in range(width)]
    assert stage.result(run(stage, n=width)) == {"total": sum(squares), "all": squares}
    assert stage.count("square") == width


def test_items_start_in_the_order_of_the_list(stage: Stage) -> None:
    stage.workflow("main", *SQUARES)
    run(stage, n=300)
    assert [arguments["x"] for job, arguments in stage.started if job == "square"] == list(range(300))


@pytest.mark.parametrize("at_once", [1, 3, 50])
def test_a_map_runs_no_more_items_than_at_once(stage: Stage, at_once: int) -> None:
    stage.workflow("main", SQUARES[0], {**SQUARES[1], "at_once": at_once}, SQUARES[2], result=ref("total"))
    assert stage.result(run(stage, n=620 if at_once > 1 else 40)) == sum(
        x * x for x in range(620 if at_once > 1 else 40)
    )
    assert stage.most_at_once["square"] == at_once


def test_a_cancelled_item_that_waited_frees_no_place(stage: Stage) -> None:
    stage.workflow("main", SQUARES[0], {**SQUARES[1], "at_once": 2, "tolerate": 5}, result=ref("square"))
    id = stage.start("main", {"n": 8})
    stage.finish(*stage.take())
    held = stage.take()
    assert len(held) == 2
    waiting = [str(row["id"]) for row in stage.executions("square") if row["status"] == "waiting"]
    for one in waiting[2:5]:
        assert stage.cancel(one) == Status.CANCELLED
    assert stage.take() == []
    stage.work()
    assert stage.most_at_once["square"] == 2
    assert len(stage.result(id)) == 5
    stage.check()


@pytest.mark.parametrize(
    ("tolerate", "width", "letter"),
    [(None, 4, "f"), (1, 4, "s"), (1, 8, "f"), (2, 8, "s"), ("25%", 8, "s"), ("24%", 8, "f"), ("10%", 700, "s")],
)
def test_a_map_tolerates_so_many_failures(stage: Stage, tolerate: Any, width: int, letter: str) -> None:
    step = {"id": "m", "job": "unlucky", "map": ref("numbers"), "as": "x", "tolerate": tolerate}
    stage.workflow("main", SQUARES[0], step, {"id": "after", "job": "total", "with": {"parts": ref("m")}})
    id = run(stage, n=width)
    assert stage.letters(id) == f"s{letter}" + ("s" if letter == "s" else "b")
    assert stage.end(id) == (("success", "completed") if letter == "s" else ("failed", "step_failed"))


def test_outcomes_have_every_item(stage: Stage) -> None:
    stage.workflow(
        "main",
        {"id": "m", "job": "unlucky", "map": [2, 3], "as": "x", "may_fail": True},
        {"id": "all", "job": "collect", "with": {"all": {"$outcomes": "m"}}},
        result=ref("all.all"),
    )
    good, bad = stage.result(run(stage))
    assert good == {"index": 0, "status": "success", "result": 4, "error": None}
    assert (bad["index"], bad["status"], bad["error"]["message"]) == (1, "failed", "3 is unlucky")


@pytest.mark.parametrize(("value", "kind"), [(None, "null"), ("abc", "a text"), ({}, "an object"), (7, "a number")])
@pytest.mark.parametrize("what", ["job", "workflow"])
def test_case_5_a_map_over_anything_but_a_list_fails(stage: Stage, value: Any, kind: str, what: str) -> None:
    stage.workflow("inner", {"id": "a", "job": "echo"})
    runs = {"job": "square"} if what == "job" else {"workflow": "inner"}
    stage.workflow(
        "main",
        {"id": "a", "job": "echo", "with": {"x": ref("input.v")}},
        {"id": "m", **runs, "map": ref("a"), "as": "x"},
    )
    id = run(stage, v=value)
    assert stage.letters(id) == "sf"
    assert f"step a returned {kind}" in stage.error(id)
    assert ", a map needs a list" in stage.error(id)
    (item,) = stage.executions("square" if what == "job" else "inner")
    assert (item["status"], item["reason"]) == ("failed", "bad_arguments")


def test_a_map_wider_than_allowed_fails(stage: Stage) -> None:
    stage.workflow("main", *SQUARES, max_width=10)
    id = run(stage, n=11)
    assert stage.letters(id) == "sfb"
    assert "max_width" in stage.error(id)


def test_each_item_may_be_a_whole_call(stage: Stage) -> None:
    stage.workflow(
        "main",
        {"id": "m", "job": "square", "map": [{"x": 1, "plus": 1}, [2, 2], [3]], "positional": ["x", "plus"]},
        result=ref("m"),
    )
    assert stage.result(run(stage)) == [2, 6, 9]


def test_conditions_choose_a_branch(stage: Stage) -> None:
    big = {"gt": [ref("size"), 500]}
    stage.workflow(
        "main",
        {"id": "size", "job": "echo", "with": {"x": ref("input.x")}},
        {"id": "fine", "job": "echo", "with": {"x": "fine"}, "when": [big]},
        {"id": "plain", "job": "echo", "with": {"x": "plain"}, "when": [{"not": big}]},
        {"id": "link", "job": "echo", "with": {"x": {"$first": [ref("fine"), ref("plain")]}}},
        {"id": "page", "job": "echo", "when": [{"failed": "link"}]},
        result=[ref("link"), {"$default": [ref("page"), "no page"]}],
    )
    for size, letters, chosen in ((501, "ssksk", "fine"), (500, "skssk", "plain")):
        id = run(stage, x=size)
        assert (stage.letters(id), stage.result(id)) == (letters, [chosen, "no page"])


def test_a_condition_that_cannot_be_judged_fails_its_step(stage: Stage) -> None:
    stage.workflow(
        "main",
        {"id": "a", "job": "echo", "with": {"x": "text"}},
        {"id": "b", "job": "echo", "when": [{"gt": [ref("a"), 3]}]},
        {"id": "c", "job": "echo", "after": ["b"]},
    )
    id = run(stage)
    assert (stage.letters(id), stage.end(id)) == ("sfb", ("failed", "step_failed"))


def test_a_run_whose_steps_are_all_skipped_ends_when_it_opens(stage: Stage) -> None:
    stage.workflow("main", {"id": "a", "job": "echo", "when": [{"eq": [1, 2]}]}, result="done")
    stage.workflow(
        "outer",
        {"id": "i", "workflow": "main"},
        {"id": "n", "workflow": "main", "map": [1, 2], "as": "x"},
        result=ref("n"),
    )
    id = run(stage)
    assert (stage.letters(id), stage.result(id), stage.count("echo")) == ("k", "done", 0)
    assert stage.result(run(stage, "outer")) == ["done", "done"]


def test_a_workflow_without_steps(stage: Stage) -> None:
    stage.workflow("main", result=ref("input.x"))
    assert stage.result(run(stage, x=[1])) == [1]


def test_missing_inputs_fail_the_step(stage: Stage) -> None:
    stage.workflow(
        "main",
        {"id": "a", "job": "echo", "with": {"x": {"files": []}}},
        {"id": "b", "job": "echo", "with": {"x": ref("a.files[0]")}},
    )
    id = run(stage)
    assert stage.letters(id) == "sf"
    assert "a.files[0]" in stage.error(id)
    assert stage.count("echo") == 1


def test_a_result_that_cannot_be_made_fails_the_run(stage: Stage) -> None:
    stage.workflow("main", {"id": "a", "job": "echo", "with": {"x": {}}}, result=ref("a.missing"))
    assert stage.end(run(stage)) == ("failed", "bad_result")


@pytest.mark.parametrize(("on_failure", "letters"), [("finish", "fsss"), ("stop", "fscs")])
def test_a_failure_stops_the_run_or_not(stage: Stage, on_failure: str, letters: str) -> None:
    stage.workflow(
        "main",
        {"id": "a", "job": "fail"},
        {"id": "b", "job": "echo"},
        {"id": "c", "job": "echo", "after": ["b"]},
        {"id": "z", "job": "echo", "after": ["a", "c"], "rule": "always"},
        on_failure=on_failure,
    )
    id = stage.start("main")
    bad, good = sorted(stage.take(), key=lambda one: one.job != "fail")
    stage.finish(good) if on_failure == "finish" else stage.report(
        (good, stage.outcome(good)), (bad, stage.outcome(bad))
    )
    stage.held = [one for one in stage.held if one is bad and on_failure == "finish"]
    stage.work()
    assert stage.letters(id) == letters
    assert stage.end(id) == ("failed", "step_failed")
    assert "step a failed: Fail: boom" in stage.error(id)
    stage.check()


def test_a_stopping_run_cancels_its_open_steps(stage: Stage) -> None:
    stage.workflow(
        "main",
        {"id": "a", "job": "fail"},
        {"id": "b", "job": "echo", "delay": 60},
        {"id": "c", "job": "echo"},
        {"id": "m", "job": "square", "map": list(range(700)), "as": "x", "at_once": 2},
        on_failure="stop",
    )
    id = stage.start("main")
    held = {one.job: one for one in stage.take()}
    stage.finish(held["fail"])
    while stage.chores():
        pass
    assert stage.world.execution(held["echo"].id).reason == "step_failed"
    stage.work()
    assert stage.letters(id) == "fcsc"
    assert stage.end(id) == ("failed", "step_failed")
    stage.check()


def test_a_failure_that_is_allowed_does_not_fail_the_run(stage: Stage) -> None:
    stage.workflow(
        "main",
        {"id": "a", "job": "fail", "may_fail": True},
        {"id": "b", "job": "echo", "with": {"x": ref("a")}},
        {"id": "c", "job": "echo", "with": {"x": "c"}, "after": ["a"], "rule": "all_done"},
        result={"$default": [ref("a"), ref("c")]},
    )
    id = run(stage)
    assert (stage.letters(id), stage.result(id)) == ("fbs", "c")


def test_a_step_has_its_own_options(stage: Stage) -> None:
    stage.workflow(
        "main",
        {
            "id": "a",
            "job": "echo",
            "queue": "slow",
            "priority": 7,
            "delay": 30,
            "tags": ["x"],
            "headers": {"k": "v"},
            "retry": Fixed(attempts=2, delay=1).describe(),
            "timeout": 5,
        },
    )
    id = stage.start("main", headers='{"run":"yes"}')
    stage.work()
    assert stage.world.status(id) == Status.RUNNING
    (row,) = stage.executions("echo")
    assert (row["queue"], row["priority"], row["status"], row["tags"]) == ("slow", 7, "scheduled", '["x"]')
    assert row["headers"] == '{"run":"yes","k":"v"}'
    stage.advance(30)
    assert stage.end(id) == ("success", "completed")


def test_a_step_is_retried_as_its_job_says(stage: Stage) -> None:
    seen: list[int] = []

    def flaky() -> int:
        seen.append(1)
        if len(seen) < 3:
            raise Fail("again")
        return len(seen)

    stage.job("flaky", flaky, attempts=3, delay_s=10)
    stage.workflow(
        "main", {"id": "a", "job": "flaky"}, {"id": "b", "job": "echo", "with": {"x": ref("a")}}, result=ref("b")
    )
    id = stage.start("main")
    stage.work()
    assert stage.letters(id) == "o."
    stage.advance(10)
    stage.advance(10)
    assert stage.result(id) == 3
    assert stage.world.dead() == []
    stage.check()


def test_a_failed_step_is_no_dead_letter_but_its_root_run_is(stage: Stage) -> None:
    stage.workflow("inner", {"id": "a", "job": "fail"})
    stage.workflow("main", {"id": "i", "workflow": "inner"}, {"id": "m", "workflow": "inner", "map": [1, 2], "as": "x"})
    id = run(stage)
    assert [row.id for row in stage.world.dead()] == [id]
    assert stage.letters(id) == "ff"


# --- Nesting --------------------------------------------------------------------------------------


def test_a_map_of_sub_workflows(stage: Stage) -> None:
    stage.workflow("inner", *SQUARES, result={"n": ref("input.n"), "total": ref("total")})
    stage.workflow(
        "main",
        {"id": "numbers", "job": "numbers", "with": {"n": ref("input.n")}},
        {"id": "each", "workflow": "inner", "map": ref("numbers"), "as": "n", "at_once": 2},
        {"id": "one", "workflow": "inner", "with": {"n": ref("each[2].n")}},
        result={"each": ref("each"), "one": ref("one.total")},
    )
    totals = [sum(x * x for x in range(n)) for n in range(5)]
    assert stage.result(run(stage, n=5)) == {
        "each": [{"n": n, "total": total} for n, total in enumerate(totals)],
        "one": totals[2],
    }


def test_nested_maps(stage: Stage) -> None:
    stage.workflow("leaf", {"id": "m", "job": "square", "map": ref("input.x"), "as": "x"}, result=ref("m"))
    stage.workflow("middle", {"id": "m", "workflow": "leaf", "map": ref("input.x"), "as": "x"}, result=ref("m"))
    stage.workflow("main", {"id": "m", "workflow": "middle", "map": ref("input.x"), "as": "x"}, result=ref("m"))
    given = [[[1, 2], [3]], [], [[], [4]]]
    assert stage.result(run(stage, x=given)) == [[[1, 4], [9]], [], [[], [16]]]


def test_a_workflow_that_nests_itself_without_end_fails(stage: Stage) -> None:
    stage.workflow("main", {"id": "again", "workflow": "main"}, max_nesting=5)
    id = run(stage)
    assert stage.letters(id) == "f"
    runs = stage.executions("main")
    assert len(runs) == 7
    assert sorted(row["reason"] for row in runs) == ["step_failed"] * 6 + ["too_deep"]


def test_a_sub_run_whose_workflow_is_unknown_fails(stage: Stage) -> None:
    stage.workflow("main", {"id": "a", "job": "nowhere"})
    id = run(stage)
    assert stage.end(id) == ("failed", "bad_arguments")
    assert "nowhere" in stage.error(id)


def test_inputs_that_are_too_large(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.ops.gates.step_inputs.MOST_BYTES", 1000)
    stage.workflow(
        "main",
        {"id": "m", "job": "echo", "map": ["é" * 200] * 3, "as": "x"},
        {"id": "all", "job": "total", "with": {"parts": ref("m")}},
    )
    id = run(stage)
    assert stage.letters(id) == "sf"
    (all_of_them,) = stage.executions("total")
    assert all_of_them["reason"] == "inputs_too_large"
    assert "bytes" in stage.error(id)


def test_results_that_are_too_large(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.ops.runs.result.MOST_RESULT_BYTES", 1000)
    stage.workflow("main", {"id": "a", "job": "echo", "with": {"x": "é" * 600}}, result=ref("a"))
    assert stage.end(run(stage)) == ("failed", "bad_result")
