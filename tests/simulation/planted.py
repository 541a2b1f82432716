"""Bugs planted on purpose: a simulation that does not notice them would not notice real ones either.

Each is a small change to the product for the time of a hunt: a call replaced, a statement rewritten.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import msgspec

from rota.domain import claim_order, lifecycle, unique
from rota.domain.lifecycle import Held, Later, Move
from rota.domain.outcome import Failed, GivenBack, Outcome
from rota.domain.status import PENDING, Status
from rota.domain.unique import Scope
from rota.domain.workflow import undo
from rota.domain.workflow.graph import Graph
from rota.engine import worker_loops
from rota.engine.dispatcher import Dispatcher
from rota.engine.heart import Heart
from rota.engine.port import Beaten
from rota.engine.supervisor import Supervisor
from rota.engine.upkeep import Upkeep
from rota.engine.worker_loops import WorkerLoops
from rota.ops import (
    blockers,
    claim,
    control,
    end_from_outside,
    enqueue,
    finish,
    fleet,
    keys,
    submission,
    upkeep,
)
from rota.ops.events import emit
from rota.ops.events import waits as event_waits
from rota.ops.finish import Finished
from rota.ops.gates import start_deadlines
from rota.ops.runs import approvals
from rota.store import statements
from rota.store.hints import CancelAsked, Hint
from rota.store.pending_call import PendingCall
from rota.store.port import Tx
from rota.store.postgres import session as postgres_session
from rota.store.postgres.url import DEFAULT_SCHEMA
from rota.store.sqlite import store as sqlite
from rota.store.transaction_base import Session
from tests.simulation import runner
from tests.simulation.calls import set_time
from tests.simulation.faults import Fault
from tests.simulation.store import FailingTx
from tests.simulation.world import Scale

MOST_SEEDS = 60
IMPATIENT = Scale(limit_s=100.0)
"""A bug may keep an execution forever. Runs without bugs ended at most 54 seconds after the faults were healed."""


@dataclass(frozen=True, slots=True)
class Bug:
    """A name, and how to plant it."""

    name: str
    plant: Callable[[], AbstractContextManager[object]]
    databases: tuple[str, ...] = ("sqlite", "postgres")
    first: int = 0
    """A seed that is known to notice, to shorten the hunt. If it no longer does, the others are tried."""
    runs: bool = False
    """Whether it is hunted in a world with workflows and events."""
    events: tuple[Fault, ...] = ()
    """The only events that happen in the hunt, if other events would hide the bug from nearly every seed."""


@dataclass(frozen=True, slots=True)
class Catch:
    """The first seed that gave a bug away, and by which invariant."""

    seed: int
    invariant: str

    def __str__(self) -> str:
        return f"seed {self.seed:2}  {self.invariant}"


def hunt(bug: Bug, most: int = MOST_SEEDS, database: str = "sqlite") -> Catch | None:
    """Runs seed after seed until one notices."""
    scale = replace(IMPATIENT, events=bug.events)
    with bug.plant():
        for seed in [*range(bug.first, most), *range(bug.first)]:
            _, violations = runner.run(seed, database, runs=bug.runs, scale=scale)
            if violations:
                return Catch(seed, violations[0].invariant)
    return None


def _replaced(owner: Any, name: str, replacement: Callable[..., Any]) -> AbstractContextManager[object]:
    """`owner.name` becomes `replacement(original, *args)`, under the same name, because witnesses go by names."""
    original = getattr(owner, name)

    def planted(*args: Any, **kwargs: Any) -> Any:
        return replacement(original, *args, **kwargs)

    planted.__name__ = name
    return mock.patch.object(owner, name, planted)


@contextmanager
def _stated(name: str, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> Iterator[None]:
    """A named statement of every database, changed; where the change changes nothing, the bug must be planted anew."""
    dialects = [statements.load("sqlite"), statements.load("postgres", DEFAULT_SCHEMA)]
    before = [texts[name] for texts in dialects]
    after = [change(texts) for texts in before]
    assert after[0] != before[0], f"statement {name} has changed: plant the bug anew"
    for texts, changed in zip(dialects, after, strict=True):
        texts[name] = changed
    postgres_session.load.cache_clear()
    try:
        yield
    finally:
        for texts, original in zip(dialects, before, strict=True):
            texts[name] = original
        postgres_session.load.cache_clear()


def _rewritten(name: str, old: str, new: str) -> AbstractContextManager[None]:
    """A named statement with a part of its text changed."""
    return _stated(name, lambda texts: tuple(text.replace(old, new) for text in texts))


def _shortened(name: str) -> AbstractContextManager[None]:
    """A step without its last statement."""
    return _stated(name, lambda texts: texts[:-1] or texts)


@contextmanager
def _both(*plants: AbstractContextManager[object]) -> Iterator[None]:
    with ExitStack() as stack:
        for plant in plants:
            stack.enter_context(plant)
        yield


def _any_fence_may_finish() -> AbstractContextManager[object]:
    def finish_anyhow(original: Callable[..., Any], tx: Tx, reports: Sequence[Finished], worker: int | None) -> Any:
        fences = {row.id: row.fence for row in tx.records("held", Held, ids=[report.id for report in reports])}
        return original(tx, [msgspec.structs.replace(one, fence=fences.get(one.id, one.fence)) for one in reports])

    return _replaced(finish, "finish", finish_anyhow)


def _acknowledged_before_the_commit() -> AbstractContextManager[object]:
    def perform(original: Callable[..., Any], store: Any, work: Any, **kwargs: Any) -> None:
        original(store, work, **kwargs)
        if work.error is None:
            work.future.set_result(work.result)

    def end(original: Callable[..., Any], work: Any) -> None:
        if not work.future.done():
            original(work)

    return _both(
        _replaced(sqlite.SqliteStore, "_perform", perform),
        _replaced(PendingCall, "end", end),
    )


def _lease_by_the_local_clock() -> AbstractContextManager[object]:
    async def step(original: Callable[..., Any], heart: Any) -> Any:
        local = heart._clock.now()

        def beat(tx: Any, workers: Any, lease_s: float, memory: Any) -> Any:
            session: Any = tx._tx if isinstance(tx, FailingTx) else tx
            now = set_time(session, local)
            try:
                return fleet.beat(tx, workers, lease_s, memory)
            finally:
                set_time(session, now)

        timed = heart._store.calls.timed

        async def beaten(*args: Any) -> Beaten:
            return Beaten(*await timed(beat, *args))

        with mock.patch.object(heart._store, "beat", beaten):
            return await original(heart)

    return _replaced(Heart, "step", step)


@contextmanager
def _always_asking() -> Iterator[None]:
    """Workers that compare what they hold in every round, and do not wait for an answer that is on its way."""
    with (
        _replaced(WorkerLoops, "_expects_an_answer", _nothing(False)),
        mock.patch.object(worker_loops, "ROUNDS_PER_LOOK", 1),
    ):
        yield


@contextmanager
def _given_back_at_the_first_suspicion() -> Iterator[None]:
    def reconcile(original: Callable[..., Any], tx: Tx, worker: int, named: Sequence[str], suspects: Any) -> Any:
        held = tx.records("held_by_worker", Held, worker=worker, most=1000)
        return original(tx, worker, named, [(row.id, row.fence) for row in held])

    with _always_asking(), _replaced(fleet, "reconcile", reconcile):
        yield


def _decided(change: Callable[[Held, Outcome, Move], Move]) -> AbstractContextManager[object]:
    def decide(original: Callable[..., Move], held: Held, outcome: Outcome, *args: Any) -> Move:
        return change(held, outcome, original(held, outcome, *args))

    return _replaced(finish, "decide", decide)


def _cancel_forgotten_by_retries() -> AbstractContextManager[object]:
    def decide(original: Callable[..., Move], held: Held, outcome: Outcome, *args: Any) -> Move:
        if isinstance(outcome, Failed):
            held = msgspec.structs.replace(held, cancel_at=None)
        return original(held, outcome, *args)

    return _replaced(finish, "decide", decide)


def _give_back_counts() -> AbstractContextManager[object]:
    def change(held: Held, outcome: Outcome, move: Move) -> Move:
        return Later(0, held.attempts + 1, outcome.reason) if isinstance(outcome, GivenBack) else move

    return _decided(change)


def _a_repeated_enqueue_inserts_again() -> AbstractContextManager[object]:
    def insert_again(original: Callable[..., Any], tx: Tx, header: Any, items: Any) -> Any:
        fresh = [
            submission.Item(item.id[:-4] + "beef", item.arguments)
            if tx.one("exists", namespace=header.namespace, id=item.id)
            else item
            for item in items
        ]
        return original(tx, header, fresh)

    return _replaced(enqueue, "enqueue", insert_again)


def _key_not_recorded() -> AbstractContextManager[object]:
    def take(original: Callable[..., Any], tx: Tx, owner: Any, kind: str, *args: Any) -> None:
        if kind != keys.IDEMPOTENCY:
            original(tx, owner, kind, *args)

    return _replaced(keys, "take", take)


def _nothing_pushed_back() -> AbstractContextManager[object]:
    def push_back(original: Callable[..., Any], tx: Tx, header: Any, holders: Any, run_at: int) -> set[str]:
        return {one.id for one in holders}

    return _replaced(keys, "_push_back", push_back)


def _dead_letter_forgotten() -> AbstractContextManager[object]:
    def add(original: Callable[..., Any], batch: Any, *args: Any) -> None:
        original(batch, *args)
        batch.dead.clear()

    return _replaced(finish._Batch, "add", add)


def _unique_ignores_the_running() -> AbstractContextManager[object]:
    def holds(original: Callable[..., bool], scope: Scope, window_s: float, status: Status | None, *args: Any) -> bool:
        return status in PENDING if scope is Scope.ACTIVE else original(scope, window_s, status, *args)

    return _replaced(unique, "holds", holds)


def _polling_removed() -> AbstractContextManager[object]:
    async def step(original: Callable[..., Any], dispatcher: Any) -> float | None:
        delay_s: float | None = await original(dispatcher)
        return 0 if delay_s == 0 else None

    return _both(_replaced(Dispatcher, "step", step), _replaced(Supervisor, "_tell_ready", _nothing()))


def _sweeping_removed() -> AbstractContextManager[object]:
    async def ask(original: Callable[..., Any], dispatcher: Any, free: int, is_sweep: bool) -> Any:
        return await original(dispatcher, free, is_sweep and not dispatcher._marks)

    return _both(_replaced(Dispatcher, "_ask", ask), _replaced(Supervisor, "_tell_ready", _nothing()))


def _marks_stay() -> AbstractContextManager[object]:
    def hear(original: Callable[..., Any], dispatcher: Any, hint: Hint) -> None:
        marks = dict(dispatcher._marks)
        original(dispatcher, hint)
        dispatcher._marks.update(marks)

    return _replaced(Dispatcher, "hear", hear)


def _reconcile_removed() -> AbstractContextManager[object]:
    async def rest(original: Callable[..., Any], loops: Any) -> float:
        return float(loops._assignment.lease_s)

    return _replaced(WorkerLoops, "_name_what_we_hold", rest)


def _replays_stay_dead() -> AbstractContextManager[object]:
    def replay(original: Callable[..., Any], tx: Any, *args: Any) -> Any:
        run = tx.run
        with mock.patch.object(tx, "run", lambda name, **params: 0 if name == "undead" else run(name, **params)):
            return original(tx, *args)

    return _replaced(control, "replay", replay)


def _finish_is_not_bound() -> AbstractContextManager[object]:
    def finish_any(original: Callable[..., Any], tx: Tx, reports: Sequence[Finished], worker: int | None) -> Any:
        return original(tx, reports)

    return _replaced(finish, "finish", finish_any)


def _cancel_not_told() -> AbstractContextManager[object]:
    def tell(original: Callable[..., Any], session: Any, hint: Hint) -> None:
        if not isinstance(hint, CancelAsked):
            original(session, hint)

    return _replaced(Session, "tell", tell)


def _nothing(result: Any = None) -> Callable[..., Any]:
    return lambda original, *args, **kwargs: result


@contextmanager
def _late_claims_are_not_disowned() -> Iterator[None]:
    with _always_asking(), _replaced(Dispatcher, "disown", _nothing()):
        yield


def _claims_ignore_the_rank() -> AbstractContextManager[object]:
    """Every lane is taken from to its end, in any order."""
    return _replaced(
        claim_order,
        "reach",
        lambda original, heads, *_: claim_order.Reach(dict.fromkeys(heads, claim_order.LAST_RANK), []),
    )


def _other_blockers_ignored() -> AbstractContextManager[None]:
    return _stated("release", lambda texts: tuple(re.sub(r"b\.execution = \w+\.id", "false", text) for text in texts))


def _jobs_of_others_are_claimed() -> AbstractContextManager[None]:
    return _rewritten(
        "served_lanes", "coalesce(l.runs, l.job) IN (SELECT value FROM json_each(:jobs))", ":jobs IS NOT NULL"
    )


def _delivered_again() -> AbstractContextManager[None]:
    """A delivery without its key: a replay does not see which subscribers have had the event."""
    return _both(
        _stated("delivered", lambda texts: (*texts[:-1], f"SELECT * FROM ({texts[-1]}) had WHERE false")),
        _stated("add_deliveries", lambda texts: (*texts[:-1], f"{texts[-1]} WHERE true ON CONFLICT DO NOTHING")),
    )


def _answers_end_nothing() -> AbstractContextManager[object]:
    """An answer is acknowledged, and the approval waits on until its timeout."""
    return _replaced(approvals, "end_waits", _nothing([None]))


def _undos_repeated() -> AbstractContextManager[object]:
    """A retry of failed undos repeats those that succeeded, too."""

    def retry_letters(original: Callable[[str], str], ended: str) -> str:
        return original(ended).replace("S", ".")

    return _replaced(undo, "retry_letters", retry_letters)


def _maps_are_not_undone() -> AbstractContextManager[object]:
    def first_letters(original: Callable[..., str], graph: Graph, letters: str, has_executions: Any) -> str:
        found = zip(graph.steps, original(graph, letters, has_executions), strict=True)
        return "".join([undo.NOT_UNDONE if step.is_map else letter for step, letter in found])

    return _replaced(undo, "first_letters", first_letters)


BUGS: tuple[Bug, ...] = (
    Bug("finish does not check the fence", _any_fence_may_finish, first=5),
    Bug("a child finishes the execution of another worker", _finish_is_not_bound, first=5),
    Bug("a claim does not raise the fence", lambda: _rewritten("claim", "fence + 1", "fence")),
    Bug("executions of dead workers are not rescued", lambda: _replaced(upkeep, "rescue", _nothing(fleet.Death()))),
    Bug("nothing due is promoted", lambda: _replaced(upkeep, "promote", _nothing(0))),
    Bug("promoted too early", lambda: _rewritten("due", "run_at <= :now", "run_at <= :now + 300000")),
    Bug("acknowledged before the commit", _acknowledged_before_the_commit, ("sqlite",)),
    Bug("leases by the machine's own clock", _lease_by_the_local_clock, first=8),
    Bug("claims without a lease", lambda: _rewritten("claim_heads", "AND w.lease_until > :now", ""), first=14),
    Bug(
        "the local deadline of a lease is ignored",
        lambda: _replaced(Heart, "_lose", _nothing()),
        # A machine without a network keeps its executions, and no kill or drain ends them first.
        events=(Fault.BLACK_HOLE,),
    ),
    # The workers must live on: the executions of dead ones are rescued.
    Bug("a claim whose reply was lost is kept forever", _reconcile_removed, first=2, events=(Fault.DEAF,)),
    Bug("given back at the first suspicion", _given_back_at_the_first_suspicion),
    Bug("late claims are not disowned", _late_claims_are_not_disowned, first=39),
    Bug("a jump of the clock ends every lease", lambda: _replaced(Upkeep, "_notice_jump", _nothing()), first=1),
    Bug("no cap on crashes", lambda: mock.patch.object(lifecycle, "CRASH_CAP", 10**9), first=28),
    Bug("a retry forgets that it was cancelled", _cancel_forgotten_by_retries, first=19),
    Bug("giving back counts an attempt", _give_back_counts),
    Bug("an idempotency key is not recorded", _key_not_recorded),
    Bug("a repeated enqueue inserts again", _a_repeated_enqueue_inserts_again),
    Bug("a failure leaves no dead letter", _dead_letter_forgotten),
    Bug("a replayed dead letter stays dead", _replays_stay_dead),
    Bug("a finished attempt stays in running", lambda: _shortened("finish"), first=3),
    Bug("a success stays in running", lambda: _shortened("finish_successes"), ("sqlite",)),
    Bug("unique keys ignore what is running", _unique_ignores_the_running, first=5),
    Bug("a replaced execution keeps running", lambda: _replaced(end_from_outside, "end_all", _nothing({})), first=11),
    Bug("a debounce pushes nothing back", _nothing_pushed_back),
    Bug(
        "the start deadline is ignored by claims",
        lambda: _replaced(start_deadlines, "is_late", _nothing(False)),
        first=5,
    ),
    Bug("paused queues are claimed from", lambda: _rewritten("claim_heads", "q.paused_at IS NULL", "true")),
    Bug("paused jobs are claimed", lambda: mock.patch.object(claim, "ROW_GATES", claim.ROW_GATES[1:])),
    Bug("a resume loses the place in line", lambda: _rewritten("release", "w.rank", "w.since_at")),
    Bug("a release skips a blocker", _other_blockers_ignored),
    Bug("the rest of a resume is forgotten", lambda: _replaced(blockers, "release_lifted", _nothing(False)), first=4),
    Bug("claims ignore the rank", _claims_ignore_the_rank, first=15),
    Bug("jobs are claimed that the worker does not have", _jobs_of_others_are_claimed, ("sqlite",), first=2),
    Bug("the depth of a queue is not checked", lambda: _replaced(enqueue, "check_depth", _nothing()), first=17),
    Bug("workers rely on hints and do not poll", _polling_removed),
    Bug("rows below a watermark are never swept", _sweeping_removed),
    Bug("a hint does not move the mark back", _marks_stay, first=53),
    Bug("a cancel sends no hint to the worker", _cancel_not_told),
    Bug("a replayed event is delivered again", _delivered_again, runs=True),
    Bug("a wait does not look back", lambda: _replaced(event_waits, "look_back", _nothing()), runs=True, first=3),
    Bug("the rest of an event is forgotten", lambda: _replaced(emit, "open_events", _nothing()), runs=True),
    Bug("a wait times out although it was answered", _answers_end_nothing, first=3, runs=True),
    Bug("a retry of undos undoes a step twice", _undos_repeated, first=3, runs=True),
    Bug("maps are not undone", _maps_are_not_undone, first=3, runs=True),
)


def bugs(database: str) -> list[Bug]:
    """Those that can be planted in this database."""
    return [bug for bug in BUGS if database in bug.databases]
