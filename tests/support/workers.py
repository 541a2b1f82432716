"""Worker processes, started as a user would, and what a test sees of them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from rota import App, Handle, Status
from rota.domain import usage
from rota.domain.note import Line, State
from rota.domain.usage import Usage
from rota.sdk.app import registry_of
from rota.store import notes, reader
from rota.store.reader import ExecutionRow, WorkerRow
from rota.views import execution as executions
from tests.kill.processes import children_of, spawners_of
from tests.support import jobs
from tests.support.databases import fresh_file
from tests.support.waiting import PATIENCE_S, eventually

REPOSITORY = Path(__file__).parents[2]
JOBS = "tests.support.jobs:app"


class Site:
    """A folder with a journal and gates; a database; the app whose jobs the workers run; and the workers."""

    def __init__(self, folder: Path, url: str = "") -> None:
        self.folder = folder
        self.url = url or fresh_file(folder)
        self.app = App("engine", url=self.url)
        jobs.declare(self.app)
        registry_of(self.app).connection.store()
        self._workers: list[Worker] = []

    def enqueue(self, job: str, /, *args: object, **kwargs: object) -> Handle[Any]:
        return self.app.jobs[job].enqueue(*args, **kwargs)

    def worker(self, *flags: str, app: str = JOBS, **settings: object) -> Worker:
        """A worker that has joined."""
        newest = max((row.id for row in self.live()), default=0)
        worker = self.start_worker(*flags, app=app, **settings)
        eventually(lambda: worker.check() and any(row.id > newest for row in self.live()), what="a worker that joins")
        return worker

    def start_worker(self, *flags: str, app: str = JOBS, **settings: object) -> Worker:
        """`settings` are ROTA_… variables in small letters."""
        variables = {f"ROTA_{name.upper()}": str(value) for name, value in settings.items()}
        worker = Worker(self.folder, self.url, flags, variables, app)
        self._workers.append(worker)
        return worker

    def open(self, gate: str) -> None:
        (self.folder / gate).touch()

    def journal(self, event: str) -> list[tuple[str, int, int]]:
        """The lines of the journal that tell of `event`: id, fence and the last word, which is mostly a pid."""
        path = self.folder / "journal"
        lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        return [(id, int(fence), int(last)) for kind, id, fence, last in lines if kind == event]

    def wait_started(self, x: Handle[Any], event: str = "started", fence: int = 1) -> int:
        """Waits until the journal tells that the execution began; returns the process that runs it."""
        return eventually(
            lambda: next((pid for id, start, pid in self.journal(event) if (id, start) == (x.id, fence)), 0),
            what=f"{event} in the journal",
        )

    def wait_for(self, x: Handle[Any], *statuses: Status) -> Status:
        eventually(lambda: x.status() in statuses, what=f"a status of {statuses}")
        return x.status()

    def logs(self, x: Handle[Any]) -> list[Line]:
        return registry_of(self.app).connection.store().read(notes.lines, "default", x.id, most=1_000_000)

    def state(self, x: Handle[Any]) -> State | None:
        return registry_of(self.app).connection.store().read(notes.state, "default", x.id)

    def usage(self, x: Handle[Any]) -> list[Usage]:
        """What each attempt cost that had a process of its own."""
        found = registry_of(self.app).connection.store().read(reader.attempts, "default", x.id)
        return [usage.decode(attempt.usage) for attempt in found if attempt.usage is not None]

    def executions(self, job: str) -> list[ExecutionRow]:
        return registry_of(self.app).connection.store().read(executions.rows, "default", reader.Filter(job=job)).items

    def live(self) -> list[WorkerRow]:
        rows = registry_of(self.app).connection.store().read(reader.workers, "default", 0)
        return [row for row in rows if row.stopped_at is None]

    def close(self) -> None:
        for worker in self._workers:
            worker.close()
        self.app.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Worker:
    """One `rota worker`: a supervisor and its children."""

    def __init__(
        self, folder: Path, url: str, flags: tuple[str, ...], settings: dict[str, str], app: str = JOBS
    ) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ROTA_")}
        self._turn = Path(f"{folder}/rota.db-turn") if url.startswith("sqlite:") else None
        self._log = folder / f"worker-{len(list(folder.glob('worker-*')))}.log"
        quick = {"ROTA_POLL_S": "0.1", "ROTA_GRACE_S": "1", "PYTHONPATH": str(REPOSITORY)}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "rota", "worker", app, *flags],
                cwd=folder,
                env={**kept, **quick, **settings, jobs.JOURNAL: str(folder), "ROTA_URL": url},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.pid = self._process.pid

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def check(self) -> bool:
        """True as long as it runs; otherwise fails with what it said last."""
        assert self._process.poll() is None, self.log()
        return True

    def children(self) -> list[int]:
        return children_of(self.pid)

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait(self) -> int:
        return self._process.wait(PATIENCE_S)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[list[int]]:
        """Stops the supervisor and its children; on a file, when none of them holds the turn to write."""
        pids = [self.pid, *spawners_of(self.pid), *self.children()]
        eventually(lambda: self._freeze(pids), what="a moment without the turn to write")
        try:
            yield pids
        finally:
            for pid in reversed(pids):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def _freeze(self, pids: list[int]) -> bool:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        if self._turn is None:
            return True
        with self._turn.open("rb") as turn:
            try:
                fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                for pid in pids:
                    os.kill(pid, signal.SIGCONT)
                return False
        return True

    def close(self) -> None:
        """Ends it the hard way; its children die with it."""
        self._process.kill()
        self._process.wait(PATIENCE_S)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be taken notice of does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False
