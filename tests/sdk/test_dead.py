"""Dead letters from Python: list, filter, replay, discard."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from rota import App, DefinitionError, Status, UnknownExecution
from rota.testing import Harness, harness

broken = True


@pytest.fixture
def rota(app: App) -> Iterator[Harness]:
    @app.job(retry=None, queue="mail")
    def send(to: str) -> set[str]:
        if broken:
            raise ConnectionError(f"no route to {to}")
        return {to}

    @app.job(retry=None)
    def count() -> None:
        raise KeyError("missing")

    with harness(app) as running:
        yield running


def fail(app: App, rota: Harness, number: int = 1) -> list[str]:
    ids = [handle.id for handle in app.jobs["send"].enqueue_many([f"{n}@b.c" for n in range(number)])]
    rota.run_until_idle()
    return ids


def test_failed_executions_are_listed_newest_first_with_their_error(app: App, rota: Harness) -> None:
    ids = fail(app, rota, 3)
    rows = app.dead.list()
    assert [row.execution_id for row in rows] == ids[::-1]
    assert (rows[0].job, rows[0].queue, rows[0].reason) == ("send", "mail", "error")
    assert "no route to 2@b.c" in (rows[0].error_message or "")
    assert [row.execution_id for row in app.dead.list(limit=2)] == ids[:0:-1]
    assert [row.execution_id for row in app.dead.list(before=ids[1])] == [ids[0]]
    assert app.dead.list(before=None) == rows


def test_dead_letters_can_be_filtered(app: App, rota: Harness) -> None:
    (id,) = fail(app, rota)
    rota.skip("1h")
    other = app.jobs["count"].enqueue()
    rota.run_until_idle()
    since = rota.now - timedelta(minutes=1)
    assert [row.execution_id for row in app.dead.list(job="send")] == [id]
    assert [row.execution_id for row in app.dead.list(queue="default")] == [other.id]
    assert [row.execution_id for row in app.dead.list(error="NO ROUTE")] == [id]
    assert [row.execution_id for row in app.dead.list(reason="error", since=since)] == [other.id]
    assert app.dead.list(reason="timeout") == []
    with pytest.raises(DefinitionError, match="time zone"):
        app.dead.list(since=datetime(2026, 1, 1))  # noqa: DTZ001


def test_a_replay_runs_again_and_is_linked_to_the_dead_one(
    app: App, rota: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = fail(app, rota, 2)
    monkeypatch.setattr("tests.sdk.test_dead.broken", False)
    handles = list(app.dead.replay(row.execution_id for row in app.dead.list()))
    rota.run_until_idle()
    assert sorted((handle.result() for handle in handles), key=min) == [{"0@b.c"}, {"1@b.c"}]
    assert {handle.info().replay_of for handle in handles} == set(ids)
    assert app.dead.list() == []
    assert app.handle(ids[0]).status() is Status.FAILED


def test_many_are_replayed_page_by_page(app: App, rota: Harness) -> None:
    ids = fail(app, rota, 1_200)
    assert len(list(app.dead.replay(ids))) == 1_200
    assert app.dead.list() == []


def test_discarding_keeps_the_history(app: App, rota: Harness) -> None:
    ids = fail(app, rota, 3)
    assert app.dead.discard(ids[:2]) == 2
    assert app.dead.discard(ids[:2]) == 0
    assert [row.execution_id for row in app.dead.list()] == [ids[2]]
    assert len(app.handle(ids[0]).attempts()) == 1


def test_what_is_not_dead_is_passed_over(app: App, rota: Harness) -> None:
    x = app.jobs["send"].enqueue("a")
    unknown = "0190a0a0-0000-7000-8000-000000000000"
    assert list(app.dead.replay([x.id, unknown])) == []
    assert app.dead.discard([x.id, unknown]) == 0
    assert x.status() is Status.QUEUED


def test_what_can_be_no_id_is_refused_before_anything_is_done(app: App, rota: Harness) -> None:
    ids = fail(app, rota, 2)
    for wrong, message in (("zzz", "is not an id"), (3, "is not an id"), (ids[0][:-1], "is not an id")):
        with pytest.raises(UnknownExecution, match=message):
            app.dead.replay([*ids, wrong])  # type: ignore[list-item]
        with pytest.raises(UnknownExecution, match=message):
            app.dead.discard([*ids, wrong])  # type: ignore[list-item]
    for call in (app.dead.replay, app.dead.discard):
        with pytest.raises(DefinitionError, match="not one text"):
            call(ids[0])
    assert len(app.dead.list()) == 2
