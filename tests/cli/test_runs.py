"""`rota start`, `runs`, `run` and `workflows`: workflows seen and steered from the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rota.clock import SystemClock
from rota.domain.job import Definition
from rota.domain.outcome import Cancelled
from rota.store.sqlite.store import SqliteStore
from tests.cli.shell import HANG_S, Shell
from tests.support.waiting import eventually
from tests.support.world import World
from tests.workflow.stage import Fail, Stage, workflow

LONG = "generate_the_monthly_revenue_report_for_one_region"
ERROR = "OperationalError: the server at warehouse.internal.example.com:5432 closed the connection unexpectedly, " * 3
STEPS = (
    {"id": "extract", "job": "extract", "with": {"day": {"$": "input.day"}}},
    {"id": "transform", "job": "transform", "map": {"$": "extract"}, "as": "x", "at_once": 50, "tolerate": "20%"},
    {"id": "load", "job": "load", "with": {"parts": {"$": "transform"}}},
    {"id": LONG, "job": "load", "when": [{"eq": [{"$": "extract"}, []]}], "with": {"parts": []}},
    {"id": "page", "job": "echo", "with": {"x": {"$": "load"}}},
)


PARAMETERS: dict[str, Any] = {"parameters": {"day": {"type": "string"}}, "required": ["day"]}


@pytest.fixture
def stage(shell: Shell) -> Iterator[Stage]:
    """The database of the shell with the workflow etl, whose step load fails while `bodies["broken"]` is set."""
    store = SqliteStore(f"sqlite:///{shell.folder / 'rota.db'}", SystemClock())
    stage = Stage(World(store))
    stage.bodies["broken"] = lambda: None

    def load(parts: list[int]) -> int:
        if "broken" in stage.bodies:
            raise Fail(ERROR)
        return sum(parts)

    def transform(x: int) -> int:
        if x == 7:
            raise Fail("no sevens")
        return x

    stage.job("extract", lambda day: list(range(10)))
    stage.job("transform", transform)
    stage.job("load", load)
    about = {"day": {"type": "str", "required": True}}
    stage.world.register(_with_parameters(workflow("etl", STEPS, {"$": "load"}, **PARAMETERS), about))
    yield stage
    store.close()


def _with_parameters(definition: Definition, parameters: dict[str, Any]) -> Definition:
    definition.parameters.update(parameters)
    return definition


def failed(shell: Shell, stage: Stage) -> str:
    id = shell.ok("start", "etl", "day=monday").out.strip()
    stage.work()
    return id


def mended(stage: Stage) -> None:
    del stage.bodies["broken"]


def statuses(shell: Shell, id: str) -> dict[str, str]:
    return {one["step"]: one["status"] for one in shell.ok("run", "show", id, "--json").rows["steps"]}


# --- Starting -------------------------------------------------------------------------------------


def test_start_prints_the_id_of_the_run(shell: Shell, stage: Stage) -> None:
    mended(stage)
    id = failed(shell, stage)
    (row,) = shell.ok("runs", "--json").rows
    assert (row["runId"], row["workflow"], row["status"], row["endedCount"]) == (id, "etl", "success", 5)
    answer = shell.ok("start", "etl", "day=monday", "--key", "k", "--json").rows
    assert answer["isNew"]
    assert shell.ok("start", "etl", "--args", '{"day": "monday"}', "--key", "k", "--json").rows == {
        **answer,
        "isNew": False,
    }


def test_start_and_enqueue_wait_for_the_result(shell: Shell, stage: Stage) -> None:
    mended(stage)
    for words in ("start", "enqueue"):
        process = shell.start(words, "etl", "day=monday", "--wait")
        eventually(lambda: stage.take() != [])
        stage.work()
        out, _ = process.communicate(timeout=HANG_S)
        assert (process.returncode, json.loads(out)) == (0, sum(range(10)) - 7)


def test_start_is_for_workflows(shell: Shell, stage: Stage) -> None:
    assert shell.refused("start", "load", "parts=[]") == (
        "load is a job and no workflow: `rota enqueue load`; `rota workflows` lists workflows"
    )
    assert "missing argument 'day'" in shell.refused("start", "etl")
    assert shell.refused("start", "elt").startswith("there is no workflow 'elt', did you mean 'etl'? `rota workflows`")
    assert "there is no job 'elt'" in shell.refused("enqueue", "elt")


FLOW = """
from rota.workflow import sleep

@app.job
def double(x: int) -> int:
    return 2 * x

@app.workflow
def twice(n: int) -> list[int]:
    return double.after(sleep("50ms")).map([1, 2, 3])
"""


def test_a_workflow_from_code_on_a_real_worker(shell: Shell, worker: Callable[..., None]) -> None:
    with (shell.folder / "shop.py").open("a") as file:
        file.write(FLOW)
    loaded = shell.ok("start", "twice", "n=1", "--load", "shop:app").out.strip()
    refused = shell.refused("start", "thrice", "--load", "shop:app")
    assert refused == "app 'shop' has no workflow 'thrice' (did you mean 'twice'?); it has twice"
    worker()
    assert shell.ok("start", "twice", "n=1", "--wait").rows == [2, 4, 6]
    eventually(lambda: shell.ok("run", "show", loaded, "--json").rows["result"] == [2, 4, 6])
    (row, _) = shell.ok("runs", "--json").rows
    assert shell.ok("run", "watch", row["runId"]).out.splitlines()[-1].split(" ", 1)[1].startswith("run success after")


# --- Showing --------------------------------------------------------------------------------------


def test_show_says_what_became_of_every_step_and_what_to_do(shell: Shell, stage: Stage) -> None:
    id = failed(shell, stage)
    heading, *lines = shell.ok("run", "show", id[-8:]).out.splitlines()
    assert heading.startswith(f"etl {id}   failed: load   version 1   scheduled for 20")
    assert heading.endswith('arguments {"day": "monday"}')
    shown = [re.sub(r" {2,}", "  ", line.strip()) for line in lines]
    assert shown[0].startswith("✓ extract  ")
    assert shown[1].startswith("✓ transform  ×10: 9 ok, 1 failed (tolerates 20%)  ")
    assert shown[1].endswith("[7] Fail: no sevens")
    assert shown[2].startswith("✗ load  ")
    assert f"Fail: {ERROR}".strip() in shown[2]
    assert shown[3] == f"» {LONG}  skipped: extract = [] is false"
    assert shown[4] == "– page  blocked: load failed"
    assert re.fullmatch(r"critical path  extract → transform\[\d\] → load  [\w. ]+ of [\w. ]+", shown[5])
    assert re.fullmatch(r"next  rota show \S{36}  traceback of load", shown[6])
    assert shown[7] == f"rota run retry {id}  runs load, then page; keeps 3 steps"


def test_show_says_that_a_result_is_clipped(shell: Shell, stage: Stage) -> None:
    stage.workflow("long", {"id": "a", "job": "echo", "with": {"x": "é" * 2000}}, result={"$": "a"})
    id = shell.ok("start", "long").out.strip()
    stage.work()
    _, screen = shell.screen("run", "show", id, columns=80)
    assert "é… (2,000 characters; --json shows all)" in " ".join(screen.split())
    assert len(shell.ok("run", "show", id, "--json").rows["result"]) == 2000


def test_show_of_a_run_that_has_not_opened(shell: Shell, stage: Stage) -> None:
    id = shell.ok("start", "etl", "day=monday", "--delay", "1h").out.strip()
    out = shell.ok("run", "show", id).out
    assert f"etl {id}   scheduled   version 1" in out
    assert "why            scheduled to start in 59 m" in out
    assert set(statuses(shell, id).values()) == {"pending"}


def test_an_open_run_names_the_steps_that_it_waits_for(shell: Shell, stage: Stage) -> None:
    id = shell.ok("start", "etl", "day=monday").out.strip()
    stage.take(1)
    assert "why:        waits for extract\n" in shell.ok("show", id).out
    out = shell.ok("run", "show", id).out
    assert "waits for extract" in out
    assert f"next           rota run watch {id}" in out
    stage.work()


def test_a_step_names_its_run_and_its_neighbours(shell: Shell, stage: Stage) -> None:
    id = failed(shell, stage)
    (load,) = shell.ok("executions", "--run", id, "--step", "load", "--json").rows
    out = shell.ok("show", load["executionId"]).out
    assert f"step:       load of run {id} (etl)\nwaits for:  transform (success)\nneeded by:  page (blocked)\n" in out
    (item,) = shell.ok("executions", "--run", id, "--step", "transform", "--status", "failed", "--json").rows
    assert (item["step"], item["index"]) == ("transform", 7)
    assert f"step:       transform[7] of run {id}" in shell.ok("show", item["executionId"]).out


def test_executions_lists_runs_and_their_steps(shell: Shell, stage: Stage) -> None:
    id = failed(shell, stage)
    rows = shell.ok("executions", "--json").rows
    assert (len(rows), [row["executionId"] for row in rows if row["runId"] is None]) == (13, [id])
    assert len(shell.ok("executions", "--job", "transform", "--json").rows) == 10
    assert len(shell.ok("executions", "--run", id, "--json").rows) == 12
    assert "--step names a step of a run: add --run ID" in shell.refused("executions", "--step", "load")
    assert "but not --job" in shell.refused("executions", "--run", id, "--job", "load")


@pytest.mark.parametrize("columns", [80, 200])
def test_nothing_wraps_on_a_terminal(shell: Shell, stage: Stage, columns: int) -> None:
    id = failed(shell, stage)
    opened = shell.ok("start", "etl", "day=monday").out.strip()
    stage.take(1)
    shell.ok("run", "pause", opened, "--note", ERROR)
    lists = [["runs"], ["workflows"], ["run", "show", id], ["executions", "--run", id]]
    for words in lists:
        code, screen = shell.screen(*words, columns=columns)
        lines = screen.splitlines()
        assert code == 0, screen
        assert max(map(len, lines)) <= columns, screen
        assert not any(line.endswith(" ") for line in lines), screen
    drawn = shell.screen("run", "show", id, columns=columns)[1]
    assert ERROR.strip() in " ".join(drawn.split())  # The error is not cut, but has lines of its own.
    shell.ok("run", "resume", opened)
    stage.work()


def test_bars_are_where_the_steps_were_in_time(shell: Shell, stage: Stage) -> None:
    lines = shell.screen("run", "show", failed(shell, stage), columns=200)[1].splitlines()
    bars = {line.split()[1]: re.search(r"[▇▏]", line) for line in lines[1:4]}
    assert all(bars.values())
    places = [found.start() for found in bars.values() if found]
    assert places == sorted(places)


def test_graph_has_the_outcomes(shell: Shell, stage: Stage) -> None:
    id = failed(shell, stage)
    lines = shell.ok("run", "graph", id).out.splitlines()
    assert lines[0] == "etl(day)"
    assert lines[1] == "  ✓ extract"
    assert "  ✗ load" in lines[3]
    mermaid = shell.ok("run", "graph", id, "--format", "mermaid").out
    assert "    class s2 failed\n" in mermaid
    dot = shell.ok("run", "graph", id, "--format", "dot").out
    assert '    "load" [fillcolor="#cf222e", fontcolor=white];\n' in dot
    assert dot.endswith("}\n")


def test_a_retry_leaves_kept_items_out_and_the_old_run_names_it(shell: Shell, stage: Stage) -> None:
    def half(x: int) -> int:
        if x == 2 and "broken" in stage.bodies:
            raise Fail("odd")
        return x

    stage.job("half", half)
    steps: list[dict[str, Any]] = [
        {"id": "a", "job": "half", "map": [0, 1, 2], "as": "x"},
        {"id": "s", "job": "echo", "with": {"x": {"$": "a"}}},
        {"id": "t", "job": "echo"},
    ]
    stage.world.register(workflow("halves", steps))
    id = shell.ok("start", "halves").out.strip()
    stage.work()
    plan = "runs 1 of 3 items of a, then s; keeps 2 items, 1 step"
    assert f"rota run retry {id}   {plan}\n" in shell.ok("run", "show", id).out
    first = shell.ok("run", "retry", id)
    assert first.err == f"{plan}\n"
    stage.work()
    new = first.out.strip()
    out = shell.ok("run", "show", new).out
    assert "×3: 2 kept, 1 failed" in out
    assert f"retry of       run {id}" in out
    old = shell.ok("run", "show", id).out
    assert f"retried as     {new} (failed)\n" in old
    assert "next" not in old
    again = shell.ok("run", "retry", id)
    assert again.err == f"the run was retried before, as {new} (failed)\n{plan}\n"
    assert shell.ok("run", "retry", id, "--json").rows["retriedBefore"] == again.out.strip()
    stage.work()


def test_a_step_shows_the_arguments_that_came_from_other_steps(shell: Shell, stage: Stage) -> None:
    stage.bodies["extract"] = lambda day: list(range(2000))
    stage.bodies["transform"] = lambda x: x
    id = failed(shell, stage)
    (load,) = shell.ok("executions", "--run", id, "--step", "load", "--json").rows
    out = shell.ok("show", load["executionId"]).out
    assert re.search(
        r'^arguments:  \{"parts": \[0, 1, 2, .*… \([\d,]+ characters; --json shows all\)$', out, re.MULTILINE
    )
    found = shell.ok("show", load["executionId"], "--json").rows["arguments"]
    assert found == {"parts": list(range(2000))}


def test_a_run_that_timed_out_says_so(shell: Shell, stage: Stage) -> None:
    stage.workflow("slow", {"id": "long", "job": "echo"}, {"id": "e", "job": "echo", "after": ["long"]}, timeout=0.001)
    id = shell.ok("start", "slow").out.strip()
    stage.take(1)
    eventually(lambda: bool(stage.chores()))
    (attempt,) = stage.held
    stage.report((attempt, Cancelled()))
    stage.held.clear()
    stage.work()
    assert "   failed: timeout of 1ms; long was running   " in shell.ok("run", "show", id).out
    assert shell.ok("runs", "--json").rows[0]["failedStep"] is None


def test_signposts_to_the_traceback(shell: Shell, stage: Stage) -> None:
    id = failed(shell, stage)
    screen = shell.screen("run", "show", id, columns=80)[1]
    command = re.search(r"rota show (\S{8})   traceback of load", screen)
    assert command
    assert "Fail: OperationalError" in shell.ok("show", command[1]).out
    message = shell.ok("logs", id).err
    assert message == f"a run writes nothing itself; its steps do: rota executions --run {id}\n"
    assert shell.refused("run", "show", "etl") == (
        "etl is a workflow, not the id of a run: `rota runs --workflow etl` lists its runs"
    )
    stage.workflow("inner", {"id": "one", "job": "load", "with": {"parts": []}})
    stage.workflow("outer", {"id": "m", "workflow": "inner", "map": [{}, {}]}, {"id": "s", "workflow": "inner"})
    outer = shell.ok("start", "outer").out.strip()
    stage.work()
    assert f"rota runs --parent {outer} --status failed   the failed runs of m" in shell.ok("run", "show", outer).out
    listed = shell.screen("runs", "--parent", outer, columns=80)[1]
    assert re.search(r"^…\S{8}  inner  ", listed, re.MULTILINE)  # Without the app, which is the same in all lines.
    assert "m[1]" in listed


def test_a_map_over_a_number_has_no_item(shell: Shell, stage: Stage) -> None:
    typed, render = {"id": "typed", "job": "echo", "with": {"x": 5}}, {"id": "render", "job": "echo"}
    stage.workflow("wrong", typed, {**render, "map": {"$": "typed"}, "as": "x"})
    id = shell.ok("start", "wrong").out.strip()
    stage.work()
    out = shell.ok("run", "show", id).out
    assert "step typed returned a number (5), a map needs a list" in out
    assert "[0]" not in out
    assert re.search(r"✗ render +failed", out)


def test_what_skipped_and_tolerated_steps_say(shell: Shell, stage: Stage) -> None:
    large = {"gt": [{"$": "a"}, 5000]}
    stage.workflow(
        "branch",
        {"id": "a", "job": "echo", "with": {"x": 7730}},
        {"id": "small", "job": "echo", "when": [{"not": large}]},
        {"id": "bad", "job": "load", "with": {"parts": []}, "may_fail": True},
        {"id": "nap", "sleep": "6m"},
    )
    id = shell.ok("start", "branch").out.strip()
    stage.work()
    out = shell.ok("run", "show", id).out
    assert "skipped: a > 5000 holds (7730)" in out
    assert "failed after 1 attempt (tolerated, may_fail)" in out
    assert re.search(r"sleeps 6 m, 5 m[\w ]* left", out)


def test_the_graph_of_a_run_is_cut_to_the_terminal_and_has_upstreams_in_one_order(shell: Shell, stage: Stage) -> None:
    """The stored graph has the arguments of a step in another order than the code."""
    ask = {"id": "ask", "approve": {"text": "really? " * 30, "timeout": "1d"}}
    both = {"id": "z", "job": "load", "with": {"a": {"$": "second"}, "b": {"$": "first"}}, "after": ["ask"]}
    stage.workflow("long", {"id": "first", "job": "echo"}, {"id": "second", "job": "echo"}, ask, both)
    id = shell.ok("start", "long").out.strip()
    stage.work()
    screen = shell.screen("run", "graph", id, columns=80)[1]
    assert max(map(len, screen.splitlines())) <= 80
    assert "← first, second" in screen
    assert "← first, second" in shell.ok("workflows", "show", "long").out


# --- Watching -------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_broken", [True, False])
def test_watch_ends_with_the_run_and_with_its_outcome(shell: Shell, stage: Stage, is_broken: bool) -> None:
    if not is_broken:
        mended(stage)
    id = shell.ok("start", "etl", "day=monday").out.strip()
    stage.take(1)
    process = shell.start("run", "watch", id)
    assert process.stdout is not None
    assert "extract running" in process.stdout.readline()
    stage.finish(*stage.held)
    stage.work()
    out, _ = process.communicate(timeout=HANG_S)
    assert process.returncode == int(is_broken)
    last = out.splitlines()[-1]
    assert ("run failed: load after " if is_broken else "run success after ") in last
    assert ("load failed" in out) == is_broken


def test_watch_with_json_prints_steps_then_the_run(shell: Shell, stage: Stage) -> None:
    id = failed(shell, stage)
    answer = shell("run", "watch", id, "--json")
    assert answer.code == 1
    *steps, last = map(json.loads, answer.out.splitlines())
    assert [one["step"] for one in steps] == [step["id"] for step in STEPS]
    assert (last["runId"], last["status"]) == (id, "failed")


def test_watch_draws_over_its_picture(shell: Shell, stage: Stage) -> None:
    mended(stage)
    id = shell.ok("start", "etl", "day=monday").out.strip()
    stage.take(1)

    def end() -> None:
        stage.finish(*stage.held)
        stage.work()

    code, screen = shell.screen("run", "watch", id, seen=(b"rota run watch", end))
    assert code == 0
    first, *_, last = re.split(r"\x1b\[\d+A\r\x1b\[J", screen)
    assert "▶ extract" in first
    assert "✓ extract" in last
    assert "success" in last


def test_the_picture_is_never_higher_than_the_terminal(shell: Shell, stage: Stage) -> None:
    """It could not be drawn over otherwise."""
    steps = [{"id": f"s{number}", "job": "echo"} for number in range(60)]
    stage.workflow("many", *steps)
    id = shell.ok("start", "many").out.strip()
    stage.take(1)
    shell.env["LINES"] = "20"

    def end() -> None:
        stage.finish(*stage.held)
        stage.work()

    _, screen = shell.screen("run", "watch", id, seen=(b"rota run watch", end))
    first, *_, last = re.split(r"\x1b\[\d+A\r\x1b\[J", screen)
    assert len(first.splitlines()) < 20
    assert "▶ s" in first
    assert re.search(r"… and \d+ steps more", first)
    assert len(last.splitlines()) > 60  # The last picture is not drawn over.


# --- Steering -------------------------------------------------------------------------------------


def test_retry_keeps_what_succeeded(shell: Shell, stage: Stage) -> None:
    id = failed(shell, stage)
    mended(stage)
    answer = shell.ok("run", "retry", id[-8:])
    new = answer.out.strip()
    assert answer.err == "runs load, then page; keeps 3 steps\n"
    stage.work()
    rows = shell.ok("run", "show", new, "--json").rows
    assert (rows["status"], rows["replayOf"], rows["result"]) == ("success", id, sum(range(10)) - 7)
    assert [one["step"] for one in rows["steps"] if one["isKept"]] == ["extract", "transform", LONG]
    assert stage.count("extract") == 1


def test_retry_from_a_step_with_other_arguments(shell: Shell, stage: Stage) -> None:
    id = failed(shell, stage)
    mended(stage)
    answer = shell.ok("run", "retry", id, "--from", "load", "--args", '{"parts": [1, 2]}', "--json").rows
    assert (answer["replayOf"], answer["again"]) == (id, ["load", "page"])
    stage.work()
    assert shell.ok("run", "show", answer["runId"], "--json").rows["result"] == 3
    again = shell.ok("run", "retry", id, "--from", "start", "--args", '{"day": "friday"}', "--latest").out.strip()
    stage.work()
    assert stage.started[-1] != ("extract", {"day": "monday"})
    assert shell.ok("run", "show", again, "--json").rows["arguments"] == {"day": "friday"}


def test_retries_that_are_refused(shell: Shell, stage: Stage) -> None:
    id = failed(shell, stage)
    assert "its steps are extract, transform, load" in shell.refused("run", "retry", id, "--from", "laod")
    assert "say whose arguments they are" in shell.refused("run", "retry", id, "--args", "{}")
    assert "missing argument 'day'" in shell.refused("run", "retry", id, "--from", "start", "--args", "{}")
    opened = shell.ok("start", "etl", "day=monday").out.strip()
    stage.take(1)
    assert "wait for its end, or cancel it first" in shell.refused("run", "retry", opened, code=1)
    plain = shell.ok("enqueue", "echo").out.strip()
    for words in (["show"], ["pause"], ["resume"], ["cancel"], ["watch"], ["graph"], ["retry"]):
        assert "which is not a workflow" in shell.refused("run", *words, plain)
    stage.work()


def test_replay_of_a_run_retries_it_and_of_a_step_is_refused(shell: Shell, stage: Stage) -> None:
    id = failed(shell, stage)
    (load,) = shell.ok("executions", "--run", id, "--step", "load", "--json").rows
    assert f"`rota run retry {id} --from load`" in shell.refused("replay", load["executionId"])
    mended(stage)
    new = shell.ok("replay", id).out.strip()
    stage.work()
    assert shell.ok("run", "show", new, "--json").rows["status"] == "success"
    assert stage.count("extract") == 1


def test_a_dead_run_is_replayed_as_a_retry(shell: Shell, stage: Stage) -> None:
    id = failed(shell, stage)
    assert [row["executionId"] for row in shell.ok("dead", "--json").rows] == [id]
    mended(stage)
    new = shell.ok("dead", "replay", id).out.strip()
    stage.work()
    assert statuses(shell, new)["page"] == "success"
    assert stage.count("extract") == 1
    assert shell.ok("dead", "--json").rows == []


def test_cancel(shell: Shell, stage: Stage) -> None:
    id = shell.ok("start", "etl", "day=monday").out.strip()
    stage.take(1)
    answer = shell.ok("run", "cancel", id)
    assert (answer.out, answer.err) == ("", f"{id} is stopping\n")
    assert shell.ok("runs", "--status", "stopping", "--json").rows[0]["stopping"] == "cancelled"
    stage.chores()
    stage.finish(*stage.held)
    stage.work()
    assert shell.ok("runs", "--status", "cancelled", "--json").rows[0]["runId"] == id
    answer = shell("run", "cancel", failed(shell, stage))
    assert (answer.code, "had already ended: failed" in answer.err) == (1, True)


def test_an_empty_id_is_refused_even_if_there_is_only_one_run(shell: Shell, stage: Stage) -> None:
    id = stage.start("etl", {"day": "monday"})
    assert "an id cannot be empty" in shell.refused("run", "cancel", "")
    assert stage.world.status(id) == "queued"


def test_pause_and_resume(shell: Shell, stage: Stage) -> None:
    id = shell.ok("start", "etl", "day=monday").out.strip()
    stage.take(1)
    assert shell.ok("run", "pause", id, "--note", "lunch").err == f"run {id} is paused\n"
    assert shell.ok("run", "pause", id).err == f"run {id} was paused already\n"
    stage.finish(*stage.held)
    stage.work()
    assert statuses(shell, id)["load"] == "pending"
    out = shell.ok("run", "show", id).out
    assert "lunch" in out
    assert f"next           rota run resume {id}" in out
    assert [row["paused"]["note"] for row in shell.ok("runs", "--status", "paused", "--json").rows] == ["lunch"]
    assert shell.ok("run", "resume", id).err == f"run {id} resumed\n"
    assert shell.ok("run", "resume", id).err == f"run {id} was not paused\n"
    stage.work()
    assert statuses(shell, id)["load"] == "failed"
    assert "has ended already (failed)" in shell.refused("run", "pause", id, code=1)


# --- Workflows ------------------------------------------------------------------------------------


def test_workflows_and_their_versions(shell: Shell, stage: Stage) -> None:
    (row,) = shell.ok("workflows", "--json").rows
    assert (row["name"], row["version"], row["stepCount"], row["lastRun"]) == ("etl", 1, 5, None)
    assert "etl(day: str)" in shell.ok("workflows").out
    shown = shell.ok("workflows", "show", "etl")
    assert "  transform ×" in shown.out
    assert shown.err.startswith("version 1, in force, first seen ")
    exported = shell.ok("workflows", "export", "shop.etl").rows
    assert (exported["rota"], exported["name"], len(exported["steps"])) == ("workflow/1", "etl", 5)
    assert shell.refused("workflows", "diff", "etl").startswith("workflow etl has no version before 1")
    stage.workflow("etl", *STEPS[:-1], {**STEPS[-1], "may_fail": True}, timeout=60, result={"$": "load"}, **PARAMETERS)
    answer = shell.ok("workflows", "diff", "etl", "1", "2")
    assert answer.out == "+ timeout: 60.0\n+ page.may_fail: true\n"
    assert answer.err == "etl: 2 changes from version 1 to 2\n"
    differences = shell.ok("workflows", "diff", "etl", "--json").rows
    assert [one["path"] for one in differences] == ["/timeout", "/steps/page/may_fail"]
    version = shell.ok("workflows", "show", "etl", "--version", "1", "--json").rows
    assert (version["version"], version["isCurrent"], version["definition"]) == (1, False, exported)
    assert "timeout" not in shell.ok("workflows", "export", "etl", "--version", "1").rows
    assert shell.refused("workflows", "show", "nope") == "there is no workflow 'nope'; `rota workflows` lists them"


# --- Approvals ------------------------------------------------------------------------------------


def asked(shell: Shell, stage: Stage) -> str:
    """A run with two approvals that are open."""
    steps = [
        {"id": name, "approve": {"text": f"{name}?", "who": ["ops"], "timeout": "2d", "required": True}}
        for name in ("one", "other")
    ]
    stage.world.register(workflow("asking", [*steps, {"id": "e", "job": "echo", "after": ["one", "other"]}]))
    id = shell.ok("start", "asking").out.strip()
    stage.work()
    return id


def test_answers(shell: Shell, stage: Stage) -> None:
    id = asked(shell, stage)
    assert "one?; other?" in shell.ok("runs").out
    several = shell.refused("run", "approve", id)
    assert "waits for 2 answers, so name the step: one (one?), other (other?)" in several
    assert f"step one of run {id} is approved" in shell.ok("run", "approve", id, "one", "--note", "go").err
    late = shell.refused("run", "reject", id, "one", code=1)
    assert re.search(r"step one was approved by \S+ at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ \(go\)$", late)
    answer = shell.ok("run", "reject", id, "--note", "no", "--json").rows
    assert (answer["step"], answer["approved"], answer["note"]) == ("other", False, "no")
    stage.work()
    assert statuses(shell, id) == {"one": "success", "other": "failed", "e": "blocked"}
    picture = shell.ok("run", "show", id).out
    assert re.search(r"✓ one +approved by \S+: go", picture)
    assert re.search(r"✗ other +rejected by \S+: no", picture)


def test_show_says_how_to_answer(shell: Shell, stage: Stage) -> None:
    id = asked(shell, stage)
    picture = shell.ok("run", "show", id).out
    assert "waits for an answer of ops: one?" in picture
    commands = [f"rota run {verb} {id} {step}" for step in ("one", "other") for verb in ("approve", "reject")]
    assert "next           " + f"\n{' ' * 15}".join(commands) in picture
    (step, *_) = shell.ok("run", "show", id, "--json").rows["steps"]
    shown = shell.ok("show", step["executionId"]).out
    assert re.search(r"^for: +an answer of ops: one\?$", shown, re.MULTILINE)
    assert re.search(r"^until: .*then reject$", shown, re.MULTILINE)
    assert re.search(rf"^to end it: +rota run approve {id} one$", shown, re.MULTILINE)


def test_runs_with_an_open_approval_and_their_questions(shell: Shell, stage: Stage) -> None:
    id = asked(shell, stage)
    failed(shell, stage)
    (row,) = shell.ok("runs", "--status", "unanswered", "--json").rows
    assert (row["runId"], row["questions"]) == (id, ["one?", "other?"])
    stage.workflow("above", {"id": "below", "workflow": "asking"})
    above = shell.ok("start", "above").out.strip()
    stage.work()
    rows = shell.ok("runs", "--status", "unanswered", "--json").rows
    assert [row["parentRunId"] for row in rows] == [above, None]
    screen = shell.screen("run", "show", id, columns=80)[1]
    words = " ".join(screen.split())
    assert re.search(r"waits for an answer of ops: one\?, since [^,]+, for 1 d 23 h at most, then reject", words)
    assert f"rota run reject {id[-8:]} other" in screen


def test_undos_are_shown_and_repeated(shell: Shell, stage: Stage) -> None:
    def undo(x: Any) -> None:
        if "broken" in stage.bodies:
            raise Fail(f"cannot undo {x}")

    stage.job("undo", undo, parameters={"x": {"first": True, "required": True, "type": "int"}})
    steps = {"id": "a", "job": "echo", "with": {"x": 5}, "undo": "undo"}, {"id": "b", "job": "load", "after": ["a"]}
    stage.world.register(workflow("saga", [steps[0], {**steps[1], "with": {"parts": []}}]))
    id = shell.ok("start", "saga").out.strip()
    while not stage.executions("undo"):
        stage.finish(*stage.take(jobs=["saga", "echo", "load"]))
    assert "running, undoing" in shell.ok("run", "show", id).out
    assert id in shell.ok("runs", "--status", "undoing").out
    refused = shell("run", "cancel", id)
    assert refused.code != 0
    assert f"run {id} is undoing, which cannot be cancelled" in refused.err
    stage.work()
    shown = shell.ok("run", "show", id).out
    assert "failed: b, and an undo failed" in shown
    assert re.search(r"undo\n +✗ a .*Fail: cannot undo 5", shown)
    assert f"rota run retry {id}   repeats the undo of a" in shown
    execution = str(stage.executions("undo")[0]["id"])
    assert f"step a of run {id} (saga)" in shell.ok("show", execution).out
    mended(stage)
    answer = shell.ok("run", "retry", id)
    assert answer.err.strip().endswith("repeats the undo of a; keeps 2 steps")
    stage.work()
    assert re.search(r"undo\n +✓ a", shell.ok("run", "show", answer.out.strip()).out)
