"""Tests of an app that uses Rota, as you would write them: `pytest examples/testing_example.py`.

The harness is the real engine on a database in memory, without processes and without waiting: you move the clock.
The async test needs the plugin pytest-asyncio, with `asyncio_mode = "auto"`.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from examples import shop
from rota import ExecutionFailed, QueueFull, Status
from rota.testing import harness


@pytest.fixture(autouse=True)
def gateway(monkeypatch: pytest.MonkeyPatch) -> shop.Gateway:
    """A gateway for each test: ids follow from the harness's clock and seed, so they are the same in every test."""
    fresh = shop.Gateway()
    monkeypatch.setattr(shop, "gateway", fresh)
    return fresh


def test_a_greylisted_message_is_sent_at_the_third_attempt() -> None:
    with harness(shop.app) as rota:
        x = shop.email.enqueue("ann@greylist.example")
        rota.run_until_idle()
        assert x.status() == Status.RETRYING

        rota.advance("1m")
        assert x.result() == "welcome sent to ann@greylist.example"
        assert [attempt.status for attempt in x.attempts()] == ["failed", "failed", "success"]


def test_a_declined_card_is_a_dead_letter_at_once() -> None:
    with harness(shop.app, inline=True):
        x = shop.app.handle(shop.place_order("order-1", "4000-0000", 999))
        with pytest.raises(ExecutionFailed, match="declined"):
            x.result()
        assert [dead.reason for dead in shop.app.dead.list(job="charge")] == ["permanent_error"]


def test_an_order_is_charged_once_however_often_the_button_is_pressed(gateway: shop.Gateway) -> None:
    with harness(shop.app) as rota:
        first = shop.place_order("order-2", "4242-4242", 999)
        assert shop.place_order("order-2", "4242-4242", 999) == first
        rota.run_until_idle()
        assert gateway.charged == {first: 999}


def test_a_basket_is_tidied_once_after_the_last_change() -> None:
    with harness(shop.app) as rota:
        first = shop.basket_changed("basket-1")
        rota.advance("6s")
        assert shop.basket_changed("basket-1") == first
        rota.advance("6s")
        assert shop.app.handle(first).status() == Status.SCHEDULED
        rota.advance("4s")
        assert shop.app.handle(first).status() == Status.SUCCESS


def test_the_bench_for_gifts_has_room_for_five() -> None:
    with harness(shop.app):
        for number in range(5):
            shop.wrap.enqueue(f"order-{number}")
        with pytest.raises(QueueFull) as refusal:
            shop.wrap.enqueue("order-5")
        assert refusal.value.retry_after > timedelta(0)


async def test_a_report_adds_up_the_year() -> None:
    with harness(shop.app) as rota:
        x = await shop.report.aenqueue(2026, seconds_per_month=0)
        await rota.arun_until_idle()
        assert len(await x.aresult()) == 12


def test_a_job_is_still_a_function() -> None:
    assert shop.tidy_basket("basket-9") == "basket-9 is tidy"
