"""The app of these tests: its jobs, its ledger, and short words to look at what became of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import psycopg

from rota import App, Context, Job
from rota.domain.claim import Claim
from rota.domain.served import Served
from rota.executors.attempt_state import AttemptState
from rota.ops import claim, finish, fleet
from rota.ops.finish import Finished
from rota.sdk.app import registry_of
from rota.store.port import Store
from tests.support.newcomers import newcomer
from tests.support.world import RecordingBus

ROWS = """
SELECT x.job, x.queue, x.priority, x.arguments::jsonb, x.key, x.tags, x.actor, x.deadline - x.run_at AS patience,
       x.run_at - x.created_at AS delay, x.job_version, x.lane, l.queue AS lane_queue, l.app AS lane_app,
       r.rank - x.run_at AS ahead, r.fence AS ready_fence, s.run_at - x.run_at AS later, s.priority AS later_priority,
       e.deadline - x.run_at AS expiry, k.kind, k.key AS held_key, k.arguments_hash, k.holder = x.id AS holds,
       x.headers::jsonb, x.overrides::jsonb,
       to_jsonb(x) - '{id,created_at,run_at,deadline,actor,arguments,headers,overrides}'::text[] AS other_columns,
       to_jsonb(r) - '{id,rank}'::text[] AS other_of_ready, to_jsonb(s) - '{id,run_at}'::text[] AS other_of_scheduled
FROM rota.execution x
JOIN rota.lane l ON l.id = x.lane
LEFT JOIN rota.ready r ON r.id = x.id
LEFT JOIN rota.scheduled s ON s.id = x.id
LEFT JOIN rota.expiry e ON e.id = x.id
LEFT JOIN rota.unique_key k ON k.holder = x.id
WHERE x.id = %s
"""

CLAIM = Claim("", 0, 0, 1, 0, 0, 0, 0, None, "send", "{}", None, 0, 0)
"""A first attempt without overrides."""


class Shop:
    """One app; `send` waits in `mail`, `wrap` in a queue for two."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.app = App("shop", url=url)
        self.app.queue("gifts", max_depth=2)
        self.app.queue("imports", policy="fifo")
        self.app.job(queue="mail")(send)
        self.app.job(queue="gifts")(wrap)
        self.app.job(queue="imports", priority="high", start_within="1h", name="import")(load)

    @property
    def send(self) -> Job[..., Any, Any]:
        return self.app.jobs["send"]

    @property
    def wrap(self) -> Job[..., Any, Any]:
        return self.app.jobs["wrap"]

    @property
    def store(self) -> Store:
        return registry_of(self.app).connection.store()

    def query(self, text: str, *params: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(text.encode(), params)
            return cursor.fetchall() if cursor.description else []

    def count(self) -> int:
        return int(self.query("SELECT count(*) FROM rota.execution")[0][0])

    def ledger(self) -> list[str]:
        return [entry for (entry,) in self.query("SELECT entry FROM ledger ORDER BY entry")]

    def rows(self, id: object) -> list[tuple[Any, ...]]:
        """Everything that an enqueue wrote, but for ids and times, which are given relative to each other."""
        return self.query(ROWS, id)

    # Working.

    def worker(self) -> int:
        joining = newcomer("shop")
        return self.store.transact(fleet.join, joining, 60.0)

    def claim(self, worker: int) -> Claim:
        (attempt,) = self.store.transact(
            claim.claim, worker, Served.one("default", "shop", None, [*self.app.jobs]), 1
        ).claims
        return attempt

    def start(self, job: Job[..., Any, Any], *args: object) -> Context:
        """The context of an attempt that has begun."""
        job.enqueue(*args)
        return self.context(self.claim(self.worker()))

    def context(self, attempt: Claim) -> Context:
        return Context(self.attempt(attempt))

    def attempt(self, claim: Claim) -> AttemptState:
        return AttemptState(claim, None, registry_of(self.app).jobs[claim.job].target.completions)

    def report(self, context: Context, outcome: Any) -> list[str]:
        """What a worker does when the function has ended; returns the ids that were stale."""
        finished = Finished(context.id, context.fence, outcome, written=written(context))
        return self.store.transact(finish.finish, [finished])

    @contextlib.contextmanager
    def hints(self) -> Iterator[RecordingBus]:
        before, recording = self.store.bus, RecordingBus()
        self.store.bus = recording
        yield recording
        self.store.bus = before


def written(context: Context) -> str | None:
    """The result that the attempt has written in a transaction, committed or not."""
    return context._attempt.written


def send(to: str, *, subject: str = "hi") -> str:
    return f"{subject} to {to}"


def wrap(order: int) -> None: ...


def load(rows: Any, note: Any = None) -> None: ...
