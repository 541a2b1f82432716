"""PostgreSQL under measurement: a new database on the server of the run."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from benchmarks.database import Database, Drain
from benchmarks.postgres import Server
from benchmarks.steady import RAMP, Stalled, until

LAST = 100


class PostgresDatabase(Database):
    """One of several databases on the same server, which are measured one at a time."""

    processes = 2
    final = "final = 1"
    server: Server

    def __init__(self, folder: Path, server: Server) -> None:
        self.server = server
        self.name = server.create_database()
        super().__init__(folder, server.url(self.name))
        self._session = server.connect(self.name)
        self._session.execute("SET search_path TO rota")

    def close(self) -> None:
        self._session.close()
        super().close()
        self.server.drop_database(self.name)

    def one(self, text: str) -> int:
        found = self.rows(text)[0][0]
        return int(cast(int, found))

    def rows(self, text: str, *parameters: object) -> list[tuple[object, ...]]:
        return self._session.execute(text, parameters or None).fetchall()

    def ended(self) -> int:
        return self.count("finished")

    def stored_bytes(self) -> int:
        return self.one("SELECT pg_database_size(current_database())")

    def settle(self) -> None:
        self.server.settle(self.name)

    def remember(self, total: int) -> None:
        """Also vacuums the tables: otherwise autovacuum would do that during the measurement."""
        have = self.count("finished")
        for table in ("execution", "finished"):
            others = ", ".join(str(row[0]) for row in self.rows(_COLUMNS, table))
            copy = _COPY.format(table=table, others=others)
            self._session.execute(copy, {"first": have, "last": total - 1})
            self._session.execute(f"VACUUM (ANALYZE) {table}")
        self.check_ended(total)

    def drain(self, count: int, limit_s: float) -> Drain:
        return PostgresDrain(self, count, limit_s)

    def traced(self) -> dict[str, str]:
        self.server.log_statements(self.name)
        return {}

    def statements(self) -> int:
        return self.server.statements(self.name)


class PostgresDrain(Drain):
    """Counting rows repeatedly would load the server that is measured. So only the last hundred are looked for,
    by their ids, and when they have ended the rate is read from the times that all of them were recorded with."""

    def __init__(self, database: PostgresDatabase, count: int, limit_s: float) -> None:
        self._database = database
        self._count, self._limit_s = count, limit_s
        self._before = database.count("finished")
        self._since = database.one(_NOW)
        last = min(LAST, count)
        self._last = [row[0] for row in database.rows(_NEXT, count - last, last)]
        if len(self._last) < last:
            raise Stalled(f"there are no {count} executions to be drained")

    def per_s(self) -> float:
        ended = self._database
        until(lambda: ended.rows(_ENDED, self._last)[0][0] == len(self._last), "the drain", self._limit_s)
        # With several processes, a few that were claimed earlier may end later.
        until(lambda: ended.count("finished") - self._before >= self._count, "the last of the drain", self._limit_s)
        first = max(1, round(RAMP * self._count))
        began, stopped = (int(cast(int, time)) for time in ended.rows(_TIMES, self._since, first, self._count)[0])
        if stopped <= began:
            raise Stalled(f"{self._count} executions ended at one instant: too few for a rate")
        return (self._count - first) / ((stopped - began) / 1e6)


_NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_NEXT = "SELECT id FROM ready ORDER BY lane, rank, id OFFSET %s LIMIT %s"
_ENDED = "SELECT count(*) FROM finished WHERE id = ANY(%s) AND final = 1"
_TIMES = """
WITH ended AS (
    SELECT finished_at, row_number() OVER (ORDER BY finished_at) AS place
    FROM finished WHERE finished_at >= %s AND final = 1
)
SELECT min(finished_at) FILTER (WHERE place = %s), min(finished_at) FILTER (WHERE place = %s) FROM ended
"""
_COLUMNS = """
SELECT column_name FROM information_schema.columns
WHERE table_name = %s AND table_schema = current_schema() AND column_name <> 'id' AND is_generated = 'NEVER'
ORDER BY ordinal_position
"""
# The copies' ids begin with a time before all others, and rise as ids do.
_COPY = """
INSERT INTO {table} (id, {others})
SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(copy.number), 12, '0'))::uuid, {others}
FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS copy (number)
CROSS JOIN (SELECT {others} FROM {table} LIMIT 1) AS original
"""
