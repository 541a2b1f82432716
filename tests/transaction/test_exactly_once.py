"""Workers that are killed, backends that are ended and commits whose answers are lost: one line for each success.

Real processes and a real server. What is counted is in the database: for each execution the lines of the ledger, and
the status that it ended with.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from rota import App
from rota.sdk.job import registered
from tests.support import postgres
from tests.support.databases import fresh_database
from tests.support.proving import proof
from tests.support.proxy import Proxy
from tests.support.waiting import eventually
from tests.transaction import payments

REPOSITORY = Path(__file__).parents[2]
ORDERS = 60
ROUNDS = 6
DEATH = "was killed by SIGKILL"
LEFT = """
SELECT count(*) FROM rota.execution x
WHERE NOT EXISTS (SELECT FROM rota.finished f WHERE f.id = x.id AND f.final = 1)
"""
COUNTS = """
SELECT x.job, coalesce(f.status, 'open'), count(l.entry) AS lines, count(DISTINCT x.id) AS executions
FROM rota.execution x
LEFT JOIN rota.finished f ON f.id = x.id AND f.final = 1
LEFT JOIN LATERAL (SELECT entry FROM ledger WHERE entry = x.id::text) l ON true
GROUP BY x.id, x.job, f.status
"""


class Site:
    """A database with a ledger, and a worker that is started again whenever it is gone."""

    def __init__(self, folder: Path) -> None:
        self.url = fresh_database()
        self.folder = folder
        self.app = App("payments", url=self.url)
        for name, job in payments.app.jobs.items():
            self.app.job(name=name, retry=registered(job).target.rules.retry)(registered(job).function)
        self.query("CREATE TABLE ledger (entry text NOT NULL, fence integer)")

    def query(self, text: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(text.encode())
            return cursor.fetchall() if cursor.description else []

    @contextlib.contextmanager
    def worker(self, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ROTA_")}
        quick = {"ROTA_LEASE_S": "2", "ROTA_POLL_S": "0.1", "ROTA_GRACE_S": "5", "ROTA_CONCURRENCY": "8"}
        source = os.pathsep.join((str(REPOSITORY), str(REPOSITORY / "src")))
        with (self.folder / f"worker-{time.monotonic_ns()}.log").open("wb") as log:
            worker = subprocess.Popen(
                [sys.executable, "-m", "rota", "worker", "tests.transaction.payments:app"],
                cwd=self.folder,
                env={**kept, **quick, **environment, "PYTHONPATH": source, "ROTA_URL": self.url},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            yield worker
        finally:
            worker.kill()
            worker.wait()

    def log(self) -> str:
        return "\n".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("worker-*.log")))

    def left(self) -> int:
        return int(str(self.query(LEFT)[0][0]))

    def check(self, *, failed: tuple[str, ...] = ("decline",)) -> None:
        """One line for each success, none otherwise; everything has ended."""
        for job, status, lines, _ in self.query(COUNTS):
            assert (status, lines) == (("failed", 0) if job in failed else ("success", 1)), (job, status, lines)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    yield site
    site.app.close()


def test_every_job_completes_once_in_a_worker(site: Site) -> None:
    xs = {name: site.app.jobs[name].enqueue(7) for name in ("pay", "apay", "pay_elsewhere", "decline")}
    with site.worker():
        eventually(lambda: site.left() == 0, what="the end of all")
    site.check()
    assert [xs[name].result() for name in ("pay", "apay", "pay_elsewhere")] == ["paid 7"] * 3
    assert xs["decline"].status() == "failed"
    # The workers' own reports are silent.
    assert "came too late" not in site.log()
    assert len(xs["pay"].attempts()) == 1


@pytest.mark.timeout(300)
@pytest.mark.parametrize("rounds", [1, proof(ROUNDS)])
def test_processes_that_die_around_the_commit_double_no_effect(site: Site, rounds: int) -> None:
    """A crash counts no attempt, but the third ends the execution as a crash loop: then there must be no line."""
    for name in ("pay", "apay", "pay_elsewhere"):
        site.app.jobs[name].enqueue_many(range(ORDERS // 3))
    deaths = 0
    for _ in range(rounds):
        before = site.log().count(DEATH)
        # One of its processes dies at some step of a job, and then all of it at once.
        with site.worker(PAYMENTS_DEADLY="0.1", ROTA_PROCESSES="2"):
            died = lambda before=before: site.log().count(DEATH) > before or site.left() == 0  # noqa: E731
            eventually(died, what="a death")
        deaths += site.log().count(DEATH) - before
    with site.worker():
        eventually(lambda: site.left() == 0, what="the end of all")
    assert deaths, site.log()
    counts = site.query(COUNTS)
    for job, status, lines, _ in counts:
        assert (status, lines) in (("success", 1), ("failed", 0)), job
    assert any(status == "success" for _, status, _, _ in counts)


@pytest.mark.timeout(300)
def test_terminated_backends_and_lost_commits_double_no_effect(site: Site) -> None:
    for name in ("pay", "apay", "pay_elsewhere"):
        site.app.jobs[name].enqueue_many(range(ORDERS // 3))
    server = postgres.shared()
    with Proxy(server.port, seed=2) as proxy:
        proxy.drop_commits("after", probability=0.3)
        with site.worker(PAYMENTS_URL=proxy.through(site.url)):
            give_up_at = time.monotonic() + 120
            while site.left() and time.monotonic() < give_up_at:
                # Only the jobs' own: what Rota's connections survive is shown elsewhere.
                server.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rota job'"
                    " AND state <> 'idle' AND random() < 0.3"
                )
                time.sleep(0.05)  # sleep: between two blows.
        assert site.left() == 0, site.log()[-4000:]
        assert proxy.counts.dropped_after > 0
    site.check()
