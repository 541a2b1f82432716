"""A store with one app's jobs in it, a clock that the test moves, and short words for the operations.

The words take and return what the operations do; they only spare the tests what is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from rota.clock import ManualClock, SystemClock
from rota.domain import job
from rota.domain.claim import Claim
from rota.domain.errors import UnknownExecution
from rota.domain.job import Definition, Queue
from rota.domain.lifecycle import Rules
from rota.domain.outcome import Error, Failed, Outcome, Succeeded
from rota.domain.requirement import Offers
from rota.domain.retry import Fixed
from rota.domain.served import Served
from rota.domain.status import Status
from rota.ids import IdSource
from rota.ops import claim, control, define, enqueue, finish, fleet, job_definitions, submission, upkeep
from rota.ops.job_definitions import JobToStore
from rota.store import definition_reader, reader
from rota.store.definition_reader import JobRow
from rota.store.hints import Hint, Listener
from rota.store.port import Store, Tx
from rota.store.reader import AttemptRow, DeadRow, Ending, ExecutionRow, Filter
from rota.views import execution as executions
from rota.views.why import why
from tests.support.newcomers import newcomer

NAMESPACE = "default"
APP = "shop"
LEASE_S = 10.0
ERROR = Error("ValueError", "boom", "Traceback …")
FAILED = Failed(ERROR)
THREE_TRIES = Rules(retry=Fixed(attempts=3, delay=10))
NO_RETRY = Rules(retry=Fixed(attempts=1))


def set_rules(tx: Tx, id: str, rules: Rules) -> None:
    """The job of the execution has these rules for retries from now on, as if it had been declared with them."""
    try:
        row = reader.execution(tx, NAMESPACE, id)
    except UnknownExecution:
        return
    before = job.decode(reader.definition(tx, NAMESPACE, row.app, row.job) or "")
    after = msgspec.structs.replace(before, retry=rules.retry.describe(), total_timeout_s=rules.total_timeout_s)
    if after != before:
        define.add(tx, NAMESPACE, row.app, [after], [])
        define.point(tx, NAMESPACE, row.app, {row.job: job.digest(job.content(after))})


class World:
    """One store and everything a test needs to act on it. Without a clock, ids are by the machine's."""

    def __init__(self, store: Store, clock: ManualClock | None = None) -> None:
        self.store = store
        self._clock = clock
        self.ids = IdSource(clock or SystemClock())
        self.register("send", "receive", "count")

    @property
    def clock(self) -> ManualClock:
        assert self._clock is not None, "no test moves the machine's clock"
        return self._clock

    # Definitions.

    def register(
        self, *jobs: str | Definition, queues: Sequence[Queue] = (), app: str = APP, namespace: str = NAMESPACE
    ) -> None:
        """A job of which only the name is given is not retried."""
        once = NO_RETRY.retry.describe()
        definitions = [Definition(name=job, retry=once) if isinstance(job, str) else job for job in jobs]
        self.store.transact(define.register, namespace, app, definitions, list(queues))

    def define(self, name: str) -> JobRow:
        """A job that the HTTP API has defined, so that it can be deleted."""
        wanted = JobToStore(app=APP, definition=Definition(name=name), source="{}", runs=None)
        return self.store.transact(job_definitions.create, NAMESPACE, wanted, self.ids.new(), "test").row

    # Enqueueing.

    def header(self, job: str = "send", **options: Any) -> submission.Header:
        values = {"namespace": NAMESPACE, "app": APP, "job": job, "queue": "default", "actor": "test", **options}
        return submission.Header(**values)

    def item(self, arguments: object = None) -> submission.Item:
        return submission.Item(self.ids.new(), msgspec.json.encode({} if arguments is None else arguments).decode())

    def accept(self, job: str = "send", arguments: object = None, **options: Any) -> submission.Accepted:
        (accepted,) = self.store.transact(enqueue.enqueue, self.header(job, **options), [self.item(arguments)])
        return accepted

    def enqueue(self, job: str = "send", arguments: object = None, **options: Any) -> str:
        return self.accept(job, arguments, **options).id

    def enqueue_many(self, count: int, job: str = "send", **options: Any) -> list[str]:
        items = [self.item({"n": number}) for number in range(count)]
        return [one.id for one in self.store.transact(enqueue.enqueue, self.header(job, **options), items)]

    # Working.

    def join(
        self,
        *,
        app: str = APP,
        namespace: str = NAMESPACE,
        lease_s: float = LEASE_S,
        name: str = "w",
        offers: Offers | None = None,
        deploy: int | None = None,
        jobs: Sequence[str] | None = None,
    ) -> int:
        joining = newcomer(
            app,
            namespace=namespace,
            name=name,
            jobs=self.served(None, app=app, namespace=namespace, jobs=jobs).jobs,
            offers=offers or Offers(),
            deploy=deploy,
        )
        return self.store.transact(fleet.join, joining, lease_s)

    def served(
        self,
        queues: Sequence[str] | None = None,
        *,
        app: str = APP,
        namespace: str = NAMESPACE,
        jobs: Sequence[str] | None = None,
    ) -> Served:
        """The work of some jobs, or of all that the app has by now."""
        if jobs is None:
            jobs = [row.name for row in self.store.read(definition_reader.all_jobs, namespace) if row.app == app]
        return Served.one(namespace, app, None if queues is None else list(queues), list(jobs))

    def claim(
        self,
        worker: int,
        slots: int = 100,
        queues: Sequence[str] | None = None,
        *,
        app: str = APP,
        namespace: str = NAMESPACE,
        jobs: Sequence[str] | None = None,
    ) -> list[Claim]:
        served = self.served(queues, app=app, namespace=namespace, jobs=jobs)
        return self.store.transact(claim.claim, worker, served, slots).claims

    def start(self, job: str = "send", **options: Any) -> tuple[int, Claim]:
        """A worker, and one attempt that it runs."""
        self.enqueue(job, **options)
        worker = self.join()
        (attempt,) = self.claim(worker)
        return worker, attempt

    def finish(self, attempt: Claim, outcome: Outcome = Succeeded("1"), rules: Rules = NO_RETRY) -> list[str]:  # noqa: B008
        """The attempt ended so, and its job has these rules from now on."""
        if not isinstance(outcome, Succeeded):
            self.store.transact(set_rules, attempt.id, rules)
        report = finish.Finished(attempt.id, attempt.fence, outcome, breakers=rules.breakers, pauses=rules.pauses)
        return self.store.transact(finish.finish, [report])

    def set_rules(self, id: str, rules: Rules) -> None:
        """The job of this execution has these rules from now on."""
        self.store.transact(set_rules, id, rules)

    def fail(self, count: int = 1, job: str = "send", **options: Any) -> list[str]:
        """Dead letters, newest last."""
        ids = self.enqueue_many(count, job, **options)
        worker = self.join()
        for attempt in self.claim(worker, count):
            self.finish(attempt, FAILED)
        self.store.transact(fleet.leave, worker)
        return ids

    def promote(self) -> int:
        return self.store.transact(upkeep.promote)

    def cancel(self, id: str) -> Status:
        return self.store.transact(control.cancel, NAMESPACE, id, "test")

    # Looking.

    def status(self, id: str) -> Status:
        return self.store.read(reader.status, NAMESPACE, id)

    def execution(self, id: str) -> ExecutionRow:
        return self.store.read(reader.execution, NAMESPACE, id)

    def attempts(self, id: str) -> list[AttemptRow]:
        return self.store.read(reader.attempts, NAMESPACE, id)

    def ending(self, id: str) -> Ending | None:
        return self.store.read(reader.ending, NAMESPACE, id)

    def why(self, id: str) -> str:
        """Why it is not running, in a sentence; empty if there is nothing to explain."""
        found = self.store.read(why, NAMESPACE, id)
        return found.text if found else ""

    def executions(self, **wanted: Any) -> list[str]:
        return [row.id for row in self.store.read(executions.rows, NAMESPACE, Filter(**wanted)).items]

    def dead(self, reason: str | None = None, **wanted: Any) -> list[DeadRow]:
        return self.store.read(reader.dead, NAMESPACE, Filter(**wanted), reason)


class RecordingBus:
    """Keeps the hints that were sent, and calls `on_send` at that moment."""

    def __init__(self, on_send: Callable[[], None] = lambda: None) -> None:
        self.hints: list[Hint] = []
        self._on_send = on_send

    def send(self, hints: Sequence[Hint]) -> None:
        self.hints.extend(hints)
        if hints:
            self._on_send()

    def listen(self, *kinds: type[Hint]) -> Listener:
        raise NotImplementedError

    def close(self) -> None:
        pass


class Boom(Exception):
    """Raised by operations that are meant to fail."""


def boom_after(tx: Tx, op: Callable[..., Any], *args: Any) -> None:
    """Does all that `op` does, and then fails."""
    op(tx, *args)
    raise Boom
