"""Random workflows, outcomes and cancels: every step that must be undone is undone once, after those downstream of it.

What must be undone, and in which order, is worked out again here, from the data form and from what ran.
"""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from random import Random
from typing import Any

import pytest

from rota.domain.errors import Conflict
from rota.ops.runs import expand, start
from tests.support.proving import proof
from tests.support.tables import table
from tests.workflow.stage import Fail, Stage

Data = dict[str, Any]
RULES = ["all_success", "all_success", "all_done", "always", "one_failed", "none_failed"]


def random_workflow(random: Random, name: str, below: list[str]) -> Data:
    names = [f"s{number}" for number in range(random.randint(1, 6))]
    steps = []
    for number, one in enumerate(names):
        before = random.sample(names[:number], random.randint(0, min(2, number)))
        step: Data = {"id": one, "after": before, "rule": random.choice(RULES), "may_fail": random.random() < 0.3}
        fails = random.choice([0.0, 0.1, 0.5])
        if below and random.random() < 0.3:
            step |= {"workflow": random.choice(below)}
        else:
            step |= {"job": "act"}
            if random.random() < 0.7:
                step |= {"undo": "undo", "undo_failed": random.random() < 0.3}
        if random.random() < 0.3:
            width = random.choice([0, 1, 3, 14])
            step |= {"map": [{"x": random.random() < fails} for _ in range(width)], "tolerate": random.choice([0, 100])}
            step |= {"at_once": random.choice([None, 2])}
        else:
            step |= {"with": {"x": random.random() < fails}}
        steps.append(step)
    random.shuffle(steps)
    undo_on = random.choice([["failed", "cancelled"]] * 5 + [["failed"], ["cancelled"], []])
    parameters = {"x": {"type": "boolean", "default": False}}
    return {"name": name, "steps": steps, "undo_on": undo_on, "parameters": parameters, "required": []}


def act(x: bool) -> str:
    if x:
        raise Fail("boom")
    return "done"


class Trial:
    """One run of a random workflow, with everything that was claimed and that ended, in order."""

    def __init__(self, stage: Stage, random: Random, prefix: str) -> None:
        self.stage, self.random = stage, random
        self.starts: dict[str, int] = {}
        self.ends: dict[str, int] = {}
        names = [f"{prefix}-{level}" for level in range(3)]
        self.data = {name: random_workflow(random, name, names[:level]) for level, name in enumerate(names)}
        for data in self.data.values():
            about = {key: value for key, value in data.items() if key != "steps"}
            stage.workflow(about.pop("name"), *data["steps"], **about)
        self.id = stage.start(names[-1])

    def play(self, cancel_after: int | None) -> None:
        """Claims and ends attempts by chance until nothing is left; cancels the run on the way."""
        stage, rounds = self.stage, 0
        while True:
            for attempt in stage.take(self.random.choice([1, 3, 100])):
                self.starts[attempt.id] = len(self.starts) + len(self.ends)
            if rounds == cancel_after:
                with contextlib.suppress(Conflict):  # It may be undoing already.
                    stage.cancel(self.id)
            rounds += 1
            if stage.held:
                some = self.random.sample(stage.held, self.random.randint(1, len(stage.held)))
                stage.finish(*some)
                self.ends |= {attempt.id: len(self.starts) + len(self.ends) for attempt in some}
            elif not stage.chores():
                return
            if self.random.random() < 0.5:
                stage.chores()


class Record:
    """What the tables say after the end."""

    def __init__(self, stage: Stage) -> None:
        ends = [row for row in table(stage.store, "finished") if row["final"]]
        self.status = {str(row["id"]): row["status"] for row in ends}
        self.reason = {str(row["id"]): row["reason"] for row in ends}
        self.job = {str(row["id"]): row["job"] for row in table(stage.store, "execution")}
        self.steps: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
        for row in sorted(table(stage.store, "step"), key=lambda row: row["item"]):
            self.steps[str(row["run"])][row["number"]].append(str(row["execution"]))
        self.forward = {
            (str(row["run"]), row["number"], row["item"]): str(row["execution"]) for row in table(stage.store, "step")
        }
        undo_of = {str(row["id"]): str(row["undo_of"]) for row in table(stage.store, "run_ended") if row["undo_of"]}
        self.undos: dict[str, list[str]] = defaultdict(list)
        """By execution of a step: the executions that undid it."""
        for row in table(stage.store, "execution"):
            if row["job"] == "undo":
                place = (undo_of[str(row["run"])], row["step"], row["map_index"] or 0)
                self.undos[self.forward[place]].append(str(row["id"]))


class Evaluator:
    """Which executions must be undone, and in which order: worked out from the data form."""

    def __init__(self, trial: Trial, record: Record) -> None:
        self.trial, self.record = trial, record
        self.pairs: list[tuple[set[str], set[str]]] = []
        """Executions, and those that must have been undone before."""

    def undone(self, run: str, is_forced: bool) -> set[str]:
        """The executions in a run, and below it, that are undone. `is_forced`: a run above undoes it."""
        data = self.trial.data[self.record.job[run]]
        was_tried = self.record.reason[run] == "undo_failed"
        is_undone = is_forced or was_tried or self.record.status[run] in data["undo_on"]
        by_step: dict[str, set[str]] = {}
        forced: dict[str, set[str]] = {}
        for number, step in enumerate(data["steps"]):
            executions = self.record.steps[run][number]
            if "workflow" in step:
                goes = [one for one in executions if is_undone and self.record.status[one] == "success"]
                below = {one: self.undone(one, one in goes) for one in executions}
                by_step[step["id"]] = set().union(*below.values())
                forced[step["id"]] = set().union(*(below[one] for one in goes))
            else:
                goes = [one for one in executions if is_undone and self._is_undone(step, one)]
                by_step[step["id"]] = forced[step["id"]] = set(goes)
        for step in data["steps"]:
            after = set().union(*(by_step[name] for name in self._downstream(data, step["id"])))
            self.pairs.append((forced[step["id"]], after))
        return set().union(*by_step.values())

    def _is_undone(self, step: Data, execution: str) -> bool:
        if "undo" not in step:
            return False
        started = execution in self.trial.starts
        return self.record.status[execution] == "success" or (step["undo_failed"] and started)

    def _downstream(self, data: Data, name: str) -> set[str]:
        direct = {step["id"] for step in data["steps"] if name in step["after"]}
        return direct.union(*(self._downstream(data, one) for one in direct))


class Undo:
    """The job that undoes steps. Some of its calls fail."""

    def __init__(self) -> None:
        self.random = Random(0)
        self.fails = 0.0

    def __call__(self, x: Any) -> None:
        if self.random.random() < self.fails:
            raise Fail("no")


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("first", "count"), [(0, 25), proof(100, 120)])
def test_every_step_that_must_be_undone_is_undone_once_and_in_order(
    stage: Stage, first: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "AT_FIRST", 4)
    monkeypatch.setattr(expand, "CHUNK", 4)
    undo = Undo()
    stage.job("act", act)
    stage.job("undo", undo, parameters={"x": {"first": True}})
    seen: Counter[str] = Counter()
    for seed in range(first, first + count):
        random = Random(seed)
        undo.random, undo.fails = random, random.choice([0.0, 0.0, 0.2])
        trial = Trial(stage, random, f"w{seed}")
        trial.play(random.choice([None, 1, 3, 6]))
        seen.update(check(stage, trial))
        undo.fails = 0.0
        seen.update(check_retry(stage, trial))
    stage.check()
    assert seen["undone"] > 2 * count
    assert seen["ordered"] > count / 3
    assert seen["failed"] > 0
    assert seen["retried"] > 0


def check(stage: Stage, trial: Trial) -> Counter[str]:
    record = Record(stage)
    evaluator = Evaluator(trial, record)
    expected = evaluator.undone(trial.id, is_forced=False)
    mine = {execution: found for execution, found in record.undos.items() if execution in trial.starts}
    assert mine.keys() == expected
    assert all(len(found) == 1 for found in mine.values()), "an execution was undone twice"
    for later, sooner in evaluator.pairs:
        begins = [trial.starts[mine[one][0]] for one in later]
        ends = [trial.ends[mine[one][0]] for one in sooner]
        assert not begins or not ends or max(ends) < min(begins)
    failed = [one for one in expected if record.status[mine[one][0]] == "failed"]
    reason = stage.end(trial.id)[1]
    ordered = sum(1 for later, sooner in evaluator.pairs if later and sooner)
    return Counter(undone=len(expected), ordered=ordered, failed=len(failed) if reason == "undo_failed" else 0)


def check_retry(stage: Stage, trial: Trial) -> Counter[str]:
    """A retry of failed undos repeats these and no other."""
    if stage.end(trial.id)[1] != "undo_failed":
        return Counter()
    before = Record(stage)
    bad = {one for found in before.undos.values() for one in found if before.status[one] == "failed"}
    roots = {str(row["id"]): str(row["root"]) for row in table(stage.store, "run_ended")}
    again_at = stage.retry(trial.id)
    stage.work(trial.random)
    assert stage.end(again_at)[1] != "undo_failed"
    rows = [row for row in table(stage.store, "execution") if row["job"] in ("undo", "act")]
    again = [row for row in rows if str(row["run"]) not in roots]
    assert {row["job"] for row in again} == {"undo"}
    top = {one for one in bad if chain_is_undo(stage, trial, one)}
    assert len(again) == len(top)
    return Counter(retried=len(again))


def chain_is_undo(stage: Stage, trial: Trial, execution: str) -> bool:
    """Whether a failed undo belongs to the undo of the run itself, not to that of a failed run below."""
    runs = {str(row["id"]): row for row in table(stage.store, "run_ended")}
    run = next(str(row["run"]) for row in table(stage.store, "execution") if str(row["id"]) == execution)
    while runs[run]["undo_of"] is not None:
        if str(runs[run]["parent"]) == trial.id:
            return True
        run = str(runs[run]["parent"])
    return False
