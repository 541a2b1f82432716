"""One database under measurement: its file, its app, its workers, and what is really in it."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import probe
from benchmarks.jobs import Jobs, build
from benchmarks.place import ROOT
from benchmarks.probe import Probe
from benchmarks.processes import Tree, started
from benchmarks.steady import Stalled, until

START_S = 30.0
BULK = 50_000
_TRACING = Path(__file__).with_name("tracing")
_TABLES = {"finished", "ready", "scheduled"}


class Database:
    """A new database in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "bench.db"
        self._url = f"sqlite:///{self.path}"
        self._probe_path = folder / "probe"
        self.probe: Probe = probe.create(self._probe_path)
        self.jobs: Jobs = build(self._url)
        self.jobs.app.connection.store()
        self._reader = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, isolation_level=None)

    def close(self) -> None:
        self._reader.close()
        self.jobs.app.close()

    def ended(self) -> int:
        """Executions that have ended. While nothing fails every row of `finished` ends one, so the last row tells."""
        return int(self._one("SELECT coalesce(max(rowid), 0) FROM finished"))

    def count(self, table: str) -> int:
        """Rows in a table; of `finished`, only those that end an execution."""
        assert table in _TABLES
        condition = "WHERE final = 1" if table == "finished" else ""
        return int(self._one(f"SELECT count(*) FROM {table} {condition}"))

    def fill(self, count: int, *, delay: str | None = None) -> None:
        """Enqueues no-op jobs in bulk."""
        job = self.jobs.noop if delay is None else self.jobs.noop.options(delay=delay)
        for start in range(0, count, BULK):
            job.enqueue_many([()] * min(BULK, count - start))

    def settle(self) -> None:
        """Moves the log into the database, so that what is measured next does not pay for what came before."""
        connection = sqlite3.connect(self.path, timeout=START_S, isolation_level=None)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()

    def check_ended(self, expected: int) -> None:
        """Counts for real what `ended` estimated."""
        if (found := self.count("finished")) < expected:
            raise Stalled(f"{found} executions have ended, not {expected}")

    @contextlib.contextmanager
    def worker(self, *, concurrency: int | None = None, trace: bool = False) -> Iterator[Tree]:
        """One worker (a supervisor and a child) as a user starts it."""
        command = [sys.executable, "-m", "rota", "worker", "benchmarks.jobs:app"]
        if concurrency is not None:
            command += ["--concurrency", str(concurrency)]
        environment = {"ROTA_URL": self._url, probe.VARIABLE: str(self._probe_path), "PYTHONPATH": str(ROOT)}
        if trace:
            environment["PYTHONPATH"] = f"{_TRACING}:{ROOT}"
        known = self._one("SELECT count(*) FROM worker")
        with started(command, environment, self.folder / "worker.log") as tree:
            until(lambda: self._has_joined(tree, known), "a worker in the database", START_S)
            yield tree

    def _has_joined(self, tree: Tree, known: int) -> bool:
        if not tree.is_running:
            raise Stalled(f"the worker ended: {tree.log.read_text()[-2000:]}")
        return int(self._one("SELECT count(*) FROM worker")) > known

    def _one(self, text: str) -> int:
        return int(self._reader.execute(text).fetchone()[0])


@contextlib.contextmanager
def fresh(parent: Path) -> Iterator[Database]:
    """An empty database that is deleted afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="database-", dir=parent))
    database = Database(folder)
    try:
        yield database
    finally:
        database.close()
        shutil.rmtree(folder, ignore_errors=True)
