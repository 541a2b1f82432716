"""One worker without an app serves several namespaces."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from rota.domain.access import Role
from rota.store import reader
from tests.api.server import Server, serving
from tests.support.databases import fresh_database
from tests.support.waiting import eventually
from tests.support.workers import Worker


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_worker_runs_the_jobs_of_two_tenants_and_of_no_other(kind: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/rota.db" if kind == "sqlite" else fresh_database()
    with serving(url) as server:
        tokens = {name: server.token(Role.ADMIN, namespaces=(name,)) for name in ("a", "b", "c")}
        worker = Worker(tmp_path, url, ("--namespaces", "a,b"), {}, "--verbose")  # Without MODULE:APP.
        try:
            eventually(lambda: worker.check() and _workers(server, "b"), what="a worker that joins")
            answers = {name: await _ran(server, tokens[name], wait="0.5s" if name == "c" else "30s") for name in tokens}
            assert {name: found["status"] for name, found in answers.items()} == {
                "a": "success",
                "b": "success",
                "c": "queued",
            }
            assert [len(_workers(server, name)) for name in tokens] == [1, 1, 0]
            async with server.client(tokens["b"]) as client:
                (shown,) = (await client.get("/workers")).json()["items"]
                asked = (await client.post(f"/workers/{shown['workerId']}/drain")).json()
                assert (asked["changed"], asked["state"]) == (False, "live"), "only its first namespace may drain it"
            assert not all(check["holds"] for check in answers["c"]["why"]["checks"])
        finally:
            worker.close()


def _workers(server: Server, namespace: str) -> list[int]:
    return [row.id for row in server.store.read(reader.workers, namespace, 2**62) if row.app == "*"]


async def _ran(server: Server, token: str, wait: str) -> dict[str, Any]:
    """The same name of a job in each namespace."""
    async with server.client(token) as client:
        made = await client.post("/jobs", json={"name": "one", "command": ["true"]})
        assert made.status_code == 201, made.text
        async with asyncio.timeout(40):
            answer: httpx.Response = await client.post(f"/jobs/one/trigger?wait={wait}")
        return dict(answer.json())
