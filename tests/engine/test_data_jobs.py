"""Workers without an app run commands and requests from their definitions, which come with their claims."""

from __future__ import annotations

import http.server
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from rota.store import reader
from tests.api.server import Server, serving
from tests.support.databases import fresh_database
from tests.support.proving import proof
from tests.support.waiting import eventually
from tests.support.workers import Worker

TERMINAL = ("success", "failed", "cancelled", "skipped")


class Site:
    """A server in the test's own process, and a worker as a user starts it."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self._serving = serving(url)
        self.server: Server = self._serving.__enter__()
        self.worker = Worker(folder, url, (), {}, "--verbose")  # Without MODULE:APP.
        eventually(lambda: self.worker.check() and self._live(), what="a worker that joins")

    def _live(self) -> bool:
        return any(row.app == "*" for row in self.server.store.read(reader.workers, "default", 2**62))

    def close(self) -> None:
        self.worker.close()
        self._serving.__exit__(None, None, None)


@pytest.fixture(params=["sqlite", proof("postgres")], scope="module")
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("data")
    site = Site(folder, f"sqlite:///{folder}/rota.db" if request.param == "sqlite" else fresh_database())
    yield site
    site.close()


@pytest.fixture
async def client(site: Site) -> Any:
    async with site.server.client() as client:
        yield client


async def put(client: httpx.AsyncClient, name: str, **about: Any) -> dict[str, Any]:
    answer = await client.put(f"/jobs/{name}", json=about)
    assert answer.status_code in (200, 201), answer.text
    found: dict[str, Any] = answer.json()
    return found


async def run(site: Site, client: httpx.AsyncClient, job: str, **options: Any) -> reader.ExecutionRow:
    """Triggers a job, and returns its execution once that has ended."""
    answer = await client.post(f"/jobs/{job}/trigger", json=options)
    assert answer.status_code == 201, answer.text
    return end(site, answer.json()["executionId"])


def end(site: Site, id: str) -> reader.ExecutionRow:
    def ended() -> reader.ExecutionRow | None:
        row = site.server.store.read(reader.execution, "default", id)
        return row if row.status in TERMINAL else None

    found = eventually(ended, what=f"the end of {id}")
    assert found is not None
    return found


def result(site: Site, row: reader.ExecutionRow) -> str | None:
    found = site.server.store.read(reader.ending, "default", row.id)
    assert found is not None
    return found.result


async def test_a_new_job_and_a_changed_one_run_without_a_restart(site: Site, client: httpx.AsyncClient) -> None:
    await put(client, "greet", command=["echo", "hello {name}"], result="text")
    first = await run(site, client, "greet", arguments={"name": "; rm -rf / $(id)"})
    assert (first.status, result(site, first)) == ("success", '"hello ; rm -rf / $(id)"')
    await put(client, "greet", command=["echo", "bye"], result="text")
    second = await run(site, client, "greet")
    assert (second.job_version, result(site, second)) == (2, '"bye"')


async def test_an_execution_runs_the_version_that_it_was_accepted_with(site: Site, client: httpx.AsyncClient) -> None:
    await put(client, "pinned", command=["echo", "old"], result="text")
    await client.post("/jobs/pinned/pause")
    accepted = (await client.post("/jobs/pinned/trigger")).json()["executionId"]
    await put(client, "pinned", command=["echo", "new"], result="text")
    await client.post("/jobs/pinned/resume")
    assert result(site, end(site, accepted)) == '"old"'


async def test_case_42_accepted_work_of_a_deleted_job_still_runs(site: Site, client: httpx.AsyncClient) -> None:
    await put(client, "gone", command=["echo", "old"], result="text")
    await client.post("/jobs/gone/pause")
    accepted = (await client.post("/jobs/gone/trigger")).json()["executionId"]
    assert (await client.delete("/jobs/gone")).status_code == 204
    await put(client, "gone", command=["echo", "new"], result="text")
    assert result(site, end(site, accepted)) == '"old"'
    assert result(site, await run(site, client, "gone")) == '"new"'


async def test_case_3_three_retries_are_four_attempts(site: Site, client: httpx.AsyncClient) -> None:
    policy = {"policy": "fixed", "attempts": 4, "delay": 0}
    await put(client, "fails", command=["false"], retries=3)
    assert (await client.get("/jobs/fails")).json()["retries"] == 3
    await put(client, "fails", command=["false"], retry=policy)
    row = await run(site, client, "fails")
    assert (row.status, row.attempts, row.attempts - 1) == ("failed", 4, 3)
    assert site.server.store.read(reader.are_dead, "default", [row.id]) == {row.id}


async def test_python_is_the_python_of_the_worker(site: Site, client: httpx.AsyncClient) -> None:
    program = "import sys; print(sys.executable)"
    await put(client, "which", command=["python", "-c", program], result="text")
    row = await run(site, client, "which")
    found = result(site, row)
    assert found is not None
    assert Path(found.strip('"')).parent == Path(sys.executable).parent


async def test_a_request_to_a_private_address_is_refused(site: Site, client: httpx.AsyncClient) -> None:
    """Case 41 for jobs: a definition cannot allow private addresses."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as target:
        thread = threading.Thread(target=target.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{target.server_port}/"
            await put(client, "private", http={"url": url, "method": "GET"}, retries=0)
            row = await run(site, client, "private")
        finally:
            target.shutdown()
            thread.join()
    assert row.status == "failed"
    assert "127.0.0.1" in (row.error or "")


async def test_a_function_runs_under_another_name(site: Site, client: httpx.AsyncClient) -> None:
    def has_joined() -> bool:
        rows = site.server.store.read(reader.workers, "default", 2**62)
        return worker.check() and any(row.app == "engine" for row in rows)

    worker = Worker(site.folder, site.server.settings.url, (), {})
    try:
        eventually(has_joined, what="a worker of the app")
        await put(client, "measure", function={"app": "engine", "name": "size"})
        row = await run(site, client, "measure", arguments={"text": "hello"})
        assert (row.status, result(site, row)) == ("success", "5")
    finally:
        worker.close()
