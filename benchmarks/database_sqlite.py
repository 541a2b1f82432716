"""SQLite under measurement: one file in a folder of its own."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from benchmarks import probe
from benchmarks.database import START_S, Database, Drain
from benchmarks.place import ROOT
from benchmarks.steady import rate

_TRACING = Path(__file__).with_name("tracing")


class SqliteDatabase(Database):
    """Everything is in one file."""

    processes = 1
    final = "final = 1"

    def __init__(self, folder: Path) -> None:
        self.path = folder / "bench.db"
        super().__init__(folder, f"sqlite:///{self.path}")
        self._reader = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, isolation_level=None)
        self._copied = 0

    def close(self) -> None:
        self._reader.close()
        super().close()

    def one(self, text: str) -> int:
        return int(self._reader.execute(text).fetchone()[0])

    def count(self, table: str) -> int:
        arrivals = self.one("SELECT count(*) FROM arrival") if table in ("ready", "execution") else 0
        return super().count(table) + arrivals

    def ended(self) -> int:
        """From the statistics, which count each end: counting the rows takes longer, the more executions have ended."""
        return self._copied + self.one(_ENDED)

    def stored_bytes(self) -> int:
        return self.one("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")

    def settle(self) -> None:
        connection = sqlite3.connect(self.path, timeout=START_S, isolation_level=None)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()

    def remember(self, total: int) -> None:
        have = self.count("finished")
        connection = sqlite3.connect(self.path, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        for table in ("execution", "finished"):
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            others = ", ".join(column for column in columns if column != "id")
            connection.execute(_COPY.format(table=table, others=others), {"first": have, "last": total})
        connection.execute("COMMIT")
        connection.close()
        self._copied += total - have
        self.check_ended(total)

    def drain(self, count: int, limit_s: float) -> Drain:
        return SqliteDrain(self, count, limit_s)

    def traced(self) -> dict[str, str]:
        return {"PYTHONPATH": f"{_TRACING}:{ROOT}", probe.VARIABLE: str(self._probe_path)}

    def statements(self) -> int:
        return self.probe.count()


class SqliteDrain(Drain):
    """Readers block no writer here, so the ended executions are counted during the run."""

    def __init__(self, database: SqliteDatabase, count: int, limit_s: float) -> None:
        self._database = database
        self._before = database.ended()
        self._count, self._limit_s = count, limit_s

    def per_s(self) -> float:
        result = rate(lambda: self._database.ended() - self._before, self._count, self._limit_s)
        self._database.check_ended(self._before + self._count)
        return result


_ENDED = """
SELECT (SELECT coalesce(sum(success + failed + cancelled + skipped), 0) FROM stat WHERE step_s = 60)
     + (SELECT coalesce(sum(count), 0) FROM stat_delta WHERE outcome NOT IN ('created', 'retries'))
"""
# The copies' ids begin with a time before all others, and rise as ids do.
_COPY = """
WITH RECURSIVE copy (number) AS (SELECT :first UNION ALL SELECT number + 1 FROM copy WHERE number + 1 < :last)
INSERT INTO {table} (id, {others})
SELECT printf('01900000-0000-7000-8000-%012x', copy.number), {others}
FROM copy CROSS JOIN (SELECT * FROM {table} ORDER BY id LIMIT 1)
"""
