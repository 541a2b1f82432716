"""Runs on a store, without processes: workflows from graphs as data, bodies as functions, and a worker by hand."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import msgspec

from rota.domain.claim import Claim
from rota.domain.job import Definition
from rota.domain.outcome import Cancelled, Error, Failed, Outcome, Succeeded
from rota.domain.requirement import Needs
from rota.domain.retry import Fixed
from rota.domain.status import Status
from rota.domain.workflow.letters import is_over
from rota.ops import blockers, claim, control, finish, upkeep
from rota.ops.finish import Finished
from rota.ops.runs import approvals
from rota.ops.runs import pause as pausing
from rota.ops.runs import retry as retrying
from rota.ops.runs.approvals import Answer
from rota.ops.runs.chores import work_on_runs
from rota.ops.runs.retry import Request
from rota.ops.runs.sweep import sweep
from rota.store.port import Tx
from tests.support import statistics
from tests.support.tables import table
from tests.support.world import APP, NAMESPACE, World

LONG_S = 1e9
OPEN_TABLES = ("run", "map_open", "map_tally", "blocker", "waiting", "ready", "running", "scheduled", "lifted_blocker")
Body = Callable[..., Any]


class Fail(Exception):
    """A body that fails for good."""


class Stop(Exception):
    """A body that ends because it was asked to."""


def workflow(name: str, steps: Sequence[dict[str, Any]], result: Any = None, **more: Any) -> Definition:
    """A workflow from the data form of its steps. Members of its definition that are no members of a graph go there."""
    about = {key: more.pop(key) for key in ("queue", "start_within_s", "priority") if key in more}
    graph = {"rota": "workflow/1", "name": name, "steps": list(steps), "result": result, **more}
    return Definition(name=name, target={"kind": "workflow", "graph": graph}, needs=Needs(workflow=True), **about)


def one_success(**arguments: Any) -> Any:
    return arguments.get("x")


class Stage:
    """A world with jobs that have bodies, and one worker that runs everything."""

    def __init__(self, world: World) -> None:
        self.world, self.store = world, world.store
        self.bodies: dict[str, Body] = {}
        self.started: list[tuple[str, dict[str, Any]]] = []
        """Every attempt: the job and its arguments."""
        self.most_at_once: Counter[str] = Counter()
        self.held: list[Claim] = []
        self.job("echo", one_success)
        self._worker: int | None = None

    # --- Declaring ------------------------------------------------------------------------------------

    def job(self, name: str, body: Body, *, attempts: int = 1, delay_s: float = 1.0, **about: Any) -> None:
        self.bodies[name] = body
        retry = Fixed(attempts=attempts, delay=delay_s).describe()
        self.world.register(Definition(name=name, retry=retry, **about))

    def workflow(self, name: str, *steps: dict[str, Any], result: Any = None, **more: Any) -> None:
        self.world.register(workflow(name, steps, result, **more))

    # --- Acting ---------------------------------------------------------------------------------------

    @property
    def worker(self) -> int:
        if self._worker is None:
            self._worker = self.world.join(lease_s=LONG_S)
        return self._worker

    def start(self, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> str:
        return self.world.enqueue(name, arguments or {}, **options)

    def open(self, count: int = 1) -> None:
        """Opens so many runs, one by one. A worker without any job claims only runs."""
        served = self.world.served(jobs=["no job"])
        for _ in range(count):
            assert not self.store.transact(claim.claim, self.worker, served, 1).claims

    def take(self, most: int = 100, jobs: Sequence[str] | None = None) -> list[Claim]:
        """Claims attempts; runs that are claimed open on the way, and so do their sub-runs."""
        served = self.world.served(jobs=jobs)
        taken: list[Claim] = []
        while len(taken) < most:
            claimed = self.store.transact(claim.claim, self.worker, served, most - len(taken))
            taken += claimed.claims
            self.held += claimed.claims
            if not claimed.has_more:
                break
        for job, count in Counter(one.job for one in self.held).items():
            self.most_at_once[job] = max(self.most_at_once[job], count)
        return taken

    def outcome(self, attempt: Claim) -> Outcome:
        arguments = msgspec.json.decode(attempt.arguments)
        self.started.append((attempt.job, arguments))
        try:
            return Succeeded(msgspec.json.encode(self.bodies[attempt.job](**arguments)).decode())
        except Fail as error:
            return Failed(Error("Fail", str(error)))
        except Stop:
            return Cancelled()

    def finish(self, *attempts: Claim) -> list[str]:
        """Runs the bodies and reports them in one transaction. Returns the ids whose report was stale."""
        stale = self.report(*((attempt, self.outcome(attempt)) for attempt in attempts))
        ended = {attempt.id for attempt in attempts}
        self.held = [one for one in self.held if one.id not in ended]
        return stale

    def report(self, *ended: tuple[Claim, Outcome]) -> list[str]:
        return self.store.transact(finish.finish, [Finished(one.id, one.fence, outcome) for one, outcome in ended])

    def chores(self) -> bool:
        """Whether a chore had something to do."""
        ops: tuple[Callable[[Tx], Any], ...] = (upkeep.promote, upkeep.expire, blockers.release_lifted, chores)
        return sum(bool(self.store.transact(op)) for op in ops) > 0

    def work(self, random: Random | None = None, most: int = 100) -> None:
        """Everything that is due now, until nothing is left to do. With `random`, in an order by chance."""
        while True:
            self.take(most)
            if self.held:
                some = list(self.held)
                if random is not None:
                    random.shuffle(some)
                    some = some[: random.randint(1, len(some))]
                self.finish(*some)
            elif not self.chores():
                return
            if random is not None and random.random() < 0.5:
                self.chores()

    def advance(self, seconds: float) -> None:
        self.world.clock.advance(seconds)
        self.work()

    def cancel(self, id: str) -> Status:
        return self.store.transact(control.cancel, NAMESPACE, id, "test")

    def pause(self, id: str) -> bool:
        return self.store.transact(pausing.pause, NAMESPACE, id, "test", "why not")

    def resume(self, id: str) -> bool:
        return self.store.transact(pausing.resume, NAMESPACE, id, "test")

    def answer(
        self, id: str, step: str | None = None, *, approved: bool = True, by: str = "ann", note: str = ""
    ) -> str:
        return self.store.transact(approvals.answer, NAMESPACE, id, Answer(approved, by, note, step))

    def retry(self, id: str, from_: str | None = None, **more: Any) -> str:
        new_id = self.world.ids.new()
        return self.store.transact(retrying.retry, NAMESPACE, id, new_id, "test", Request(from_, **more))

    # --- Looking --------------------------------------------------------------------------------------

    def letters(self, run: str) -> str:
        rows = [row for name in ("run", "run_ended") for row in table(self.store, name) if str(row["id"]) == run]
        assert len(rows) == 1, f"run {run} has {len(rows)} rows"
        return str(rows[0]["letters"])

    def result(self, id: str) -> Any:
        """The result of a success."""
        ending = self.world.ending(id)
        assert ending is not None, f"{id} is {self.world.status(id)}"
        assert ending.status == Status.SUCCESS, f"{ending.status}, {ending.reason}: {ending.error}"
        return msgspec.json.decode(ending.result or "null")

    def end(self, id: str) -> tuple[str, str]:
        ending = self.world.ending(id)
        assert ending is not None, f"{id} is {self.world.status(id)}"
        return str(ending.status), str(ending.reason)

    def error(self, id: str) -> str:
        ending = self.world.ending(id)
        assert ending is not None
        assert ending.error is not None, f"{id} has no error"
        return str(ending.error)

    def executions(self, job: str) -> list[dict[str, Any]]:
        """The executions of a job, by id and therefore about by age."""
        rows = [row for row in table(self.store, "state") if row["job"] == job and row["app"] == APP]
        return sorted(rows, key=lambda row: str(row["id"]))

    def statuses(self, job: str) -> Counter[str]:
        return Counter(row["status"] for row in self.executions(job))

    def count(self, job: str) -> int:
        """How many attempts of a job there were."""
        return sum(1 for name, _ in self.started if name == job)

    def is_swept(self) -> bool:
        """Whether the sweeper finds nothing to repair in any open run."""
        return self.store.transact(swept) == []

    def check(self, *, is_pruned: bool = False) -> None:
        """Whatever has ended has left nothing behind, and every step of every ended run has one execution and one end.

        To be called when nothing is open any more. Unless history was deleted, the statistics agree with it.
        """
        left = {name: rows for name in OPEN_TABLES if (rows := table(self.store, name))}
        assert not left, f"rows are left: { {name: rows[:2] for name, rows in left.items()} }"
        ends = Counter(str(row["id"]) for row in table(self.store, "finished") if row["final"])
        steps = [
            (str(row["run"]), row["number"], row["item"], str(row["execution"])) for row in table(self.store, "step")
        ]
        assert all(ends[execution] == 1 for *_, execution in steps), "a step without one end"
        numbers: defaultdict[str, set[int]] = defaultdict(set)
        for run, number, *_ in steps:
            numbers[run].add(number)
        for row in table(self.store, "run_ended"):
            assert is_over(row["letters"]), f"run {row['id']} has ended with the letters {row['letters']}"
            assert ends[str(row["id"])] == 1, "a run without one end"
            placed = numbers[str(row["id"])]
            blocked = {number for number, letter in enumerate(row["letters"]) if letter in "bB"}
            assert not placed & blocked, f"a blocked step of run {row['id']} was placed"
        if not is_pruned:
            statistics.check(self.store)


def chores(tx: Tx) -> bool:
    return work_on_runs(tx, look_s=0)


def swept(tx: Tx) -> list[str]:
    return sweep(tx, early_s=1e9)
