"""Find anything: names, ids, filters and actions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.browser.site import FAILED, PAUSED, Shop

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page


def find(page: Page, text: str) -> Locator:
    """Types into the palette; the results."""
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Find anything").fill(text)
    return page.get_by_role("listbox", name="Results").get_by_role("option")


@pytest.mark.prove
def test_words_filters_and_a_pasted_id_lead_to_executions(page: Page, shop: Shop) -> None:
    page.goto("/events")
    page.get_by_role("heading", name="Events").wait_for()
    results = find(page, "charge fail")
    results.filter(has_text=f"charge, failed last hour · {FAILED}").wait_for()
    results.filter(has_text="Pause job charge").wait_for()
    assert results.count() <= 9
    page.keyboard.press("Escape")
    find(page, "queue:mail state:queued since:24h").filter(has_text=f"mail, queued last 24 hours · {PAUSED}").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/executions\?queue=mail&status=queued&since=24h"))
    id = shop.ask("/executions", job="import_catalog", limit=1)["items"][0]["executionId"]
    find(page, id).filter(has_text="import_catalog").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(id))


@pytest.mark.prove
def test_an_action_asks_as_its_page_does(page: Page, shop: Shop) -> None:
    page.goto("/events")
    page.get_by_role("heading", name="Events").wait_for()
    find(page, "payments").filter(has_text="Pause queue payments").click()
    page.get_by_role("textbox", name="note").fill("from the palette")
    page.get_by_role("button", name="Pause the queue").click()
    page.get_by_text("Queue payments paused.").wait_for()
    assert shop.ask("/queues/payments")["paused"]["note"] == "from the palette"
    find(page, "payments").filter(has_text="Resume queue payments").click()
    page.get_by_role("button", name="Resume the queue").click()
    page.get_by_text("Queue payments resumed.").wait_for()
    assert shop.ask("/queues/payments")["paused"] is None


@pytest.mark.prove
def test_a_name_that_nothing_has(page: Page, shop: Shop) -> None:
    page.goto("/events")
    page.get_by_role("heading", name="Events").wait_for()
    find(page, "zzzz")
    page.get_by_text("Nothing is called zzzz").wait_for()
