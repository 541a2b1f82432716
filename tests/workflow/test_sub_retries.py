"""Retries of runs whose sub-runs failed: the new sub-runs keep what succeeded in the old ones."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from rota.views import run as run_view
from tests.support.proving import proof
from tests.support.tables import table
from tests.support.world import NAMESPACE
from tests.workflow.stage import Fail, Stage

pytestmark = pytest.mark.parametrize("store", ["sqlite", proof("postgres")], indirect=True)


def ref(path: str) -> dict[str, str]:
    return {"$": path}


class Encoder:
    """A job that fails for some videos, which the test changes."""

    def __init__(self) -> None:
        self.broken: set[Any] = set()

    def __call__(self, x: Any) -> Any:
        if x in self.broken:
            raise Fail(f"{x} is broken")
        return f"{x}!"


DOWNLOAD = {"id": "download", "job": "download", "with": {"x": ref("input.x")}}
ENCODE = {"id": "encode", "job": "encode", "with": {"x": ref("download")}}
TAKES_X: dict[str, Any] = {"parameters": {"x": {}}, "required": ["x"]}


def declare_one(stage: Stage, *steps: dict[str, Any], **more: Any) -> None:
    stage.workflow("one", *(steps or (DOWNLOAD, ENCODE)), result=ref("encode"), **TAKES_X, **more)


@pytest.fixture
def encoder(stage: Stage) -> Encoder:
    encoder = Encoder()
    stage.job("download", lambda x: x)
    stage.job("encode", encoder)
    declare_one(stage)
    stage.workflow("main", {"id": "s", "workflow": "one", "with": {"x": "b"}}, result=ref("s"))
    return encoder


def ran(stage: Stage) -> list[str]:
    """The attempts since the last call."""
    jobs = [job for job, _ in stage.started]
    stage.started.clear()
    return jobs


def sub_run(stage: Stage, root: str) -> str:
    """The only sub-run of a run that has ended, without undos."""
    rows = [row for row in table(stage.store, "run_ended") if str(row["parent"]) == root and row["undo_of"] is None]
    assert len(rows) == 1, rows
    return str(rows[0]["id"])


def cancel(stage: Stage, id: str) -> None:
    """Cancels a run before any other step of it starts."""
    stage.cancel(id)
    while stage.chores():
        pass


def failed(stage: Stage, encoder: Encoder, name: str = "main", broken: Any = "b") -> str:
    """A run that failed because one video could not be encoded. The next attempts would succeed."""
    encoder.broken = {broken}
    id = stage.start(name)
    stage.work()
    assert stage.end(id) == ("failed", "step_failed")
    encoder.broken = set()
    ran(stage)
    return id


def test_a_sub_run_keeps_what_succeeded(stage: Stage, encoder: Encoder) -> None:
    first = failed(stage, encoder)
    again = stage.retry(first)
    stage.work()
    assert ran(stage) == ["encode"]
    assert stage.result(again) == "b!"
    assert [stage.letters(sub_run(stage, root)) for root in (first, again)] == ["sf", "Ss"]
    stage.check()


def test_the_new_sub_run_shows_what_it_kept(stage: Stage, encoder: Encoder) -> None:
    again = stage.retry(failed(stage, encoder))
    stage.work()
    detail = stage.store.read(run_view.run, NAMESPACE, sub_run(stage, again))
    assert {step.step: step.is_kept for step in detail.steps} == {"download": True, "encode": False}


@pytest.mark.parametrize("at_once", [None, 1])
def test_each_item_of_a_map_keeps_what_succeeded(stage: Stage, encoder: Encoder, at_once: int | None) -> None:
    videos = {"id": "m", "workflow": "one", "map": ["a", "b", "c"], "as": "x", "at_once": at_once, "tolerate": 1}
    join = {"id": "j", "job": "echo", "with": {"x": ref("m")}}
    stage.workflow("videos", videos, join, {"id": "z", "job": "encode", "with": {"x": "z"}}, result=ref("j"))
    encoder.broken = {"a", "b", "z"}
    first = stage.start("videos")
    stage.work()
    assert stage.end(first) == ("failed", "step_failed")
    downloaded = stage.count("download")
    encoder.broken = set()
    ran(stage)
    again = stage.retry(first)
    stage.work()
    assert stage.result(again) == ["a!", "b!", "c!"]
    assert Counter(ran(stage))["download"] == 3 - downloaded
    stage.check()


def test_depth_3(stage: Stage, encoder: Encoder) -> None:
    """The maps and sub-runs at every level keep what succeeded there."""
    before = {"id": "before", "job": "download", "with": {"x": ref("input.x")}}
    stage.workflow(
        "middle",
        before,
        {"id": "m", "workflow": "one", "map": [[ref("before"), 1], [ref("before"), 2]], "as": "x"},
        result=ref("m"),
        **TAKES_X,
    )
    stage.workflow("upper", before, {"id": "s", "workflow": "middle", "with": {"x": ref("before")}}, result=ref("s"))
    stage.workflow("top", {"id": "s", "workflow": "upper", "with": {"x": "v"}}, result=ref("s"))
    stage.job("encode", fails_at_first(["v", 2]))
    first = stage.start("top")
    stage.work()
    assert stage.end(first) == ("failed", "step_failed")
    assert Counter(ran(stage)) == {"download": 4, "encode": 2}
    again = stage.retry(first)
    stage.work()
    assert ran(stage) == ["encode"]
    assert stage.result(again) == [["v", 1], ["v", 2]]
    stage.check()


def fails_at_first(value: Any) -> Any:
    seen: list[Any] = []

    def body(x: Any) -> Any:
        if x == value and not seen:
            seen.append(x)
            raise Fail("the first time")
        return x

    return body


def test_a_failed_retry_is_retried(stage: Stage, encoder: Encoder) -> None:
    """The third sub-run has one step of the first, one of the second, and one of its own."""
    last = {"id": "last", "job": "echo", "with": {"x": ref("encode")}}
    check = {"id": "check", "job": "encode", "with": {"x": ref("last")}}
    declare_one(stage, DOWNLOAD, ENCODE, last, check)
    first = failed(stage, encoder)
    encoder.broken = {"b!"}
    second = stage.retry(first)
    stage.work()
    assert stage.end(second) == ("failed", "step_failed")
    assert ran(stage) == ["encode", "echo", "encode"]
    encoder.broken = set()
    third = stage.retry(second)
    stage.work()
    assert ran(stage) == ["encode"]
    assert stage.result(third) == "b!"
    assert [stage.letters(sub_run(stage, root)) for root in (first, second, third)] == ["sfbb", "Sssf", "SSSs"]
    stage.check()


def test_a_retry_that_never_opened_its_sub_run_is_retried(stage: Stage, encoder: Encoder) -> None:
    first = failed(stage, encoder)
    second = stage.retry(first)
    cancel(stage, second)
    assert stage.end(second) == ("cancelled", "cancelled")
    assert second not in {str(row["parent"]) for row in table(stage.store, "run_ended")}
    third = stage.retry(second)
    stage.work()
    assert ran(stage) == ["encode"]
    assert stage.result(third) == "b!"
    stage.check()


def test_a_cancelled_sub_run_keeps_what_succeeded(stage: Stage, encoder: Encoder) -> None:
    first = stage.start("main")
    stage.finish(*stage.take(jobs=["download"]))
    cancel(stage, first)
    assert stage.end(first) == ("cancelled", "cancelled")
    ran(stage)
    again = stage.retry(first)
    stage.work()
    assert ran(stage) == ["encode"]
    assert stage.result(again) == "b!"
    stage.check()


def test_a_sub_run_that_was_stopped_during_its_last_step_keeps_all(stage: Stage, encoder: Encoder) -> None:
    after = {"id": "after", "job": "echo", "with": {"x": ref("s")}}
    stage.workflow("main", {"id": "s", "workflow": "one", "with": {"x": "b"}}, after, result=ref("after"))
    first = stage.start("main")
    stage.finish(*stage.take())
    stage.take()
    cancel(stage, first)
    stage.work()
    assert (stage.letters(sub_run(stage, first)), stage.letters(first)) == ("ss", "cc")
    ran(stage)
    again = stage.retry(first)
    stage.work()
    assert ran(stage) == ["echo"]
    assert stage.result(again) == "b!"
    assert stage.letters(sub_run(stage, again)) == "SS"
    stage.check()


def test_a_sub_run_that_undid_itself_runs_the_undone_steps_again(stage: Stage, encoder: Encoder) -> None:
    stage.job("delete", lambda x: None, parameters={"x": {"first": True}})
    plain = {"id": "plain", "job": "echo", "with": {"x": 1}}
    declare_one(stage, plain, DOWNLOAD | {"undo": "delete"}, ENCODE)
    again = stage.retry(failed(stage, encoder))
    stage.work()
    assert ran(stage) == ["download", "encode"]
    assert stage.result(again) == "b!"
    assert stage.letters(sub_run(stage, again)) == "Sss"
    stage.check()


def test_a_sub_run_that_was_undone_starts_over(stage: Stage, encoder: Encoder) -> None:
    """The sub-run succeeded, and was undone because a later step failed."""
    stage.job("delete", lambda x: None, parameters={"x": {"first": True}})
    declare_one(stage, DOWNLOAD | {"undo": "delete"}, ENCODE)
    step = {"id": "s", "workflow": "one", "with": {"x": "a"}}
    stage.workflow("saga", step, {"id": "z", "job": "encode", "with": {"x": "b"}, "after": ["s"]}, result=ref("s"))
    again = stage.retry(failed(stage, encoder, "saga"))
    stage.work()
    assert ran(stage) == ["download", "encode", "encode"]
    assert stage.result(again) == "a!"
    stage.check()


def test_a_kept_step_of_a_sub_run_is_undone_with_its_result(stage: Stage, encoder: Encoder) -> None:
    """The first run is not undone when it fails. Its retry succeeds in the sub-run, is cancelled, and is undone."""
    deleted: list[str] = []
    declare_one(stage, DOWNLOAD | {"undo": "delete"}, ENCODE, undo_on=["cancelled"])
    step = {"id": "s", "workflow": "one", "with": {"x": "b"}}
    stage.workflow("saga", step, {"id": "nap", "sleep": 60, "after": ["s"]}, undo_on=["cancelled"])
    stage.job("delete", lambda x: deleted.append(x), parameters={"x": {"first": True}})
    again = stage.retry(failed(stage, encoder, "saga"))
    stage.work()
    assert (ran(stage), deleted) == (["encode"], [])
    stage.cancel(again)
    stage.work()
    assert stage.end(again) == ("cancelled", "cancelled")
    assert deleted == ["b"]
    stage.check()


def test_a_new_version_is_used_only_if_it_is_asked_for(stage: Stage, encoder: Encoder) -> None:
    """A retry is pinned to the old graph. With the latest version a changed sub-workflow starts from scratch."""
    first = failed(stage, encoder)
    again = stage.retry(first, latest=True)
    stage.work()
    assert (ran(stage), stage.result(again)) == (["encode"], "b!")
    declare_one(stage, DOWNLOAD, ENCODE | {"with": {"x": [ref("download")]}})
    again = stage.retry(first)
    stage.work()
    assert (ran(stage), stage.result(again)) == (["encode"], "b!")
    again = stage.retry(first, latest=True)
    stage.job("encode", lambda x: x)
    stage.work()
    assert (ran(stage), stage.result(again)) == (["download", "encode"], ["b"])
    stage.check()


@pytest.mark.parametrize(
    "how", [{"from_": "s"}, {"from_": "start"}, {"step_arguments": {"s": {"x": "c"}}}, {"from_": "before"}]
)
def test_a_sub_run_with_other_inputs_or_named_by_the_retry_starts_from_scratch(
    stage: Stage, encoder: Encoder, how: dict[str, Any]
) -> None:
    before = {"id": "before", "job": "echo", "with": {"x": "b"}}
    stage.workflow("chain", before, {"id": "s", "workflow": "one", "with": {"x": ref("before")}}, result=ref("s"))
    again = stage.retry(failed(stage, encoder, "chain"), **how)
    stage.work()
    assert [job for job in ran(stage) if job != "echo"] == ["download", "encode"]
    assert stage.result(again) == ("c!" if "step_arguments" in how else "b!")
    assert stage.letters(sub_run(stage, again)) == "ss"
    stage.check()


def test_a_sub_run_without_a_failed_step_starts_from_scratch(stage: Stage, encoder: Encoder) -> None:
    stage.workflow("one", DOWNLOAD, result=ref("download.nothing"), **TAKES_X)
    first = stage.start("main")
    stage.work()
    assert stage.end(first) == ("failed", "step_failed")
    ran(stage)
    again = stage.retry(first)
    stage.work()
    assert ran(stage) == ["download"]
    assert stage.end(again) == ("failed", "step_failed")
    stage.check()


@pytest.mark.parametrize("seeds", [3, proof(60)])
def test_nothing_that_succeeded_runs_again(stage: Stage, seeds: int) -> None:
    """Maps in maps, with failures and cancels by chance, are retried until they succeed."""
    stage.workflow(
        "inner",
        {"id": "a", "job": "part", "with": {"x": ref("input.x"), "step": "a"}},
        {"id": "b", "job": "part", "with": {"x": ref("a"), "step": "b"}},
        result=ref("b"),
        **TAKES_X,
    )
    inner = {"id": "m", "workflow": "inner", "map": ref("input.x"), "as": "x", "at_once": 2}
    stage.workflow("outer", inner, result=ref("m"), **TAKES_X)
    lists = [[1, 2, 3], [], [4, 5], [6]]
    stage.workflow("main", {"id": "m", "workflow": "outer", "map": lists, "as": "x"}, result=ref("m"))
    for seed in range(seeds):
        random = Random(seed)
        done: Counter[tuple[str, int]] = Counter()

        def part(x: int, step: str, random: Random = random, done: Counter[tuple[str, int]] = done) -> int:
            if random.random() < 0.3:
                raise Fail("by chance")
            done[step, x] += 1
            return x

        stage.job("part", part)
        id = stage.start("main")
        for _ in range(100):
            if random.random() < 0.3:
                stage.finish(*stage.take(random.randint(1, 4)))
                cancel(stage, id)
            stage.work(random, most=random.choice([1, 3, 100]))
            if stage.end(id)[0] == "success":
                break
            id = stage.retry(id)
        assert stage.result(id) == lists
        assert set(done.values()) == {1}, f"seed {seed}: {done}"
    stage.check()
