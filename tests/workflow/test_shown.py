"""What users see of runs: the shapes behind `rota run show`, `rota runs` and `rota workflows`, on both databases."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import pytest

from rota.domain.errors import UnknownExecution, UsageError
from rota.domain.instant import moment
from rota.domain.status import Status
from rota.ops import control
from rota.store import run_reader, workflow_reader
from rota.store.port import View
from rota.store.reader import Filter
from rota.store.run_reader import RunFilter
from rota.views import execution, lookup, map_items, queue, run, step, why, workflow_detail
from rota.views.run import PartialMap, RunDetail
from rota.views.shape import to_json
from rota.views.step import StepInfo
from tests.support.proving import proof
from tests.support.world import APP, NAMESPACE
from tests.workflow.stage import Fail, Stage

pytestmark = pytest.mark.parametrize("store", ["sqlite", proof("postgres")], indirect=True)

T = TypeVar("T")
FILES = {"files": list(range(10)), "pages": 3}


@pytest.fixture
def etl(stage: Stage) -> Stage:
    """extract → check, transform ×10 → load → page; `big` is skipped, and `load` fails while `stage.bad` is set."""
    stage.bad = {"load"}  # type: ignore[attr-defined]

    def load(**_: Any) -> str:
        if "load" in stage.bad:  # type: ignore[attr-defined]
            raise Fail("server closed the connection")
        return "loaded"

    def transform(x: int) -> int:
        if x in (3, 4) and "transform" in stage.bad:  # type: ignore[attr-defined]
            raise Fail(f"bad item {x}")
        return x

    stage.job("extract", lambda **_: FILES)
    stage.job("transform", transform)
    stage.job("load", load, attempts=2)
    stage.workflow(
        "etl",
        {"id": "extract", "job": "extract"},
        {"id": "check", "job": "echo", "with": {"x": {"$": "extract.pages"}}},
        {"id": "transform", "job": "transform", "map": {"$": "extract.files"}, "as": "x", "at_once": 4, "tolerate": 1},
        {"id": "load", "job": "load", "with": {"x": {"$": "transform"}}},
        {"id": "page", "job": "echo", "with": {"x": {"$": "load"}}},
        {"id": "big", "job": "echo", "when": [{"gt": [{"$": "extract.pages"}, 500]}]},
        {"id": "after_big", "job": "echo", "after": ["big"]},
        result={"$": "load"},
    )
    return stage


def read(stage: Stage, query: Callable[..., T], *arguments: Any) -> T:
    return stage.store.read(query, NAMESPACE, *arguments)


def shown(stage: Stage, id: str) -> tuple[RunDetail, dict[str, StepInfo]]:
    found = read(stage, run.run, id)
    to_json(found)  # It can be printed.
    return found, {one.step: one for one in found.steps}


def failed_run(etl: Stage) -> str:
    id = etl.start("etl")
    etl.work()
    etl.advance(1)
    assert etl.world.status(id) is Status.FAILED
    return id


def test_a_failed_run(etl: Stage) -> None:
    found, steps = shown(etl, failed_run(etl))
    assert (found.status, found.reason, found.failed_step) == (Status.FAILED, "step_failed", "load")
    assert (found.step_count, found.ended_count, found.version) == (7, 7, 1)
    assert [one.step for one in found.steps] == ["extract", "check", "transform", "load", "page", "big", "after_big"]
    expected = ["success", "success", "success", "failed", "blocked", "skipped", "skipped"]
    assert [one.status for one in found.steps] == expected
    assert (steps["load"].reason, steps["load"].attempt_count) == ("retries_exhausted", 2)
    assert steps["load"].error_message == "Fail: server closed the connection"
    assert steps["load"].duration == timedelta(seconds=1)
    assert (steps["page"].reason, steps["page"].because) == ("upstream_failed", "load failed")
    assert (steps["big"].reason, steps["big"].because) == ("condition", "extract.pages > 500 is false (3)")
    assert (steps["after_big"].reason, steps["after_big"].because) == ("upstream_skipped", "big was skipped")
    assert steps["transform"].upstream == ["extract"]
    assert steps["transform"].downstream == ["load"]
    about = steps["transform"].map
    assert about is not None
    assert (about.width, about.success, about.open, about.at_once, about.tolerated) == (10, 10, 0, 4, 1)
    assert found.retry is not None
    assert found.retry.again == ["load", "page"]
    assert (found.retry.partial, found.retry.kept_step_count) == ([], 5)
    assert found.critical_path is not None
    assert found.critical_path.steps[0] == "extract"
    assert found.critical_path.steps[-1] == "load"
    assert found.critical_path.steps[1].startswith("transform[")
    assert found.critical_path.duration == found.duration == timedelta(seconds=1)


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ({"in": [3, {"$": "a.list"}]}, "3 in a.list is false"),
        ({"in": [None, {"$": "a.list"}]}, "null in a.list is false"),
        ({"not": {"in": [1, {"$": "a.list"}]}}, "1 in a.list holds"),
        ({"eq": [5, {"$": "a.n"}]}, "5 = a.n is false"),
        ({"eq": ["$", {"$": "a.n"}]}, '"$" = a.n is false'),
        ({"eq": [{"$": "a.n"}, 5]}, "a.n = 5 is false (7)"),
    ],
)
def test_why_a_step_was_skipped(stage: Stage, condition: dict[str, Any], words: str) -> None:
    """The value is shown if it is on the left side. A constant is part of the condition's words."""
    stage.job("a", lambda **_: {"list": [1, 2], "n": 7})
    stage.workflow("main", {"id": "a", "job": "a"}, {"id": "b", "job": "echo", "when": [condition]})
    id = stage.start("main")
    stage.work()
    _, steps = shown(stage, id)
    assert (steps["b"].reason, steps["b"].because) == ("condition", words)


def test_a_retry_shows_what_it_kept(etl: Stage) -> None:
    old = failed_run(etl)
    etl.bad.clear()  # type: ignore[attr-defined]
    new = etl.retry(old)
    etl.work()
    found, steps = shown(etl, new)
    assert (found.status, found.result, found.replay_of) == (Status.SUCCESS, "loaded", old)
    kept = {name for name, one in steps.items() if one.is_kept}
    assert kept == {"extract", "check", "transform", "big", "after_big"}
    assert steps["transform"].map is not None
    assert steps["transform"].map.success == 10
    assert found.critical_path is not None
    assert found.critical_path.steps == ["load", "page"]
    assert found.retry is None


def test_a_map_with_too_many_failures_names_the_first_of_them(etl: Stage) -> None:
    etl.bad.add("transform")  # type: ignore[attr-defined]
    id = etl.start("etl")
    etl.work()
    found, steps = shown(etl, id)
    about = steps["transform"].map
    assert about is not None
    assert (found.failed_step, steps["transform"].status, about.failed) == ("transform", "failed", 2)
    assert [(one.index, one.error_message) for one in about.bad_items[:2]] == [
        (3, "Fail: bad item 3"),
        (4, "Fail: bad item 4"),
    ]
    assert steps["transform"].error_message == "Fail: bad item 3"
    assert (steps["transform"].reason, steps["transform"].because) == ("error", "2 of 10 items failed (tolerates 1)")
    assert found.error_message == "StepFailed: step transform failed: item 3: Fail: bad item 3"
    assert found.retry is not None
    assert found.retry.again == ["transform", "load", "page"]
    assert found.retry.partial == [PartialMap("transform", 10 - about.success, 10)]
    assert found.retry.kept_step_count == 4  # extract and check; big and after_big, which were skipped.


def test_a_retried_map_has_the_times_of_its_own_items(etl: Stage) -> None:
    etl.bad.add("transform")  # type: ignore[attr-defined]
    old = etl.start("etl")
    etl.work()
    success = etl.statuses("transform")["success"]
    etl.advance(60)
    new = etl.retry(old)
    begun_at = moment(etl.world.clock.now())
    held = etl.take()
    etl.world.clock.advance(2)
    _, steps = shown(etl, new)
    assert (steps["transform"].started_at, steps["transform"].duration) == (begun_at, timedelta(seconds=2))
    assert steps["transform"].map is not None
    assert (steps["transform"].map.kept, steps["transform"].map.last_index) == (success, None)
    etl.finish(*held)
    etl.work()
    found, steps = shown(etl, new)
    about = steps["transform"].map
    assert about is not None
    assert (about.kept, about.width) == (success, 10)
    assert steps["transform"].started_at == begun_at
    assert found.critical_path is not None
    assert found.duration is not None
    assert found.critical_path.duration <= found.duration
    assert shown(etl, old)[0].retried_as == new


def test_arguments_of_steps_have_the_values_of_other_steps(etl: Stage) -> None:
    etl.workflow("leaf", {"id": "one", "job": "load", "with": {"x": {"$": "input.x"}, "id": {"$": "run.workflow"}}})
    etl.workflow(
        "tree",
        {"id": "a", "job": "echo", "with": {"x": [1, 2]}},
        {"id": "sub", "workflow": "leaf", "with": {"x": {"$": "a[1]"}}},
    )
    id = etl.start("tree")
    etl.work()
    etl.advance(1)
    _, steps = shown(etl, id)
    below = steps["sub"].execution_id
    assert below is not None
    leaf, inner = shown(etl, below)
    assert leaf.arguments == {"x": 2}
    one = inner["one"].execution_id
    assert read(etl, execution.execution, one).arguments == {"x": 2, "id": "leaf"}
    gone = steps["a"].execution_id
    etl.store.transact(lambda tx: tx.run("drop_history", ids=[gone], lowest=gone, highest=gone))
    assert read(etl, execution.execution, below).arguments == {"x": {"$": "a[1]"}}


def test_the_items_of_a_map_are_read_once(etl: Stage) -> None:
    """A map may have 100,000 items, so each statement over all of them counts."""
    etl.bad.add("transform")  # type: ignore[attr-defined]
    id = etl.start("etl")
    etl.work()
    statements: list[str] = []

    class Counted:
        def __init__(self, view: View) -> None:
            self._view = view

        def __getattr__(self, name: str) -> Any:
            found = getattr(self._view, name)
            if name not in ("rows", "records", "one"):
                return found

            def counted(statement: str, *args: Any, **more: Any) -> Any:
                statements.append(statement)
                return found(statement, *args, **more)

            return counted

    etl.store.read(lambda view: run.run(Counted(view), NAMESPACE, id))
    assert [one for one in statements if "items" in one] == ["ends_of_items", "bad_items"]


def test_an_open_run_says_what_it_waits_for(etl: Stage) -> None:
    id = etl.start("etl")
    etl.take(1)  # The run opens, and extract starts.
    _, steps = shown(etl, id)
    assert steps["extract"].status == "running"
    assert steps["load"].status == "pending"
    assert steps["load"].waits_for == ["transform"]
    etl.finish(*etl.held)
    etl.finish(*etl.take(3))
    found, steps = shown(etl, id)
    about = steps["transform"].map
    assert about is not None
    assert (found.status, steps["transform"].status) == (Status.RUNNING, "running")
    assert about.open + about.success == 10
    explained = read(etl, why.why, id)
    assert explained is not None
    assert explained.text.startswith(f"waits for transform ({about.success} of 10 items have ended)")
    assert (found.critical_path, found.retry) == (None, None)
    etl.work()
    etl.advance(1)
    assert read(etl, why.why, id) is None


def test_a_paused_run_and_its_steps_say_so(etl: Stage) -> None:
    id = etl.start("etl")
    etl.take(1)
    etl.pause(id)
    etl.finish(*etl.held)
    found, _ = shown(etl, id)
    assert found.paused is not None
    assert found.paused.note == "why not"
    assert found.why is not None
    assert "is paused by test (why not): `rota run resume" in found.why.text
    (waiting, *_) = read(etl, execution.executions, Filter(run=id, limit=1)).items
    if waiting.status is not Status.SUCCESS:
        explained = read(etl, why.why, waiting.execution_id)
        assert explained is not None
        assert explained.text.startswith("the run is paused")
    assert [one.run_id for one in read(etl, run.runs, RunFilter(status="paused")).items] == [id]
    etl.resume(id)
    etl.work()


def test_a_cancelled_run(etl: Stage) -> None:
    id = etl.start("etl")
    etl.take(1)
    etl.cancel(id)
    assert [one.run_id for one in read(etl, run.runs, RunFilter(status="stopping")).items] == [id]
    etl.chores()
    etl.finish(*etl.held)
    etl.work()
    found, steps = shown(etl, id)
    assert (found.status, found.stopping) == (Status.CANCELLED, None)
    assert (steps["load"].status, steps["load"].reason, steps["load"].because) == (
        *("cancelled", "run_stopped"),
        "the run stopped",
    )


def test_sub_runs(etl: Stage) -> None:
    etl.bad.clear()  # type: ignore[attr-defined]
    etl.workflow("leaf", {"id": "one", "job": "echo", "with": {"x": {"$": "input.x"}}}, result={"$": "one"})
    etl.workflow(
        "tree",
        {"id": "many", "workflow": "leaf", "map": [1, 2, 3], "as": "x"},
        {"id": "single", "workflow": "leaf", "with": {"x": 4}},
    )
    id = etl.start("tree")
    etl.work()
    _, steps = shown(etl, id)
    assert steps["many"].map is not None
    assert steps["many"].map.success == 3
    assert steps["single"].sub_run is not None
    assert (steps["single"].sub_run.ended_count, steps["single"].sub_run.step_count) == (1, 1)
    below = read(etl, run.runs, RunFilter(parent=id)).items
    assert sorted((one.parent_step, one.parent_index) for one in below) == [
        *(("many", 0), ("many", 1), ("many", 2)),
        ("single", None),
    ]
    assert {one.parent_run_id for one in below} == {id}
    assert [one.run_id for one in read(etl, run.runs, RunFilter()).items] == [id]
    assert len(read(etl, run.runs, RunFilter(workflow="leaf")).items) == 4
    assert read(etl, run.runs, RunFilter(parent=id, status="failed")).items == []
    leaf, _ = shown(etl, below[0].run_id)
    assert leaf.retry is None


def test_lists_of_runs(etl: Stage) -> None:
    failed = failed_run(etl)
    etl.bad.clear()  # type: ignore[attr-defined]
    good = etl.start("etl")
    etl.work()
    opened = etl.start("etl")
    etl.take(1)
    later = etl.start("etl", delay_s=60)

    def listed(**wanted: Any) -> list[str]:
        return [one.run_id for one in read(etl, run.runs, RunFilter(**wanted)).items]

    assert listed() == [later, opened, good, failed]
    assert listed(workflow="etl", app=APP) == [later, opened, good, failed]
    assert listed(app="other") == []
    expected = {"failed": [failed], "success": [good], "running": [opened], "scheduled": [later], "queued": []}
    assert {status: listed(status=status) for status in expected} == expected
    assert listed(limit=2) == [later, opened]
    assert listed(before=opened) == [good, failed]
    assert read(etl, run.runs, RunFilter(limit=4)).has_more is False
    summary = next(one for one in read(etl, run.runs, RunFilter()).items if one.run_id == later)
    assert (summary.ended_count, summary.step_count, summary.started_at) == (0, 7, None)
    etl.work()


def test_steps_are_lines_of_the_list_of_executions(etl: Stage) -> None:
    id = failed_run(etl)
    listed = read(etl, execution.executions, Filter()).items
    assert len(listed) == 1 + 13
    assert [one.execution_id for one in listed if one.run_id is None] == [id]
    of_run = read(etl, execution.executions, Filter(run=id)).items
    assert sorted((one.step, one.index) for one in of_run if one.step != "transform") == [
        *(("check", None), ("extract", None)),
        ("load", None),
    ]
    assert sorted(one.index or 0 for one in of_run if one.step == "transform") == list(range(10))
    assert {one.run_id for one in of_run} == {id}
    number = read(etl, step.step_number, id, "load")
    (load,) = read(etl, execution.executions, Filter(run=id, step=number, status=Status.FAILED)).items
    assert load.step == "load"
    assert read(etl, execution.executions, Filter(run=id, step=number, status=Status.SUCCESS)).items == []
    assert [one.step for one in read(etl, execution.executions, Filter(job="load")).items] == ["load"]
    failed = read(etl, execution.executions, Filter(status=Status.FAILED)).items
    assert {one.job for one in failed} == {"etl", "load"}
    with pytest.raises(UsageError, match="has no step 'nope': its steps are extract, check"):
        read(etl, step.step_number, id, "nope")


def test_an_open_run_is_listed_as_running(etl: Stage) -> None:
    id = etl.start("etl")
    etl.take(1)
    running = read(etl, execution.executions, Filter(status=Status.RUNNING)).items
    assert [one.job for one in running] == ["extract", "etl"]
    assert running[1].execution_id == id
    assert read(etl, execution.executions, Filter(status=Status.WAITING)).items == []
    (counts,) = read(etl, queue.queues)
    assert (counts.running, counts.waiting, counts.queued) == (2, 0, 0)
    etl.work()


def test_a_step_names_its_run_and_its_neighbours(etl: Stage) -> None:
    id = failed_run(etl)
    number = read(etl, step.step_number, id, "load")
    (load,) = read(etl, execution.executions, Filter(run=id, step=number)).items
    place = read(etl, execution.execution, load.execution_id).step_of
    assert place is not None
    assert (place.run_id, place.workflow, place.step, place.index) == (id, "etl", "load", None)
    assert [(one.step, one.status) for one in place.upstream] == [("transform", "success")]
    assert [(one.step, one.status) for one in place.downstream] == [("page", "blocked")]
    with pytest.raises(UsageError, match=f"step load of run {id}.*`rota run retry {id} --from load`"):
        etl.store.transact(control.repeat, NAMESPACE, load.execution_id, etl.world.ids.new(), "test")


def test_replay_repeats_a_run_without_a_failed_step_as_a_whole(etl: Stage) -> None:
    etl.bad.clear()  # type: ignore[attr-defined]
    id = etl.start("etl")
    etl.work()
    again = etl.store.transact(control.repeat, NAMESPACE, id, etl.world.ids.new(), "test")
    etl.work()
    _, steps = shown(etl, again)
    assert not any(one.is_kept for one in steps.values())
    assert etl.count("extract") == 2


def test_an_execution_that_is_no_run_is_refused(etl: Stage) -> None:
    id = etl.start("echo", {"x": 1})
    with pytest.raises(UsageError, match="job echo, which is not a workflow: `rota show"):
        read(etl, run.run, id)
    with pytest.raises(UnknownExecution):
        read(etl, run.run, etl.world.ids.new())


def test_an_id_that_fits_a_run_and_its_steps_is_the_run(etl: Stage) -> None:
    id = failed_run(etl)
    part = id[:8]
    with pytest.raises(UsageError, match="may be any of"):
        read(etl, lookup.execution_id, part)
    assert read(etl, lookup.run_id, part) == id
    with pytest.raises(UnknownExecution):
        read(etl, lookup.run_id, "ffffffff")


def workflows(stage: Stage) -> list[workflow_detail.Workflow]:
    return read(stage, workflow_detail.workflows, read(stage, workflow_reader.workflows))


def test_workflows_and_their_versions(etl: Stage) -> None:
    (one,) = workflows(etl)
    assert (one.name, one.version, one.step_count, one.open_count, one.last_run) == ("etl", 1, 7, 0, None)
    id = etl.start("etl")
    etl.take(1)
    etl.workflow("etl", {"id": "extract", "job": "extract"}, {"id": "new", "job": "echo", "after": ["extract"]})
    (one,) = workflows(etl)
    assert (one.version, one.step_count, one.open_count) == (2, 2, 1)
    assert one.last_run is not None
    assert (one.last_run.run_id, one.last_run.status) == (id, Status.RUNNING)
    row, chosen = read(etl, workflow_detail.chosen, "etl", None, 1)
    first = workflow_detail.version(row, chosen)
    assert (first.is_current, first.definition["steps"][0]["id"]) == (False, "extract")
    assert len(workflow_detail.graph_of(chosen).steps) == 7
    second = workflow_detail.version(*read(etl, workflow_detail.chosen, "etl", None, None))
    assert (second.version, second.is_current) == (2, True)
    row, before, after = read(etl, workflow_detail.chosen_two, "etl", None, None, None)
    assert (before.number, after.number) == (1, 2)
    (change,) = [one for one in workflow_detail.changes(before, after) if one.path == "/steps/new"]
    assert (change.before, change.after["id"]) == (None, "new")
    assert len(shown(etl, id)[0].steps) == 7  # The run keeps its graph.
    with pytest.raises(UsageError, match="has no version 9: it has 2, 1"):
        read(etl, workflow_detail.chosen, "etl", None, 9)
    etl.work()


class Counting:
    """A view that knows how many rows its longest answer had."""

    def __init__(self, view: View) -> None:
        self._view, self.most = view, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)

    def rows(self, name: str, /, **params: Any) -> list[Any]:
        return self._counted(self._view.rows(name, **params))

    def records(self, name: str, kind: type[T], /, **params: Any) -> list[T]:
        return self._counted(self._view.records(name, kind, **params))

    def _counted(self, found: list[Any]) -> list[Any]:
        self.most = max(self.most, len(found))
        return found


def test_a_wide_map_is_counted_and_not_read(etl: Stage) -> None:
    width = 700
    etl.bodies["extract"] = lambda **_: {"files": [0] * width, "pages": 3}
    id = etl.start("etl")

    def counted(view: View) -> tuple[map_items.MapInfo | None, int]:
        counting: Any = Counting(view)
        return run.run(counting, NAMESPACE, id).steps[2].map, counting.most

    etl.take(1)
    etl.finish(*etl.held)
    etl.finish(*etl.take(4))
    about, rows = etl.store.read(counted)
    assert about is not None
    assert about.width == width
    assert 0 < rows < 50
    etl.work()
    etl.advance(1)
    about, rows = etl.store.read(counted)
    assert about is not None
    assert about.success == width
    assert 0 < rows < 50


def test_running_items_of_a_map(etl: Stage) -> None:
    id = etl.start("etl")
    etl.take(1)
    etl.finish(*etl.held)
    taken = [one for one in etl.take(10) if one.job == "transform"]
    assert etl.store.read(run_reader.running_items, id)[2] == len(taken) == 4
    etl.work()


# --- Undos ----------------------------------------------------------------------------------------


@pytest.fixture
def saga(stage: Stage) -> Stage:
    """flight → hotel ×3 → charge, which fails; the undo of the second hotel fails too."""

    def refuse(x: Any = None) -> None:
        if x in (None, 2):
            raise Fail(f"cannot undo {x}")

    stage.job("charge", refuse)
    stage.job("undo", refuse, parameters={"x": {"first": True}})
    stage.workflow(
        "saga",
        {"id": "flight", "job": "echo", "with": {"x": 7}, "undo": "undo"},
        {"id": "hotel", "job": "echo", "map": [1, 2, 3], "as": "x", "after": ["flight"], "undo": "undo"},
        {"id": "plain", "job": "echo", "after": ["hotel"]},
        {"id": "charge", "job": "charge", "after": ["plain"]},
    )
    return stage


def test_a_run_that_is_undoing_says_so(saga: Stage) -> None:
    id = saga.start("saga")
    while not [one for one in saga.take() if one.job == "undo"]:
        saga.finish(*saga.held)
    found = read(saga, run.run, id)
    assert (found.status, found.is_undoing) == ("running", True)
    assert found.why is not None
    assert found.why.text == f"the run is undoing: it waits for run {found.undo_run_id}"
    assert [(one.step, one.status) for one in found.undos] == [("flight", "pending"), ("hotel", "running")]
    assert found.undos[0].waits_for == ["hotel"]
    listed = read(saga, run.runs, RunFilter(status="undoing")).items
    assert [one.run_id for one in listed] == [id]


def test_a_run_that_was_undone_shows_the_undos_and_what_a_retry_does(saga: Stage) -> None:
    id = saga.start("saga")
    saga.work()
    found = read(saga, run.run, id)
    assert (found.status, found.reason, found.is_undoing) == ("failed", "undo_failed", False)
    assert [(one.step, one.status, one.error_message) for one in found.undos] == [
        ("flight", "success", None),
        ("hotel", "failed", "Fail: cannot undo 2"),
    ]
    counts = found.undos[1].map
    assert counts is not None
    assert (counts.success, counts.failed, [bad.index for bad in counts.bad_items]) == (2, 1, [1])
    assert found.retry is not None
    assert (found.retry.again, found.retry.undos) == ([], ["hotel"])
    undo = read(saga, run.run, found.undo_run_id or "")
    assert (undo.undo_of, undo.parent_run_id, undo.parent_step) == (id, id, None)
    assert [(one.step, one.status, one.because) for one in undo.steps if one.status == "skipped"] == [
        ("plain", "skipped", "nothing to undo"),
        ("charge", "skipped", "nothing to undo"),
    ]


def test_an_undo_names_the_step_that_it_undoes(saga: Stage) -> None:
    id = saga.start("saga")
    saga.work()
    detail = read(saga, run.run, id)
    hotel, whole = detail.undos[1], detail.undo_run_id or ""
    assert hotel.map is not None
    place = read(saga, execution.execution, hotel.map.bad_items[0].execution_id).step_of
    assert place is not None
    assert (place.undoes, place.step, place.index) == (id, "hotel", 1)
    above = read(saga, execution.execution, whole).step_of
    assert above is not None
    assert (above.undoes, above.step) == (id, None)
