"""One database under measurement: its app, its workers, and its rows."""

from __future__ import annotations

import contextlib
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

from benchmarks import probe
from benchmarks.jobs import Jobs, build
from benchmarks.place import ROOT
from benchmarks.postgres import Server
from benchmarks.probe import Probe
from benchmarks.processes import Tree, started
from benchmarks.steady import Stalled, until
from rota.sdk.app import registry_of

START_S = 30.0
BULK = 50_000
_TABLES = {"finished", "ready", "running", "scheduled"}


class Database(ABC):
    """A new database, and a folder for what belongs to it."""

    processes: int
    """How many worker processes its figures are measured with."""
    server: Server | None = None
    final: str
    """The condition under which a row of `finished` ends its execution."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self._probe_path = folder / "probe"
        self.probe: Probe = probe.create(self._probe_path)
        self.jobs: Jobs = build(url)
        registry_of(self.jobs.app).connection.store()

    def close(self) -> None:
        self.jobs.app.close()

    # --- What is in it ---

    @abstractmethod
    def one(self, text: str) -> int:
        """The only number that a statement selects."""

    @abstractmethod
    def ended(self) -> int:
        """Executions that have ended; cheap enough to be asked now and then."""

    def count(self, table: str) -> int:
        """Rows in a table; of `finished`, only those that end an execution."""
        assert table in _TABLES
        condition = f"WHERE {self.final}" if table == "finished" else ""
        return self.one(f"SELECT count(*) FROM {table} {condition}")

    @abstractmethod
    def stored_bytes(self) -> int:
        """How large the database is on the disk."""

    def check_ended(self, expected: int) -> None:
        """Counts the rows, independently of the measurement."""
        if (found := self.count("finished")) < expected:
            raise Stalled(f"{found} executions have ended, not {expected}")

    def oldest_beat_s(self) -> float:
        """The age of the oldest heartbeat of those that should beat."""
        beat_at = self.one("SELECT min(heartbeat_at) FROM worker WHERE stopped_at IS NULL")
        return time.time() - beat_at / 1e6

    # --- What it is prepared with ---

    def fill(self, count: int, *, delay: str | None = None) -> None:
        """Enqueues no-op jobs in bulk."""
        job = self.jobs.noop if delay is None else self.jobs.noop.options(delay=delay)
        for start in range(0, count, BULK):
            job.enqueue_many([()] * min(BULK, count - start))

    @abstractmethod
    def settle(self) -> None:
        """Writes a checkpoint, so that the next measurement does not pay for earlier writes."""

    @abstractmethod
    def remember(self, total: int) -> None:
        """Copies a finished execution under older ids until the history has this many."""

    # --- What is measured ---

    @abstractmethod
    def drain(self, count: int, limit_s: float) -> Drain:
        """Watches the next `count` executions end; to be called before a worker starts."""

    @contextlib.contextmanager
    def worker(
        self,
        *,
        processes: int | None = None,
        concurrency: int | None = None,
        trace: bool = False,
        app: str = "benchmarks.jobs:app",
    ) -> Iterator[Tree]:
        """One worker (a supervisor and its children) as a user starts it."""
        processes = processes or self.processes
        command = [sys.executable, "-m", "rota", "worker", app, "--processes", str(processes)]
        if concurrency is not None:
            command += ["--concurrency", str(concurrency)]
        environment = {"ROTA_URL": self.url, probe.VARIABLE: str(self._probe_path), "PYTHONPATH": str(ROOT)}
        if trace:
            environment |= self.traced()
        known = self.one("SELECT count(*) FROM worker")
        with started(command, environment, self.folder / "worker.log") as tree:
            until(lambda: self._have_joined(tree, known + processes), "a worker in the database", START_S)
            yield tree

    @abstractmethod
    def traced(self) -> dict[str, str]:
        """Begins to count statements; returns what a process needs in its environment for that."""

    @abstractmethod
    def statements(self) -> int:
        """Statements counted so far, without BEGIN, COMMIT and the like."""

    def _have_joined(self, tree: Tree, expected: int) -> bool:
        if not tree.is_running:
            raise Stalled(f"the worker {tree.last_words()}")
        return self.one("SELECT count(*) FROM worker") >= expected


class Drain(ABC):
    """The executions that end next."""

    @abstractmethod
    def per_s(self) -> float:
        """Waits until they have ended, and returns their rate without its first tenth, in which workers start."""
