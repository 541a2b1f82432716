"""Queues and one queue: the line, the pause, the settings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.browser.site import NOTE, PAUSED, Shop
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import Locked


@pytest.mark.prove
def test_the_line_of_a_paused_queue_in_the_order_of_the_starts(page: Page, shop: Shop) -> None:
    page.goto(f"{shop.url}/queues")
    page.get_by_role("link", name="mail", exact=True).click()
    page.get_by_text(f"“{NOTE}”").first.wait_for()
    rows = page.get_by_role("table", name="Executions that wait in queue mail").get_by_role("row")
    rows.nth(25).wait_for()
    first = shop.ask("/executions", status="queued", queue="mail", order="rank", limit=1)["items"][0]["executionId"]
    assert "next" in rows.nth(1).inner_text()
    assert first in (rows.nth(1).get_by_role("link").first.get_attribute("href") or "")
    page.get_by_role("button", name="After").click()
    page.get_by_text(f"26 to {PAUSED} of {PAUSED}").wait_for()
    page.reload()
    page.get_by_text(f"26 to {PAUSED} of {PAUSED}").wait_for()
    page.get_by_role("button", name="Before").click()
    page.get_by_text(f"1 to 25 of {PAUSED}").wait_for()
    page.keyboard.press("Escape")
    page.wait_for_url("**/queues")


@pytest.mark.prove
def test_a_queue_whose_jobs_no_worker_can_run_says_so(page: Page, shop: Shop) -> None:
    page.goto(f"{shop.url}/queues")
    for name in ("video", "images"):
        page.get_by_role("row").filter(has_text=name).get_by_text("No worker").wait_for()
    page.goto(f"{shop.url}/queues/images")
    page.get_by_text("no live worker with pool images can start a process for resize_image").first.wait_for()
    page.get_by_text("no worker can run these jobs").first.wait_for()
    assert page.get_by_text("it grows").count() == 0


@pytest.mark.prove
def test_a_queue_is_paused_with_a_note_and_resumed_with_a_way_back(page: Page, shop: Shop) -> None:
    page.goto(f"{shop.url}/queues/payments")
    page.get_by_role("button", name="Pause…").wait_for()
    page.keyboard.press("p")
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
    assert page.url.endswith("/queues/payments")
    page.get_by_role("button", name="Pause…").click()
    page.get_by_role("textbox").fill("the bank is closed")
    page.get_by_role("dialog").get_by_role("button", name="Pause queue").click()
    page.get_by_text("“the bank is closed”").first.wait_for()
    assert shop.ask("/queues/payments")["paused"]["note"] == "the bank is closed"
    page.get_by_role("button", name="Resume", exact=True).click()
    page.get_by_role("button", name="Undo: pause again").click()
    eventually(lambda: (shop.ask("/queues/payments")["paused"] or {}).get("note") == "the bank is closed")
    shop.tell("/queues/payments/resume")
    page.get_by_role("button", name="Pause…").wait_for()


@pytest.mark.prove
def test_the_settings_of_a_queue(page: Page, shop: Shop) -> None:
    page.goto(f"{shop.url}/queues/reports")
    page.get_by_role("button", name="Change…").click()
    page.get_by_role("textbox", name="at most").fill("5000")
    page.get_by_role("button", name="Change settings").click()
    page.get_by_text("5,000 may wait").wait_for()
    page.get_by_role("button", name="Undo", exact=True).click()
    page.get_by_text("any number may wait").wait_for()
    assert shop.ask("/queues/reports")["maxDepth"] is None


@pytest.mark.prove
def test_an_unknown_queue_leads_back_to_the_list(page: Page, shop: Shop) -> None:
    page.goto(f"{shop.url}/queues/nowhere")
    page.get_by_text("No queue is named nowhere").wait_for()
    page.get_by_role("link", name="All queues").click()
    page.get_by_role("link", name="payments").wait_for()


@pytest.mark.prove
def test_a_viewer_pauses_changes_and_drains_nothing(page: Page, locked: Locked) -> None:
    page.goto(f"{locked.url}/queues/payments")
    page.get_by_label("token").fill(locked.secrets["viewer"])
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("any number may wait").wait_for()
    assert page.get_by_role("button", name=re.compile("^(Pause|Resume|Change)")).count() == 0
    page.goto(f"{locked.url}/workers")
    page.get_by_text("Pool default", exact=True).wait_for()
    assert page.get_by_role("button", name="Drain…").count() == 0
