"""The database is away while requests come."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import httpx
import pytest

from tests.api.process import server_process
from tests.support.postgres import PostgresServer
from tests.support.proving import proof
from tests.support.waiting import eventually

BUSY_S = 1.0
SLACK_S = 4.0
"""A busy machine answers late. Without a bound a request would hang until the database is back."""


class Callers:
    """Threads that send requests without a pause, and what they got."""

    def __init__(self, url: str, count: int = 4) -> None:
        self.answers: list[tuple[float, float, int, httpx.Headers]] = []
        """When each request was sent, how long it took, and its answer."""
        self.errors: list[str] = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._call, args=(number, url)) for number in range(count)]
        for thread in self._threads:
            thread.start()

    def _call(self, number: int, url: str) -> None:
        with httpx.Client(base_url=url, timeout=60) as client:
            while not self._stop.is_set():
                sent_at = time.monotonic()
                try:
                    answer = client.get("/api/v1/jobs") if number % 2 else client.post("/api/v1/jobs/one/trigger")
                except httpx.HTTPError as error:
                    self.errors.append(repr(error))
                    return
                self.answers.append((sent_at, time.monotonic() - sent_at, answer.status_code, answer.headers))

    def since(self, at: float) -> list[int]:
        return [status for sent_at, _, status, _ in self.answers if sent_at >= at]

    def close(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


@pytest.mark.parametrize("away_s", [2 * BUSY_S, proof(30.0)])
def test_case_43_the_database_is_away_under_load(
    tmp_path: Path, away_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTA_BUSY_S", str(BUSY_S))
    with PostgresServer() as database, server_process(tmp_path, database.create_database()) as server:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            assert client.post("/api/v1/jobs", json={"name": "one", "command": ["true"]}).status_code == 201
            callers = Callers(server.url)
            try:
                eventually(lambda: len(callers.answers) > 20, what="answers")
                database.stop()
                stopped_at = time.monotonic()
                eventually(lambda: client.get("/ready").status_code == 503, what="a server that is not ready")
                while time.monotonic() - stopped_at < away_s:
                    assert client.get("/health").status_code == 200
                    assert client.get("/ready").status_code == 503
                    time.sleep(0.1)  # sleep: how long the outage lasts is what is tested
                eventually(lambda: len(callers.since(stopped_at)) > 8, what="answers during the outage")
                during = callers.since(stopped_at)
                database.start()
                eventually(lambda: client.get("/ready").status_code == 200, what="a server that is ready again")
                started_at = time.monotonic()
                eventually(lambda: {200, 201} <= set(callers.since(started_at)), what="reads and writes again")
            finally:
                callers.close()
        assert callers.errors == []
        assert set(during) == {503}, sorted(set(during))
        refused = [(took_s, headers) for _, took_s, status, headers in callers.answers if status == 503]
        assert all("retry-after" in headers for _, headers in refused)
        slow = [one for one in callers.answers if one[1] >= BUSY_S + SLACK_S]
        assert slow == [], stopped_at
        assert {status for _, _, status, _ in callers.answers} == {200, 201, 503}
