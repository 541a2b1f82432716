"""Alerts: every finding, what it means, and its remedy."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.browser.site import Shop


@pytest.mark.prove
def test_every_finding_with_its_remedy_and_a_filter_in_the_address(page: Page, shop: Shop) -> None:
    page.goto(f"{shop.url}/alerts")
    card = page.locator('[data-finding="no_worker:job:shop/render_video:pool video"]')
    card.get_by_text("Start a worker that has what they need").wait_for()
    card.get_by_role("button", name="Start a worker…").click()
    page.get_by_role("dialog").get_by_text("rota worker MODULE:shop --pool video").wait_for()
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Warnings").click()
    card.wait_for(state="detached")
    page.locator('[data-finding="queue_paused:queue:mail"]').wait_for()
    assert "severity=warning" in page.url
    page.go_back()
    card.wait_for()
    assert page.evaluate("window.hostile") is None
