"""One fault, real processes, and three records: the answers that clients got, the effects outside, the database.

A trial starts the programs that a user would start, lets a test bring about its fault at an exact point, and ends with
`check`: everything comes to rest, workers are drained, and the checker of the kill test compares the witnesses.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec

from rota import Handle, ScheduleHandle
from rota.clock import SystemClock
from rota.domain.status import TERMINAL
from rota.sdk.app import registry_of
from rota.store.opening import open_store
from tests.faults import trial_jobs
from tests.faults.holding import Hold, hold
from tests.faults.trial_command import LEFT
from tests.kill import check, effects, evidence
from tests.kill.check import Witnesses
from tests.kill.databases import leftovers
from tests.kill.effects import Answer
from tests.kill.evidence import Attempt
from tests.kill.fleet import Fleet, Program
from tests.kill.jobs import CHARGE
from tests.kill.journal import Entry
from tests.kill.processes import Process, children_of
from tests.kill.receiver import Receiver
from tests.support import waiting

LEASE_S = 1.0
PATIENCE_S = 100.0
"""Only a bound for hangs: most of these tests start several interpreters, which takes long where others do too."""
APP = "tests.faults.trial_jobs:app"
End = tuple[str, str]
"""Status and reason."""
T = TypeVar("T")


def eventually(condition: Callable[[], T], what: str) -> T:
    return waiting.eventually(condition, PATIENCE_S, what)


class Trial:
    """A folder, a database, the receiver, and whatever a test starts."""

    def __init__(self, folder: Path, url: str = "") -> None:
        self.folder = folder
        self.fleet = Fleet(folder, url, lease_s=LEASE_S, poll_s=0.1, grace_s=20)
        self.url = self.fleet.url
        self.app = trial_jobs.app
        self.workers: list[Program] = []
        self._journal: list[Entry] = []
        self._schedules: list[ScheduleHandle] = []
        self._other_ends: dict[str, End] = {}
        self._ends = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._ends.enter_context(self.fleet)
        self._ends.enter_context(receiving(self.folder, self.fleet.environment[effects.ADDRESS]))
        self._connected = self._ends.enter_context(contextlib.ExitStack())
        self._connected.enter_context(registry_of(self.app).connection.borrowed(open_store(self.url), SystemClock()))
        return self

    def __exit__(self, *error: object) -> None:
        self._ends.__exit__(*error)  # type: ignore[arg-type]

    # --- Those who ask ---

    def enqueue(self, job: str, **arguments: object) -> Handle[Any]:
        (handle,) = self.enqueue_all(1, job, **arguments)
        return handle

    def enqueue_all(self, count: int, job: str, **arguments: object) -> list[Handle[Any]]:
        """One after the other, each with a ticket of its own."""
        handles = []
        for _ in range(count):
            ticket = self.asked()
            handles.append(self.app.jobs[job].enqueue(ticket=ticket, **arguments))
            self.answered(ticket, handles[-1].id)
        return handles

    def asked(self, *, keyed: bool = False) -> str:
        """A new ticket, in the journal before the call."""
        ticket = f"ticket-{len(self._journal)}"
        self._journal.append(Entry(ticket, keyed))
        return ticket

    def answered(self, ticket: str, id: str, *, keyed: bool = False) -> None:
        self._journal.append(Entry(ticket, keyed, id))

    def client(self, ticket: str, stdout: int = subprocess.PIPE) -> subprocess.Popen[str]:
        """`rota enqueue` in a process of its own, with the ticket as its key."""
        return subprocess.Popen(
            [sys.executable, "-m", "rota", "enqueue", "stepped", f"ticket={ticket}", "--key", ticket],
            cwd=self.folder,
            env=self.fleet.environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
        )

    def schedule(self, **when: Any) -> ScheduleHandle:
        """A schedule, whose ticks are in no other journal."""
        made = self.app.schedule("stepped", arguments={"ticket": "tick"}, overlap="allow", **when)
        self._schedules.append(made)
        return made

    # --- Those who work ---

    def worker(self, *flags: str, lease_s: float = LEASE_S, program: Sequence[str] = ("rota",)) -> Program:
        """A `rota worker` that may still be on its way."""
        name = f"worker-{len(self.workers)}"
        options = ["--concurrency", "8", "--lease", f"{lease_s}s", *flags]
        self.workers.append(self.fleet.start(name, [*program, "worker", APP, *options]))
        return self.workers[-1]

    def joined(self, count: int) -> None:
        """Waits until so many worker processes have a lease."""
        eventually(lambda: evidence.read(self.url).live_workers >= count, what=f"{count} live workers")

    def child(self, worker: Program) -> Process:
        """The only process in which a worker runs jobs."""
        (child,) = eventually(worker.children, what="a worker process")
        self._ends.callback(child.close)
        return child

    def spawners(self, worker: Program) -> list[Process]:
        """What would end the child of a worker that is stopped."""
        spawners = worker.spawners()
        for spawner in spawners:
            self._ends.callback(spawner.close)
        return spawners

    def left(self) -> int:
        """The process that a command has left behind."""
        path = self.folder / LEFT
        return eventually(lambda: int(path.read_text() or 0) if path.exists() else 0, what="a process")

    def logs(self) -> str:
        return "\n".join(worker.log.read_text(errors="replace") for worker in self.workers)

    # --- Points ---

    def open(self, gate: str) -> None:
        (self.folder / gate).touch()

    def fences(self, x: Handle[Any], kind: str) -> list[int]:
        """The attempts that have reached this point, in order."""
        return [one.effect.fence for one in self.effects() if (one.effect.id, one.effect.kind) == (x.id, kind)]

    def wait_for(self, x: Handle[Any], kind: str) -> int:
        """Until an attempt has reached this point; returns its fence, which on a busy machine need not be the first."""
        return eventually(lambda: self.fences(x, kind), what=f"{kind} of {x.id}")[-1]

    def hold(self, *tables: str) -> contextlib.AbstractContextManager[Hold]:
        """Blocks writes to these tables; in a file, to all. Processes that try wait, and can be seen waiting."""
        return hold(self.url, tables)

    # --- What can be seen ---

    def effects(self) -> list[effects.Recorded]:
        return effects.recorded(self.folder)

    def charges(self, x: Handle[Any]) -> list[tuple[int, Answer]]:
        """The fence of each charge, and what the receiver made of it."""
        return [
            (one.effect.fence, one.answer)
            for one in self.effects()
            if (one.effect.id, one.effect.kind) == (x.id, CHARGE)
        ]

    def history(self, x: Handle[Any]) -> list[Attempt]:
        return evidence.read(self.url).attempts.get(x.id, [])

    def is_running(self, x: Handle[Any]) -> bool:
        return str(x.status()) == "running"

    def executions(self) -> list[evidence.Execution]:
        return evidence.read(self.url).executions

    # --- The end ---

    def result(self, x: Handle[Any]) -> Any:
        """Waits for the end of an execution with the patience that a busy machine needs."""
        return x.result(PATIENCE_S)

    def ends_as(self, x: Handle[Any], status: str, reason: str) -> None:
        """Waits for an end which the jobs of the kill test cannot have."""
        eventually(lambda: x.status() in TERMINAL, what=f"the end of {x}")
        self._other_ends[x.id] = (status, reason)

    def check(self, *, drained: bool = True) -> None:
        """Lets everything come to rest, the workers as well unless they are still needed, and compares the witnesses.

        Everything has ended in success or in a crash loop, or as the test has said; nothing is left behind, and no
        log holds a traceback.
        """
        running = [worker for worker in self.workers if worker.code() is None]
        eventually(lambda: self._is_at_rest(running), what="rest")
        ticks = self._ticks()
        found = [line for line in self.logs().splitlines() if line.startswith("Traceback")]
        if drained:
            self._connected.close()
            drain(running)
            found += leftovers(self.url) if self.workers else []
        database = ticks.named(evidence.read(self.url))
        if not drained:
            database = msgspec.structs.replace(database, live_workers=0)
        found += self._problems(
            Witnesses(
                [self._journal, *ticks.journals()], self.effects(), database, elsewhere=frozenset(trial_jobs.COMMANDS)
            )
        )
        assert not found, "\n".join([*found[:20], self.logs()])

    def _problems(self, seen: Witnesses) -> list[str]:
        found = [problem for problem in check.problems(seen) if not _is_meant(problem, self._other_ends)]
        for id, end in self._other_ends.items():
            last = seen.database.attempts[id][-1]
            if (last.status, last.reason) != end:
                found.append(f"{id} ended as {last} and not as {end}")
        return found

    def _is_at_rest(self, running: Sequence[Program]) -> bool:
        """Nothing is pending, the dead are known to be dead, and each worker that runs has all its processes."""
        counts = [len(children_of(worker.pid)) for worker in running]
        return all(counts) and evidence.is_quiet(self.url, sum(counts))

    def _ticks(self) -> Ticks:
        return Ticks([(made.name, tick.at, tick.execution_id) for made in self._schedules for tick in made.ticks()])


class Ticks(msgspec.Struct, frozen=True):
    """The ledger as the one who asked for what schedules started: each tick is a ticket of its own."""

    fired: list[tuple[str, datetime, str | None]]

    def journals(self) -> list[list[Entry]]:
        entries = [(f"{name} at {at}", id) for name, at, id in self.fired if id is not None]
        return [[Entry(ticket, keyed=False), Entry(ticket, keyed=False, id=id)] for ticket, id in entries]

    def named(self, found: evidence.Evidence) -> evidence.Evidence:
        """Two executions of one tick would have the same name; one without a tick has a name that is in no journal."""
        names = {id: f"{name} at {at}" for name, at, id in self.fired}
        executions = [
            msgspec.structs.replace(execution, ticket=names.get(execution.id, execution.ticket), schedule=None)
            for execution in found.executions
        ]
        return msgspec.structs.replace(found, executions=executions)


def every_tick_is_known_once(schedule: ScheduleHandle) -> None:
    """A second after the other, each fired or missed, whichever schedulers were there."""
    ledger = schedule.ticks()
    known = sorted(at for tick in ledger for at in range(_second(tick.at), _second(tick.until) + 1))
    assert known == list(range(known[0], known[-1] + 1)), ledger
    assert {tick.outcome for tick in ledger if tick.execution_id is not None} == {"fired"}


def _second(at: datetime) -> int:
    return int(at.timestamp())


@contextlib.contextmanager
def receiving(folder: Path, name: str) -> Iterator[None]:
    """The receiver of the kill test, in this process: it is not killed, and need not be started every time."""
    loop = asyncio.new_event_loop()
    task = loop.create_task(Receiver(folder / effects.FILE).serve(name))

    def serve() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(task)
        loop.close()

    thread = threading.Thread(target=serve, name="receiver", daemon=True)
    thread.start()
    eventually((folder / effects.FILE).exists, what="the receiver")
    try:
        yield
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(PATIENCE_S)


def drain(workers: Sequence[Program]) -> None:
    for worker in workers:
        worker.process.signal(signal.SIGTERM)
    codes = [worker.wait(PATIENCE_S) for worker in workers]
    assert codes == [0] * len(workers), codes


def _is_meant(problem: str, ends: dict[str, End]) -> bool:
    """Whether the checker only finds that an execution ended otherwise than those of the kill test do."""
    return problem.startswith("outcomes: ") and any(id in problem for id in ends)
