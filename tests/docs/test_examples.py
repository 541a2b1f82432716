"""The examples do what their pages say."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from examples import file_drop, shop, trip
from rota import Context, ExecutionFailed, QueueFull, Status
from rota.clock import ManualClock
from rota.domain.claim import Claim
from rota.domain.source import Folder
from rota.engine.folder_watch import FolderWatch, listed
from rota.executors.attempt_state import AttemptState
from rota.ids import IdSource
from rota.sdk.app import registry_of
from rota.sdk.job import registered
from rota.store import reader
from rota.testing import harness
from rota.views import execution as executions
from tests.docs.pages import REPOSITORY


@pytest.fixture(autouse=True)
def new_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every harness makes the same ids, so a gateway of another test would know ours."""
    monkeypatch.setattr(shop, "gateway", shop.Gateway())


def run(*command: str, **environment: str) -> str:
    answer = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


def test_a_file_that_is_dropped_is_parsed_loaded_and_moved(tmp_path: Path) -> None:
    (tmp_path / "monday.csv").write_text("shop,amount\nberlin,5\noslo,7\n")
    with harness(file_drop.app) as running:
        found = FolderWatch(Folder(str(tmp_path), "sales.dropped"), IdSource(ManualClock())).emission(
            listed(Folder(str(tmp_path), "sales.dropped", "*.csv"))[0]
        )
        event = file_drop.app.emit(found.name, msgspec.json.decode(found.payload))
        running.run_until_idle()
        assert file_drop.app.handle(event.info().started[0].execution_id).result() == 12
        assert [path.name for path in tmp_path.rglob("*.csv")] == ["monday.csv"]
        assert not (tmp_path / "monday.csv").exists()
        assert running.advance("1m") == 1  # The summary.


def test_the_script_runs_its_jobs_in_a_worker(tmp_path: Path) -> None:
    printed = run("examples.embedded", ROTA_URL=f"sqlite:///{tmp_path}/rota.db")
    assert "words: 5\n" in printed
    assert "words: [1, 2, 3]\n" in printed
    assert "ZeroDivisionError" in printed
    assert "200 OK 0.125\n" in printed


def test_the_tests_of_a_user_pass() -> None:
    printed = run("pytest", "-p", "no:cacheprovider", "-q", "examples/testing_example.py")
    assert "7 passed" in printed


def test_a_greylisted_message_takes_three_attempts() -> None:
    with harness(shop.app) as running:
        x = shop.email.enqueue("ann@greylist.example")
        assert running.advance("10m") == 3
        assert x.status() is Status.SUCCESS
        errors = [attempt.error_message or "" for attempt in x.attempts()]
        assert ["greylisted" in error for error in errors] == [True, True, False]


def test_a_declined_card_is_a_dead_letter_and_can_be_replayed() -> None:
    with harness(shop.app) as running:
        x = shop.app.handle(shop.place_order("order-1", "4000-0000", 999))
        assert running.advance("1h") == 1
        (letter,) = shop.app.dead.list()
        assert (letter.execution_id, letter.job, letter.reason) == (x.id, "charge", "permanent_error")
        (again,) = shop.app.dead.replay([x.id])
        assert again.info().replay_of == x.id
        assert shop.app.dead.list() == []
        running.run_until_idle()
        with pytest.raises(ExecutionFailed, match="CardDeclined: card 4000-0000 was declined"):
            again.result()


def test_a_busy_gateway_is_asked_again_after_as_long_as_it_said() -> None:
    with harness(shop.app) as running:
        x = shop.app.handle(shop.place_order("order-2", "5000-0000", 999))
        running.run_until_idle()
        info = x.info()
        assert info.status is Status.RETRYING
        assert info.run_at == running.now + timedelta(seconds=3)
        running.advance("3s")
        assert x.status() is Status.SUCCESS


def test_the_gateway_refuses_a_stale_fence_and_charges_once() -> None:
    gateway = shop.Gateway()
    gateway.charge("request", 2, "4242-4242", 100)
    with pytest.raises(shop.StaleFence):
        gateway.charge("request", 1, "4242-4242", 100)
    gateway.charge("request", 3, "4242-4242", 100)
    assert gateway.charged == {"request": 100}


def test_a_receipt_is_sent_once_per_order() -> None:
    with harness(shop.app) as running:
        assert shop.place_order("order-3", "4242-4242", 999) == shop.place_order("order-3", "4242-4242", 999)
        running.run_until_idle()
        assert by_job() == {("charge", Status.SUCCESS): 1, ("email", Status.SUCCESS): 1}


def test_shipping_snoozes_without_counting_an_attempt() -> None:
    with harness(shop.app) as running:
        x = shop.ship.enqueue("order-4")
        running.advance("5s")
        assert x.status() is Status.SCHEDULED
        running.advance("1s")
        assert x.result() == "order-4 is on its way"
        assert [attempt.status for attempt in x.attempts()] == ["snoozed", "snoozed", "success"]
        assert x.info().attempt_count == 1


def test_the_gift_bench_is_full_after_five() -> None:
    with harness(shop.app) as running:
        for number in range(5):
            shop.wrap.enqueue(f"order-{number}")
        with pytest.raises(QueueFull, match="5 of 5"):
            shop.wrap.enqueue("order-5")
        assert running.run_until_idle() == 5


def test_old_news_is_skipped() -> None:
    with harness(shop.app) as running:
        x = shop.newsletter.enqueue(7)
        running.skip(3601)
        running.run_until_idle()
        assert x.status() is Status.SKIPPED


async def test_a_report_stops_when_it_is_cancelled() -> None:
    task = asyncio.ensure_future(shop.report(2026, seconds_per_month=60))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_stocktake_stops_when_it_is_asked_to() -> None:
    attempt = AttemptState(Claim("", 0, 0, 1, 0, 0, 0, 0, None, "stocktake", "{}", None, 0, 0), None)
    attempt.ask_to_stop()
    with pytest.raises(shop.StocktakeStopped, match="after 0 of 40"):
        registered(shop.stocktake).function(Context(attempt))


def test_a_busy_day_ends_well_but_for_the_declined_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    # Sleeping jobs sleep on the machine's clock, which the harness does not move.
    monkeypatch.setattr(registered(shop.stocktake).function_executor.function, "__defaults__", (2, 0.0))
    monkeypatch.setattr(registered(shop.report).function_executor.function, "__defaults__", (0.0,))
    with harness(shop.app) as running:
        day = shop.busy_day.enqueue(20)
        running.advance("1h")
        assert day.result() == "20 customers came"
        ended = by_job()
        assert {job: count for (job, status), count in ended.items() if status is Status.FAILED} == {"charge": 2}
        assert ended["charge", Status.SUCCESS] == 18
        assert ended["tidy_basket", Status.SUCCESS] == 3
        assert ended["thumbnail", Status.SUCCESS] == 12
        assert {status for _, status in ended} == {Status.SUCCESS, Status.FAILED}
        assert {job for job, _ in ended} == set(shop.app.jobs) - {"wrap"}


def by_job() -> Counter[tuple[str, Status]]:
    wanted = reader.Filter(limit=10_000)
    rows = registry_of(shop.app).connection.store().read(executions.rows, "default", wanted).items
    return Counter((row.job, row.status) for row in rows)


@pytest.mark.parametrize(("budget", "status"), [(500, Status.SUCCESS), (100, Status.FAILED)])
def test_a_trip_that_cannot_be_paid_is_undone(budget: int, status: Status, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trip, "booked", {})
    with harness(trip.app) as running:
        run = trip.trip.start("Ada", budget)
        running.run_until_idle()
        assert run.status() is status
        assert trip.booked == ({"flight of Ada": 210, "hotel of Ada": 180} if status is Status.SUCCESS else {})
        undone = [(undo.step, undo.job, undo.status) for undo in run.detail().undos]
    both = [("book_flight", "cancel_flight", "success"), ("book_hotel", "cancel_hotel", "success")]
    assert undone == ([] if status is Status.SUCCESS else both)
