"""The page on transactions and its example do what they say, on a real database."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import connections

from rota import App
from rota.domain.served import Served
from rota.executors.attempt_state import AttemptState
from rota.ops import claim, fleet
from rota.sdk.app import registry_of
from tests.docs.pages import REPOSITORY, blocks
from tests.support import postgres
from tests.support.databases import fresh_database
from tests.support.newcomers import newcomer
from tests.transaction.callers import django_connection

PAGE = "docs/transactions.md"


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    url = fresh_database()
    monkeypatch.setenv("ROTA_URL", url)
    connections["default"] = django_connection(url)
    yield url
    connections["default"].close()
    del connections["default"]


def test_the_python_of_the_page_runs_as_one_program(url: str) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks(PAGE, "python", "sql"):
        if block.info == "python":
            exec(compile("\n" * (block.line - 1) + block.body, PAGE, "exec"), names)
        else:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(role_free(block.body).encode())
    app: App = names["app"]
    assert run_all(app) >= 8
    with psycopg.connect(url) as connection:
        (cents,) = connection.execute("SELECT cents FROM account").fetchone() or (0,)
        ended = connection.execute("SELECT status, result FROM rota.finished WHERE final = 1 AND result LIKE '%ann %'")
        assert {row[1] for row in ended} == {'"ann paid 30"', '"ann got 5"'}
    assert cents == 100 + 50 - 20 + 1 - 10 - 30 + 5
    names["engine"].dispose()
    app.close()


def role_free(block: str) -> str:
    """The page's role under a name of its own: roles belong to the server, which tests share."""
    if "CREATE ROLE" not in block:
        return block
    name = f"webshop_{os.getpid()}"
    server = postgres.shared()
    server.execute(f"CREATE ROLE {name}")
    return re.sub(r"CREATE ROLE webshop;\n", "", block).replace("webshop", name)


def run_all(app: App) -> int:
    """Does what a worker does, here; returns how many attempts there were."""
    store = registry_of(app).connection.store()
    joining = newcomer(app.name, jobs=[*app.jobs], concurrency=1)
    worker = store.transact(fleet.join, joining, 60.0)
    count = 0
    while claims := store.transact(claim.claim, worker, Served.one("default", app.name, None, [*app.jobs]), 100).claims:
        for attempt in claims:
            target = registry_of(app).jobs[attempt.job].function_executor
            state = AttemptState(attempt, None, target.completions)
            prepared = target.prepare(attempt.arguments, state)
            assert isinstance(prepared, tuple), prepared
            target.function(*prepared[0], **prepared[1])
            count += 1
    return count


def test_the_example_charges_once() -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "examples.transactions"],
        cwd=REPOSITORY,
        env={**os.environ, "ROTA_URL": fresh_database(), "ROTA_LEASE_S": "2"},
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert answer.stdout.splitlines() == ["ann paid 30", "[(1, 'lost'), (2, 'success')]", "(70,)"]
