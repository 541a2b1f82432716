"""Dead letters by error, and what is done with a whole group."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import Shop
from tests.support.waiting import eventually


def letters(shop: Shop, job: str) -> int:
    return int(shop.ask("/counts", of="executions", dead=True, job=job)["count"])


def fail(shop: Shop, number: int, note: str) -> None:
    """Dead letters with an error of their own."""
    before = letters(shop, "import_catalog")
    for one in range(number):
        shop.enqueue("import_catalog", file=f"{note} {one}")
    eventually(lambda: letters(shop, "import_catalog") == before + number, 60, what="letters")


def test_groups_open_and_say_which_version_introduced_the_error(page: Page) -> None:
    page.goto("/dead")
    expect(page).to_have_title(re.compile("dead letters, . errors"))
    page.get_by_role("button", name="tests.browser.shop.GatewayError").click()
    expect(page).to_have_url(re.compile("group="))
    for _ in range(2):
        expect(page.get_by_text("All in version 2")).to_be_visible()
        expect(page.get_by_role("link", name="Open", exact=True).first).to_be_visible()
        page.reload()
    page.get_by_role("button", name="Compare 1 with 2").click()
    expect(page.get_by_role("dialog")).to_contain_text("retry")
    page.keyboard.press("Escape")
    expect(page.get_by_text("rota deploys use shop 1")).to_be_visible()
    page.keyboard.press("r")
    expect(page.get_by_role("dialog")).to_contain_text("Version 2, which brought this error, is still in force.")


@pytest.mark.prove
def test_a_group_is_replayed_at_a_rate_and_stopped(page: Page, shop: Shop) -> None:
    fail(shop, 12, "alpha beta gamma")
    page.goto("/dead")
    row = page.get_by_role("row").filter(has_text="alpha beta gamma")
    row.get_by_role("button", name="Replay…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Replay 12 dead letters?")
    expect(dialog).to_contain_text("The error still happens")
    dialog.get_by_label("Replays per second").fill("0.5")
    dialog.get_by_role("button", name="Replay 12").click()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text(re.compile(r"Stopped\. Replayed \d+ of 12\."))).to_be_visible()
    assert shop.ask("/actions", limit=1)["items"][0]["status"] == "cancelled"


@pytest.mark.prove
def test_a_group_is_discarded_and_nothing_else(page: Page, shop: Shop) -> None:
    fail(shop, 3, "delta epsilon")
    others = letters(shop, "charge")
    page.goto("/dead")
    row = page.get_by_role("row").filter(has_text="delta epsilon")
    row.get_by_role("button", name="Discard…").click()
    page.get_by_role("dialog").get_by_role("button", name="Discard 3").click()
    expect(page.get_by_text("Discarded 3.")).to_be_visible()
    expect(row).to_have_count(0)
    assert letters(shop, "charge") == others


@pytest.mark.prove
def test_by_job_and_as_a_list(page: Page) -> None:
    page.goto("/dead")
    page.get_by_role("button", name="By job").click()
    expect(page.get_by_role("link", name="charge", exact=True)).to_be_visible()
    page.get_by_role("button", name="List").click()
    expect(page.locator("tbody tr[data-row]").first).to_contain_text("Failed")
    page.reload()
    expect(page.locator("tbody tr[data-row]").first).to_contain_text("Failed")


@pytest.mark.prove
def test_the_text_of_an_error_narrows_the_groups(page: Page) -> None:
    page.goto("/dead")
    page.get_by_label("Text of the error").fill("reset by peer")
    expect(page).to_have_url(re.compile("q=reset"))
    expect(page.get_by_text("tests.browser.shop.GatewayError")).to_be_visible()
    expect(page.get_by_text("ValueError")).to_have_count(0)


@pytest.mark.prove
@pytest.mark.parametrize("width", [1100, 768])
def test_no_table_of_errors_scrolls_sideways(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto("/dead")
    page.get_by_role("button", name="tests.browser.shop.GatewayError").click()
    expect(page.get_by_role("link", name="Open", exact=True).first).to_be_visible()
    table = page.get_by_role("table")
    inside = table.evaluate("one => [one.getBoundingClientRect().right, one.closest('section').clientWidth]")
    assert table.evaluate("one => one.rows[1].getBoundingClientRect().right") == inside[0]
    assert table.evaluate("one => one.scrollWidth") <= inside[1]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
