"""Everything that can be asked of a store, drawn from a seed. An action is the same for both sides."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from rota.clock import ManualClock
from rota.domain import payload
from rota.domain.instant import MICROSECONDS
from rota.domain.job import Definition, Queue
from rota.domain.outcome import Cancelled, Error, Failed, GivenBack, Outcome, Snoozed, Succeeded, TimedOut
from rota.domain.rank import Policy
from rota.domain.requirement import Needs
from rota.domain.retry import Fixed
from rota.domain.served import Served
from rota.domain.status import Reason, Status
from rota.domain.subscription import Subscribes
from rota.domain.unique import OnConflict, Unique
from rota.ids import LAST_ID, IdSource
from rota.ops import claim, control, define, deploy, enqueue, finish, fleet, job_pauses, statistics, upkeep
from rota.ops.events import emit, replay, subscriptions
from rota.ops.events.chores import work_on_events
from rota.ops.events.emit import Emission, EmitHeader
from rota.ops.runs import pause
from rota.ops.runs.approvals import Answer, answer
from rota.ops.runs.chores import work_on_runs
from rota.ops.runs.retry import Request, retry
from rota.ops.submission import Header, Item
from rota.store.port import Tx, declared
from rota.store.reader import Filter
from tests.differential import looks
from tests.differential.side import Side
from tests.support.newcomers import newcomer

NAMESPACE = "default"
APPS = ("shop", "post")
JOBS = ["send", "count", "unsend"]
GRAPHS: dict[str, dict[str, Any]] = {
    "flow": {
        "steps": [
            {"id": "a", "job": "send", "with": {"n": 1}},
            {"id": "m", "job": "count", "map": [1, 2, 3, 4], "as": "n", "at_once": 2, "tolerate": 1, "after": ["a"]},
            {"id": "b", "job": "send", "with": {"n": {"$": "a"}, "all": {"$": "m"}}},
            {"id": "c", "job": "send", "when": [{"failed": "b"}], "delay": 2},
        ],
        "result": {"$default": [{"$": "b"}, None]},
        "timeout": 30,
    },
    "outer": {
        "steps": [
            {"id": "f", "workflow": "flow", "may_fail": True},
            {"id": "m", "workflow": "flow", "map": [1, 2], "as": "x", "tolerate": "50%"},
            {"id": "z", "job": "send", "after": ["f", "m"], "rule": "always"},
        ],
        "result": {"$outcomes": "m"},
        "on_failure": "stop",
    },
    "waits": {
        "steps": [
            {"id": "s", "sleep": 2},
            {"id": "ok", "approve": {"text": "Go on?", "timeout": 6, "on_timeout": "approve"}},
            {
                "id": "e",
                "event": {"names": ["paid", "declined"], "subject": "ä€", "lookback": 5, "timeout": 8},
                "after": ["s"],
            },
            {
                "id": "f",
                "event": {"names": ["paid"], "where": {"n": {"ge": 1}}, "timeout": 3, "on_timeout": "skip"},
                "after": ["e"],
            },
            {"id": "b", "job": "send", "with": {"n": {"$": "ok.approved"}}, "after": ["f"], "rule": "all_done"},
        ],
        "result": {"$default": [{"$": "e"}, None]},
    },
    "saga": {
        "steps": [
            {"id": "a", "job": "send", "undo": "unsend", "undo_failed": True},
            {"id": "m", "job": "count", "map": [1, 2, 3], "as": "n", "at_once": 2, "undo": "unsend", "after": ["a"]},
            {"id": "inner", "workflow": "booking", "after": ["a"]},
            {"id": "ok", "approve": {"text": "Pay?", "timeout": 3, "required": True}, "after": ["m", "inner"]},
            {"id": "b", "job": "send", "after": ["ok"]},
        ],
    },
    "booking": {"steps": [{"id": "a", "job": "count", "undo": "unsend"}, {"id": "b", "job": "send", "after": ["a"]}]},
}
FLOWS = list(GRAPHS)
EVENTS = ("paid", "paid", "declined", "unheard")
MOST_ROUNDS = 100
QUEUES = ("default", "line", "tight", "new")
NOTES = ("", "a note", 'quotes " and \\ and ä€𝄞')
ERROR = Error("ValueError", 'boom "quoted" \\ {braces}', "Traceback …")
LEASE_S = 10.0
Ask = Callable[[Side], Any]


class Actions:
    """Draws one action after the other. It remembers what was accepted and claimed, which is the same on both sides."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.clock = ManualClock(seed=chance.randrange(1000))
        self._ids = IdSource(self.clock)
        self.known: list[str] = ["00000000-0000-7000-8000-000000000000", "nonsense"]
        self.attempts: list[tuple[str, int, int]] = []
        """Id, fence and place of the worker of what was claimed, newest last."""
        self._places = 0
        self.runs: list[str] = []
        self._events: list[str] = []
        self._suspects: list[tuple[str, int]] = []
        self._kinds: list[tuple[Callable[[], tuple[str, Ask]], int]] = [
            (self._register, 2),
            (self._enqueue, 24),
            (self._enqueue_many, 6),
            (self._enqueue_together, 3),
            (self._claim, 20),
            (self._finish, 20),
            (self._drive, 10),
            (self._cancel, 5),
            (self._run_now, 5),
            (self._tend_the_dead, 6),
            (self._pause, 4),
            (self._pause_job, 4),
            (self._on_run, 8),
            (self._answer, 8),
            (self._emit, 10),
            (self._replay_event, 3),
            (self._join, 6),
            (self._deploy, 2),
            (self._fleet, 8),
            (self._reconcile, 3),
            (self._chore, 16),
            (self._pass_time, 16),
        ]

    def first(self) -> list[tuple[str, Ask]]:
        """Without these nothing else would be accepted."""
        return [self._register_app(app) for app in APPS] + [self._join() for _ in range(2)]

    def draw(self) -> tuple[str, Ask]:
        """A description, and what to ask."""
        kinds = [kind for kind, _ in self._kinds]
        return self._chance.choices(kinds, [weight for _, weight in self._kinds])[0]()

    def learn(self, answer: Any) -> None:
        """Takes note of the answer that both gave."""
        if isinstance(answer, dict) and "claims" in answer:
            self.attempts += [(one["id"], one["fence"], self._claimer) for one in answer["claims"]]

    # Definitions.

    def _register(self) -> tuple[str, Ask]:
        return self._register_app(self._chance.choice(APPS))

    def _register_app(self, app: str) -> tuple[str, Ask]:
        declared = self._declared()

        def ask(side: Side) -> Any:
            side.store.transact(define.register, NAMESPACE, app, *declared)
            side.store.transact(subscriptions.declare, NAMESPACE, app, declared[0])

        return f"register {app} {declared}", ask

    def _declared(self) -> tuple[list[Definition], list[Queue]]:
        policy = Fixed(attempts=self._chance.randint(1, 4), delay=self._chance.choice([0, 2, 10]))
        total_s = self._chance.choice([None, None, 5.0])
        on = {
            "send": Subscribes(["declined", "paid"], where=self._chance.choice([{}, {"n": {"ge": 2}}])),
            "count": Subscribes(["paid"], debounce_s=self._chance.choice([None, 1.0])),
        }
        definitions = [
            Definition(
                name=job,
                retry=policy.describe(),
                total_timeout_s=total_s,
                parameters={"n": {"first": True}},
                on=on.get(job) if self._chance.random() < 0.8 else None,
            )
            for job in JOBS
        ]
        definitions += [
            Definition(
                name=name,
                target={"kind": "workflow", "graph": {"rota": "workflow/1", "name": name, **graph}},
                needs=Needs(workflow=True),
            )
            for name, graph in GRAPHS.items()
        ]
        queues = [Queue(name="line", policy=Policy.FIFO), Queue(name="tight", max_depth=self._chance.randint(2, 5))]
        return definitions, queues

    def _deploy(self) -> tuple[str, Ask]:
        app = self._chance.choice(APPS)
        if self._chance.random() < 0.5:
            return f"settle {app}", lambda side: side.store.transact(deploy.settle, NAMESPACE, app, LEASE_S)
        number = self._chance.randint(1, 4)
        return f"use {app} {number}", lambda side: side.store.transact(
            deploy.use, NAMESPACE, app, number, LEASE_S, "ann"
        )

    def _pause(self) -> tuple[str, Ask]:
        queue, note = self._chance.choice([*QUEUES, "nowhere"]), self._chance.choice(NOTES)
        if self._chance.random() < 0.35:
            return f"pause {queue}", lambda side: side.store.transact(define.pause_queue, NAMESPACE, queue, "ann", note)
        return f"resume {queue}", lambda side: side.store.transact(define.resume_queue, NAMESPACE, queue, "ann")

    def _pause_job(self) -> tuple[str, Ask]:
        app, job = self._chance.choice(APPS), self._chance.choice([*JOBS, "nothing"])
        if self._chance.random() < 0.5:
            return f"pause {job}", lambda side: side.store.transact(job_pauses.pause, NAMESPACE, app, job, "ann")
        return f"resume {job}", lambda side: side.store.transact(job_pauses.resume, NAMESPACE, app, job, "ann")

    # Enqueueing.

    def _enqueue(self) -> tuple[str, Ask]:
        header, items = self._submission()
        return f"enqueue {header} {items}", lambda side: side.store.transact(enqueue.enqueue, header, items)

    def _enqueue_many(self) -> tuple[str, Ask]:
        """Unique keys in bulk, some of them twice, many of them held by what an earlier bulk has created."""
        header, _ = self._submission()
        scopes: list[Any] = ["queued", "active", "forever", 5.0]
        action = self._chance.choice([one.value for one in OnConflict if one is not OnConflict.REJECT] * 4 + ["reject"])
        unique = Unique(scope=self._chance.choice(scopes), on_conflict=action)
        job, queue = self._chance.choice(JOBS), self._chance.choice(["default", "default", "line", "tight"])
        header = msgspec.structs.replace(header, job=job, queue=queue, key=None, unique=unique)
        numbers = [self._chance.randrange(60) for _ in range(self._chance.choice([5, 20, 40]))]
        ids = self._ids.many(len(numbers))
        self.known += ids
        items = [Item(id, f'{{"bulk":{number}}}') for id, number in zip(ids, numbers, strict=True)]
        return f"bulk {header} {numbers}", lambda side: side.store.transact(enqueue.enqueue, header, items)

    def _enqueue_together(self) -> tuple[str, Ask]:
        header, _ = self._submission()
        calls = [(header, self._items(1)), self._submission(), (header, self._items(2))]
        together = declared(enqueue.enqueue).together
        assert together is not None

        def several(tx: Tx) -> Any:
            return together(tx, calls)

        return f"enqueue together {calls}", lambda side: side.store.transact(several)

    def _submission(self) -> tuple[Header, list[Item]]:
        header = Header(
            namespace=NAMESPACE,
            app=self._chance.choice(APPS),
            job=self._chance.choice([*JOBS, *JOBS, *JOBS, *JOBS, *FLOWS, *FLOWS, "nothing"]),
            queue=self._chance.choice(QUEUES),
            actor="test",
            priority=self._chance.choice([0, 0, 10, -10]),
            tags=self._chance.choice([None, '["a"]']),
            headers=self._chance.choice([None, None, '{"tenant":"ä€"}']),
            overrides=self._chance.choice([None, None, '{"timeout_s":1.5}']),
            **self._when(),
            **self._keys(),
        )
        if header.job in FLOWS:
            items = self._items(1)
            self.runs += [item.id for item in items]
            return header, items
        return header, self._items(1 if header.key is not None else self._chance.choice([1, 1, 1, 2, 4]))

    def _items(self, count: int) -> list[Item]:
        ids = self._ids.many(count)
        if self._chance.random() < 0.04:
            ids[0] = self._chance.choice(self.known[2:] or ids)
        self.known += ids
        arguments: list[Any] = [
            {},
            {"n": 1},
            {"text": 'ä€𝄞 "quoted" \\ \n {a,b} NULL'},
            {"n": 1.0},
            {"list": [None, []]},
        ]
        return [Item(id, msgspec.json.encode(self._chance.choice(arguments)).decode()) for id in ids]

    def _when(self) -> dict[str, Any]:
        now = self.clock.now()
        when: list[dict[str, Any]] = [{}, {}, {"delay_s": 3.0}, {"at": now + 5 * MICROSECONDS}, {"at": now - 1}]
        limits: list[dict[str, Any]] = [{}, {}, {}, {"start_within_s": 2.0}, {"start_by": now + 4 * MICROSECONDS}]
        return {**self._chance.choice(when), **self._chance.choice(limits)}

    def _keys(self) -> dict[str, Any]:
        match self._chance.randrange(7):
            case 0:
                return {"key": self._chance.choice(["one", "two", 'odd " key \\'])}
            case 1:
                once = Unique(key="one", on_conflict=self._chance.choice(list(OnConflict)).value)
                return {"key": self._chance.choice(["three", "four"]), "unique": once}
            case 2 | 3:
                scopes: list[Any] = ["queued", "active", "forever", 5.0]
                action = self._chance.choice(list(OnConflict)).value
                key = self._chance.choice([None, "one", "two"])
                return {"unique": Unique(key=key, scope=self._chance.choice(scopes), on_conflict=action)}
            case _:
                return {}

    # Working.

    def _claim(self) -> tuple[str, Ask]:
        place, slots = self._place(), self._chance.choice([0, 1, 2, 5])
        app = self._chance.choice(APPS)
        queues = self._chance.choice([None, None, None, ["default"], ["line", "tight", "nowhere"], []])
        jobs = self._chance.choice([JOBS + FLOWS, JOBS + FLOWS, JOBS[:1], JOBS[1:] + FLOWS])
        marked = self._chance.random() < 0.5
        self._claimer = place

        def ask(side: Side) -> Any:
            marks = side.marks_of(place) if marked else None
            served = Served.one(NAMESPACE, app, queues, jobs)
            taken = side.store.transact(claim.claim, side.worker(place), served, slots, marks)
            side.marks.setdefault(place, {}).update({lane: (rank, id) for lane, rank, id in taken.marks})
            return taken

        return f"claim {place} {app} {queues} {jobs} {slots} {'marked' if marked else ''}", ask

    def _finish(self) -> tuple[str, Ask]:
        recent = self.attempts[-12:]
        reports = []
        for _ in range(self._chance.choice([1, 1, 2, 5])):
            if recent:
                id, fence, _ = self._chance.choice(recent)
                fence += self._chance.choice([0, 0, 0, 0, 0, 0, 0, 1, -1])
                reports.append(finish.Finished(id, fence, self._outcome(), jitter=0.25))
        return f"finish {reports}", lambda side: side.store.transact(finish.finish, reports)

    def _drive(self) -> tuple[str, Ask]:
        """A worker that does a lot at once, most of it well: runs come to their end."""
        app, rounds = self._chance.choice(APPS), self._chance.choice([2, 4, 8])
        outcomes = [Succeeded("[1]") if self._chance.random() < 0.85 else self._outcome() for _ in range(50)]
        name = f"driver {len(self.known)}"
        joining = newcomer(app, namespace=NAMESPACE, name=name, concurrency=9)

        def ask(side: Side) -> Any:
            worker = side.store.transact(fleet.join, joining, LEASE_S)
            done: list[Any] = []
            for _ in range(rounds):
                served = Served.one(NAMESPACE, app, None, JOBS + FLOWS)
                taken = side.store.transact(claim.claim, worker, served, 5)
                ended = zip(taken.claims, outcomes[len(done) % 40 :], strict=False)
                reports = [finish.Finished(one.id, one.fence, outcome, jitter=0.25) for one, outcome in ended]
                done += [one.id for one in reports]
                done.append(side.store.transact(finish.finish, reports) if reports else taken.has_more)
                side.store.transact(work_on_runs, 0)
            side.store.transact(fleet.leave, worker)
            return done

        return f"drive {app} {rounds}", ask

    def _outcome(self) -> Outcome:
        outcomes: Sequence[Outcome] = [
            Succeeded('{"a":"ä€𝄞 \\" \\\\"}'),
            Succeeded(),
            Succeeded("[null]"),
            Failed(ERROR),
            Failed(ERROR),
            Failed(ERROR, Reason.BAD_RESULT, permanent=True),
            Failed(ERROR, retry_in_s=4.0),
            TimedOut(ERROR),
            TimedOut(ERROR, total=True),
            Cancelled(),
            Snoozed(3.0),
            GivenBack(Reason.NOT_BEGUN, 2.0),
            GivenBack(Reason.DRAINED),
        ]
        return self._chance.choice(outcomes)

    # Operators.

    def _cancel(self) -> tuple[str, Ask]:
        id = self._id()
        return f"cancel {id}", lambda side: side.store.transact(control.cancel, NAMESPACE, id, "ann")

    def _run_now(self) -> tuple[str, Ask]:
        id = self._id()
        return f"run now {id}", lambda side: side.store.transact(control.run_now, NAMESPACE, id, "ann")

    def _tend_the_dead(self) -> tuple[str, Ask]:
        # The dead are among those that were claimed.
        some = [id for id, _, _ in self._chance.sample(self.attempts, min(6, len(self.attempts)))] + [self._id()]
        match self._chance.randrange(3):
            case 0:
                return f"discard {some}", lambda side: side.store.transact(control.discard, NAMESPACE, some, "ann")
            case 1:
                ids = dict(zip(some, self._ids.many(len(some)), strict=True))
                self.known += ids.values()
                return f"replay {ids}", lambda side: side.store.transact(control.replay, NAMESPACE, ids, "ann")
            case _:
                new = self._ids.new()
                self.known.append(new)
                return f"repeat {some[0]} {new}", lambda side: side.store.transact(
                    control.repeat, NAMESPACE, some[0], new, "ann"
                )

    def _on_run(self) -> tuple[str, Ask]:
        id = self._chance.choice([*self.runs[-8:], self._id()])
        match self._chance.randrange(5):
            case 0:
                return f"pause run {id}", lambda side: side.store.transact(pause.pause, NAMESPACE, id, "ann", "why")
            case 1 | 2:
                return f"resume run {id}", lambda side: side.store.transact(pause.resume, NAMESPACE, id, "ann")
            case 3:
                return f"stop run {id}", lambda side: side.store.transact(control.cancel, NAMESPACE, id, "ann")
            case _:
                new = self._ids.new()
                self.known.append(new)
                self.runs.append(new)
                request = Request(self._chance.choice([None, None, "start", "b", "m"]))
                return f"retry {id} {request}", lambda side: side.store.transact(
                    retry, NAMESPACE, id, new, "ann", request
                )

    def _answer(self) -> tuple[str, Ask]:
        id, step = self._chance.choice([*self.runs[-12:], self._id()]), self._chance.choice([None, None, "ok", "a"])
        given = Answer(self._chance.random() < 0.6, "ann", self._chance.choice(NOTES), step)
        return f"answer {id} {given}", lambda side: side.store.transact(answer, NAMESPACE, id, given)

    # Events.

    def _emit(self) -> tuple[str, Ask]:
        header = EmitHeader(NAMESPACE, "test", delivers_later=self._chance.random() < 0.3)
        emissions = [self._emission() for _ in range(self._chance.choice([1, 1, 1, 4]))]
        self._events += [one.id for one in emissions]
        self.known += [one.id for one in emissions]
        return f"emit {header} {emissions}", lambda side: side.store.transact(emit.emit, header, emissions)

    def _emission(self) -> Emission:
        text = self._chance.choice(['{"n":1}', '{"n":2}', '{"n":3,"text":"ä€𝄞 \\""}', "null"])
        key = self._chance.choice([None, None, "one", 'odd " key \\'])
        subject, digest = self._chance.choice(["", "ä€", "other"]), "" if key is None else payload.digest(text)
        return Emission(self._ids.new(), self._chance.choice(EVENTS), text, subject, key, digest)

    def _replay_event(self) -> tuple[str, Ask]:
        id = self._chance.choice([*self._events[-8:], self._id()])
        if self._chance.random() < 0.5:
            return f"replay event {id}", lambda side: side.store.transact(replay.replay, NAMESPACE, id, "ann")
        new = self._ids.new()
        self._events.append(new)
        return f"repeat event {id} {new}", lambda side: side.store.transact(replay.repeat, NAMESPACE, id, new, "ann")

    # The fleet.

    def _join(self) -> tuple[str, Ask]:
        place, app = self._places, self._chance.choice(APPS)
        self._places += 1
        joining = newcomer(
            app,
            namespace=NAMESPACE,
            name=f"worker {place}",
            pid=place,
            queues=self._chance.choice([None, ["default", 'odd "'], []]),
            jobs=self._chance.choice([["send", "count"], ["send"], ["receive", "send"], []]),
            concurrency=3,
        )

        declared: tuple[Any, ...] | None = (*self._declared(), {}) if self._chance.random() < 0.5 else None

        def ask(side: Side) -> Any:
            number = declared and side.store.transact(deploy.declare, NAMESPACE, app, *declared)
            who = msgspec.structs.replace(joining, deploy=number)
            side.workers.append(side.store.transact(fleet.join, who, LEASE_S))
            return place, number

        return f"join {place} {app} {declared}", ask

    def _fleet(self) -> tuple[str, Ask]:
        place, other = self._place(), self._place()
        match self._chance.randrange(8):
            case 0:
                return f"drain {place}", lambda side: side.store.transact(fleet.drain, side.worker(place))
            case 1:
                return f"leave {place}", lambda side: side.store.transact(fleet.leave, side.worker(place))
            case 2:
                cause = self._chance.choice(NOTES)
                return f"declare dead {place}", lambda side: side.store.transact(
                    fleet.declare_dead, side.worker(place), cause
                )
            case _:

                def beat(side: Side) -> Any:
                    named = [side.worker(place), side.worker(other)]
                    return sorted(map(side.workers.index, side.store.transact(fleet.beat, named, LEASE_S)))

                return f"beat {place} {other}", beat

    def _reconcile(self) -> tuple[str, Ask]:
        place, suspects = self._place(), list(self._suspects)
        named = [id for id, _, _ in self.attempts if self._chance.random() < 0.7]
        self._suspects = [(id, fence) for id, fence, holder in self.attempts[-10:] if holder == place]
        return f"reconcile {place} {len(named)} {suspects}", lambda side: side.store.transact(
            fleet.reconcile, side.worker(place), named, suspects
        )

    # Time and chores.

    def _chore(self) -> tuple[str, Ask]:
        match self._chance.randrange(8):
            case 6 | 7:
                return "events", _work_on_events
            case 4 | 5:
                return "runs", lambda side: side.store.transact(work_on_runs, 0)
            case 0:
                looked_at = self._chance.choice([None, None, self.clock.now(), self.clock.now() - 60 * MICROSECONDS])
                return f"rescue {looked_at}", lambda side: side.store.transact(upkeep.rescue, LEASE_S, looked_at)
            case 1:
                return "expire", lambda side: side.store.transact(upkeep.expire)
            case 2:
                return "fold", lambda side: side.store.transact(statistics.fold, 5) < 0
            case _:
                return "promote", lambda side: side.store.transact(upkeep.promote)

    def _pass_time(self) -> tuple[str, Ask]:
        seconds = self._chance.choice([0.001, 0.1, 0.5, 0.5, 1.0, 1.0, 1.0, 2.0, 3.0, 12.0, -2.0])
        self.clock.advance(seconds)
        return f"{seconds} s pass", lambda side: side.clock.advance(seconds)

    def every_look(self) -> list[tuple[str, Ask]]:
        """Every way to look, each once."""
        return [self._look(name, look) for name, look in looks.LOOKS]

    def _look(self, name: str, look: Callable[[Side, looks.Asked], Any]) -> tuple[str, Ask]:
        id, place = self._id(), self._place()
        wanted = self._filter()
        reason = self._chance.choice([None, None, "error", "crash_loop"])
        asked = looks.Asked(id, place, [one for one in self.known[-20:] if self._chance.random() < 0.5], wanted, reason)
        return f"look {name} {asked}", lambda side: look(side, asked)

    def _filter(self) -> Filter:
        pick = self._chance.choice
        return Filter(
            status=pick([None] * 6 + [*Status]),
            job=pick([None] * 6 + [*JOBS]),
            app=pick([None] * 6 + [*APPS]),
            queue=pick([None] * 6 + [*QUEUES]),
            since=pick([None] * 3 + [self.clock.now() - 5 * MICROSECONDS]),
            error=pick([None, None, None, "BOOM", "%"]),
            before=pick([LAST_ID, LAST_ID, "nonsense", *self.known[2:][-5:]]),
            limit=pick([1, 3, 100]),
        )

    def _place(self) -> int:
        """Mostly one of the youngest, who may still have a lease; now and then one who has not come yet."""
        return self._places - self._chance.choice([0, 1, 1, 1, 1, 2, 2, 2, 3])

    def _id(self) -> str:
        return self._chance.choice(self.known[-40:] + self.known[:2])


def _work_on_events(side: Side) -> None:
    """Until nothing is left to do. PostgreSQL needs more rounds: it settles waits that SQLite never has to."""
    for _ in range(MOST_ROUNDS):
        if not side.store.transact(work_on_events):
            return
