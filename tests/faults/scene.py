"""A database that is about to fail, with everything around it: callers that keep a journal, real workers, a checker."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self
from unittest import mock

import psycopg

from rota import App
from rota.sdk.app import registry_of
from tests.faults import jobs, journal
from tests.faults.enqueuer import Callers
from tests.kill.processes import children_of
from tests.support.waiting import PATIENCE_S, eventually

REPOSITORY = Path(__file__).parents[2]
BODY_S = 0.01
FIRST_CLAIM_S = 4.0
"""How long after the server's return the first claim may come: two seconds, and as many for a machine that is busy."""
_LINE = re.compile(r"^\S+ \S+ (?:WARNING|ERROR|CRITICAL) ")


class Scene:
    """`url` is the database as clients reach it, `direct` as the checker does, without faults."""

    def __init__(self, folder: Path, url: str, direct: str | None = None, **settings: object) -> None:
        self.folder = folder
        self.url = url
        self.direct = direct or url
        self.settings = {"lease_s": 5, "poll_s": 0.2, "grace_s": 5, "busy_s": 20, **settings}
        self.app = self.new_app()
        registry_of(self.app).connection.store()  # Makes the tables.
        self._callers: list[Callers] = []
        self._processes: list[subprocess.Popen[bytes]] = []
        self._workers: list[Worker] = []

    def environment(self, **settings: object) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ROTA_")}
        ours = {f"ROTA_{name.upper()}": str(value) for name, value in {**self.settings, **settings}.items()}
        effects = {jobs.EFFECTS: str(self.folder / "effects"), "PYTHONPATH": str(REPOSITORY)}
        return {**kept, "ROTA_URL": self.url, **ours, **effects}

    def new_app(self, **settings: object) -> App:
        """An app in this process, which enqueues with the settings of the scene."""
        with mock.patch.dict(os.environ, self.environment(**settings), clear=True):
            return jobs.declare(App("faults"))

    # --- Those who take part ---

    def fill(self, count: int, body_s: float = BODY_S) -> None:
        """A backlog, so that there are executions to claim at every moment."""
        path = self._new_journal("backlog")
        kept = journal.Journal(path)
        tickets = [f"{path.stem}-{number}" for number in range(count)]
        for ticket in tickets:
            kept.add(ticket, journal.Answer.ASKED)
        handles = self.app.jobs["work"].enqueue_many([(ticket, body_s) for ticket in tickets])
        for ticket, handle in zip(tickets, handles, strict=True):
            kept.add(ticket, journal.Answer.ACCEPTED, handle.id)
        kept.close()

    def callers(self, threads: int, **how: Any) -> Callers:
        """Threads that enqueue from now on."""
        callers = Callers(self.app, self._new_journal("threads"), threads, **how)
        self._callers.append(callers)
        return callers

    def caller_process(self, threads: int = 1) -> None:
        """The same in a process of its own."""
        command = [sys.executable, "-m", "tests.faults.enqueuer", str(self._new_journal("process")), str(threads)]
        with (self.folder / "enqueuer.log").open("ab") as log:
            self._processes.append(
                subprocess.Popen(
                    command, cwd=self.folder, env=self.environment(), stdin=subprocess.PIPE, stdout=log, stderr=log
                )
            )

    def worker(self, *flags: str, wait: bool = True, **settings: object) -> Worker:
        """A worker that has joined, if there is something to join."""
        newest = max(self.live_workers(), default=0) if wait else 0
        worker = Worker(self.folder, flags, self.environment(**settings))
        self._workers.append(worker)
        if wait:
            eventually(lambda: worker.check() and max(self.live_workers(), default=0) > newest, what="a worker")
        return worker

    def stop_calling(self) -> None:
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.close()
        for callers in self._callers:
            callers.stop()
        for process in self._processes:
            assert process.wait(PATIENCE_S * 3) == 0, (self.folder / "enqueuer.log").read_text()
        self._callers, self._processes = [], []

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
        for worker in self._workers:
            worker.close()
        self.app.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- What can be seen ---

    def rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.direct, autocommit=True, options="-c search_path=rota") as connection:
            return connection.execute(query.encode(), parameters or None).fetchall()

    def value(self, query: str, *parameters: object) -> Any:
        return self.rows(query, *parameters)[0][0]

    def now(self) -> int:
        """The database's clock."""
        return int(self.value("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"))

    def live_workers(self) -> list[int]:
        return [row[0] for row in self.rows("SELECT id FROM worker WHERE stopped_at IS NULL")]

    def first_claim_after(self, instant: int) -> float:
        """Seconds from an instant of the database's clock to the first claim after it, by the same clock.

        They are printed as well: what was measured is worth more than that it was below a bound.
        """
        query = """
            SELECT min(started_at) FROM (
                SELECT started_at FROM running UNION ALL SELECT started_at FROM finished) s WHERE started_at >= %s"""
        found = eventually(lambda: self.value(query, instant), what="a claim")
        first_s = float(found - instant) / 1_000_000
        print(f"first claim after {first_s:.2f} s")
        return first_s

    def told(self) -> journal.Told:
        return journal.read(self.folder.glob("journal-*"))

    def wait_until_all_ended(self, timeout_s: float = 60) -> None:
        """Fails if none ends for so long: on a busy machine thousands may have been accepted."""
        pending = (
            "SELECT count(*) FROM (SELECT id FROM ready UNION SELECT id FROM running UNION SELECT id FROM scheduled) p"
        )
        while left := int(self.value(pending)):
            eventually(
                lambda left=left: self.value(pending) < left,  # type: ignore[misc]
                timeout_s,
                what="the end of more of what was accepted",
            )

    # --- What must be so ---

    def check(self, *, crashes: bool = False) -> None:
        """Stops the callers, lets everything finish, and compares the records."""
        self.stop_calling()
        self.wait_until_all_ended()
        told = self.told()
        assert told.accepted, "nothing was accepted: the test shows nothing"
        problems = [*self.stored_problems(), *self._ended(told, crashes), *self._effects()]
        assert not problems, "\n".join(map(str, problems[:20]))

    def stored_problems(self) -> Iterator[str]:
        """An accepted execution is stored once, under the id that the caller got; a refused one is not stored."""
        told = self.told()
        stored = self.rows("SELECT (arguments::jsonb)->>'ticket', id::text FROM execution WHERE job = 'work'")
        by_ticket = dict(stored)
        for ticket, count in Counter(ticket for ticket, _ in stored).items():
            if count > 1:
                yield f"{ticket} is stored {count} times"
        for ticket, id in told.accepted.items():
            if by_ticket.get(ticket) != id:
                yield f"{ticket} was accepted as {id} and is stored as {by_ticket.get(ticket)}"
        for ticket in by_ticket.keys() & told.refused:
            yield f"{ticket} was refused and is stored"
        for ticket in by_ticket.keys() - told.accepted.keys() - told.unknown:
            yield f"{ticket} is stored, and no caller got its id"

    def _ended(self, told: journal.Told, crashes: bool) -> Iterator[str]:
        """Every execution ended once, in success, and no crash was charged to it."""
        ends = self.rows("SELECT id::text, status, reason, crashes, fence FROM finished WHERE final = 1")
        for id, count in Counter(row[0] for row in ends).items():
            if count > 1:
                yield f"{id} ended {count} times"
        by_id = {row[0]: row for row in ends}
        for ticket, id in told.accepted.items():
            end = by_id.get(id)
            if end is None or end[1] != "success":
                yield f"{ticket} ({id}) ended as {end}"
            elif end[3] and not crashes:
                yield f"{ticket} ({id}) was charged {end[3]} crashes"
        open_places = "SELECT id::text FROM ready UNION ALL SELECT id::text FROM running"
        for (id,) in self.rows(open_places):
            yield f"{id} is still in a state table"

    def _effects(self) -> Iterator[str]:
        """Every success ran under its fence, and no fence was run twice."""
        path = self.folder / "effects"
        lines = [tuple(line.split()) for line in path.read_text().splitlines()] if path.exists() else []
        for line, count in Counter(lines).items():
            if count > 1:
                yield f"{line} happened {count} times"
        done = set(lines)
        for id, fence in self.rows("SELECT id::text, fence FROM finished WHERE final = 1 AND status = 'success'"):
            if (id, str(fence), "ended") not in done:
                yield f"{id} succeeded at fence {fence}, which never ran to its end"

    def _new_journal(self, kind: str) -> Path:
        return self.folder / f"journal-{kind}-{len(list(self.folder.glob('journal-*')))}"


class Worker:
    """One `rota worker`: a supervisor and its children."""

    def __init__(self, folder: Path, flags: tuple[str, ...], environment: dict[str, str]) -> None:
        self._log = folder / f"worker-{len(list(folder.glob('worker-*')))}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "rota", "worker", "tests.faults.jobs:app", *flags],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.pid = self._process.pid

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def complaints(self) -> list[str]:
        """What it logged as a warning or worse, and whatever is no line of a log, such as a traceback."""
        lines = self.log().splitlines()
        return [line for line in lines if _LINE.match(line) or not re.match(r"^\d{4}-\d\d-\d\d ", line)]

    def check(self) -> bool:
        """True as long as it runs; otherwise fails with its last output."""
        assert self._process.poll() is None, self.log()
        return True

    def children(self) -> list[int]:
        return children_of(self.pid)

    def stop(self) -> int:
        self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        return self._process.wait(PATIENCE_S)

    def close(self) -> None:
        """Ends it the hard way; its children die with it."""
        self._process.kill()
        self._process.wait(PATIENCE_S)
