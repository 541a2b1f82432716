"""Workers, and one worker: trouble in words, what it holds, the drain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.site import Shop
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.mark.prove
def test_workers_by_pool_with_their_trouble(page: Page, shop: Shop) -> None:
    page.goto(f"{shop.url}/workers")
    page.get_by_text("Pool images", exact=True).wait_for()
    page.get_by_text("Cannot start processes").wait_for()
    page.get_by_text("12 queued, no worker can run them").wait_for()
    page.get_by_text("Stopped in the last hour", exact=True).wait_for()
    slots = page.get_by_role("table", name="Slots that each queue and pool has and needs")
    slots.get_by_role("row").filter(has_text="video").get_by_text("No worker").wait_for()


@pytest.mark.prove
def test_a_worker_names_what_it_holds(page: Page, shop: Shop) -> None:
    busy = next(one for one in shop.ask("/workers")["items"] if "images" not in one["offers"]["pools"])
    page.goto(f"{shop.url}/workers/{busy['workerId']}")
    held = page.get_by_role("table", name=f"Executions that run on worker {busy['name']}")
    held.get_by_role("link", name="nightly_backup").wait_for()
    done = page.get_by_role("table", name=f"Executions that worker {busy['name']} ran")
    done.get_by_role("link").first.wait_for()
    ends = done.get_by_role("row").locator("td:nth-child(5)").all_inner_texts()
    assert ends == sorted(ends, reverse=True)
    page.get_by_role("img", name="heartbeats").wait_for()


@pytest.mark.prove
def test_a_worker_is_drained_and_its_page_says_what_became_of_its_work(page: Page, shop: Shop) -> None:
    worker = shop.worker("--concurrency", "1", "--queues", "unused", "--pool", "solo")
    newest = max(shop.ask("/workers")["items"], key=lambda one: int(one["workerId"]))
    page.goto(f"{shop.url}/workers/{newest['workerId']}")
    page.get_by_role("button", name="Drain…").click()
    page.get_by_role("dialog").get_by_text("It is the last worker of pool solo.").wait_for()
    page.get_by_role("dialog").get_by_role("button", name="Keep it at work").click()
    page.get_by_role("button", name="Drain…").click()
    page.get_by_role("dialog").get_by_role("button", name="Drain it").click()
    eventually(lambda: shop.ask(f"/workers/{newest['workerId']}")["stoppedAt"], what="a worker that drains")
    page.get_by_text("has stopped: held nothing").wait_for()
    worker.wait()
