"""The list of executions: filters, states, new rows, selection."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import FAILED, Shop


@pytest.mark.prove
def test_a_state_narrows_the_list_and_survives_a_reload(page: Page) -> None:
    page.goto("/executions")
    page.get_by_role("navigation", name="States").get_by_role("link", name=re.compile("^Failed")).click()
    expect(page).to_have_url(re.compile("status=failed"))
    for _ in range(2):
        expect(page.locator("tbody tr[data-row]").first).to_contain_text("Failed")
        expect(page.locator("tbody tr[data-row]", has_text="Queued")).to_have_count(0)
        page.reload()
    page.go_back()
    expect(page.locator("tbody tr[data-row]", has_text="Queued").first).to_be_visible()


@pytest.mark.prove
def test_new_rows_wait_until_they_are_asked_for(page: Page, shop: Shop) -> None:
    first = page.locator("tbody tr[data-row]").first
    page.goto("/executions?job=extract&since=all")
    before = first.get_attribute("data-row")
    id = shop.enqueue("extract", day="2026-11-18")
    pill = page.get_by_role("button", name=re.compile("1 new"))
    expect(pill).to_be_visible()
    assert first.get_attribute("data-row") == before
    pill.click()
    expect(first).to_have_attribute("data-row", id)


@pytest.mark.prove
def test_an_error_leads_to_its_execution_and_next_walks_the_list(page: Page) -> None:
    page.goto("/executions?status=failed&job=charge")
    expect(page.locator("tbody tr[data-row]").nth(2)).to_be_visible()
    ids = [row.get_attribute("data-row") for row in page.locator("tbody tr[data-row]").all()]
    page.locator("tbody tr[data-row]").nth(1).get_by_text("GatewayError").click()
    expect(page).to_have_url(re.compile(f"/executions/{ids[1]}"))
    page.get_by_role("button", name="Next in the list").click()
    expect(page).to_have_url(re.compile(f"/executions/{ids[2]}"))
    expect(page.get_by_role("button", name="Previous in the list")).to_be_enabled()
    page.keyboard.press("[")
    expect(page).to_have_url(re.compile(f"/executions/{ids[1]}"))


@pytest.mark.prove
def test_chosen_rows_survive_a_reload_but_not_a_visit_of_another_page(page: Page) -> None:
    page.goto("/executions?status=failed&job=charge&since=all")
    rows = page.locator("tbody tr[data-row]")
    for number in (0, 2):
        rows.nth(number).get_by_role("checkbox").check()
    bar = page.get_by_role("region", name="Selected rows")
    page.reload()
    expect(bar).to_contain_text("2 selected")
    expect(rows.nth(2).get_by_role("checkbox")).to_be_checked()
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Runs").click()
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Executions").click()
    expect(rows.first).to_be_visible()
    expect(bar).to_have_count(0)


@pytest.mark.prove
def test_chosen_rows_are_counted_on_the_buttons_and_all_that_match_by_a_dry_run(page: Page, shop: Shop) -> None:
    page.goto("/executions?status=failed&job=charge&since=all")
    rows = page.locator("tbody tr[data-row]")
    for number in (0, 1):
        rows.nth(number).get_by_role("checkbox").check()
    bar = page.get_by_role("region", name="Selected rows")
    expect(bar).to_contain_text("2 selected")
    letters = shop.ask("/counts", of="executions", dead=True, job="charge")["count"]
    bar.get_by_role("button", name=f"Select all {FAILED} failed").click()
    bar.get_by_role("button", name=re.compile("^Discard")).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"Discard {letters} dead letters?")
    dialog.get_by_role("button", name="Keep them").click()
    expect(dialog).to_have_count(0)
    assert shop.ask("/counts", of="executions", dead=True, job="charge")["count"] == letters


@pytest.mark.prove
def test_chosen_rows_are_replayed(page: Page, shop: Shop) -> None:
    ids = [shop.enqueue("build", version=f"9.{number}") for number in range(2)]
    page.goto("/executions?job=build&since=all")
    for id in ids:
        row = page.locator(f"tr[data-row='{id}']")
        expect(row).to_contain_text("Success")
        row.get_by_role("checkbox").check()
    page.get_by_role("button", name="Replay 2…").click()
    page.get_by_role("dialog").get_by_role("button", name="Replay 2").click()
    expect(page.get_by_text("Replayed 2.")).to_be_visible()
    assert all(shop.ask("/executions", replayOf=id)["items"] for id in ids)


@pytest.mark.prove
def test_dragging_over_the_histogram_narrows_the_time(page: Page) -> None:
    page.goto("/executions")
    bars = page.get_by_role("img", name=re.compile("ended between"))
    box = bars.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 10, steps=4)
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"since=20.*until=20"))
    page.get_by_role("button", name="Show those of any time").click()
    expect(page).to_have_url(re.compile("since=all"))


@pytest.mark.prove
def test_views_and_columns_stay_in_the_browser(page: Page) -> None:
    page.goto("/executions?job=charge&status=failed")
    page.get_by_role("button", name="Save view…").click()
    page.get_by_label("name").fill("failed charges")
    page.get_by_role("dialog").get_by_role("button", name="Save view").click()
    page.get_by_role("button", name="Choose columns").click()
    page.get_by_role("menuitem", name="queue").click()
    page.keyboard.press("Escape")
    page.goto("/executions")
    expect(page.get_by_role("columnheader", name="queue")).to_be_visible()
    page.get_by_role("button", name="Saved views").click()
    page.get_by_role("menuitem", name="failed charges").click()
    expect(page).to_have_url(re.compile("job=charge&status=failed"))


@pytest.mark.prove
def test_a_filter_is_added_and_dropped(page: Page) -> None:
    page.goto("/executions")
    page.get_by_role("button", name="Filter", exact=True).click()
    page.get_by_label("Filter by").select_option("queue")
    page.get_by_label("Value").select_option("mail")
    page.get_by_role("button", name="Apply").click()
    expect(page).to_have_url(re.compile("queue=mail"))
    page.get_by_role("button", name="Drop the filter queue mail").click()
    expect(page).not_to_have_url(re.compile("queue=mail"))


@pytest.mark.prove
def test_keys_walk_select_and_ask(page: Page) -> None:
    page.goto("/executions?status=failed&job=charge&since=all")
    rows = page.locator("tbody tr[data-row]")
    expect(rows.nth(3)).to_be_visible()
    for key in ("j", "x", "j", "j", "X", "r"):
        page.keyboard.press(key)
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Replay 3 executions?")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("region", name="Selected rows")).to_contain_text("3 selected")
    page.keyboard.press("Enter")
    third = str(rows.nth(2).get_attribute("data-row")) if rows.count() else ""
    expect(page).to_have_url(re.compile(f"/executions/{third}"))


@pytest.mark.prove
def test_a_new_event_waits_until_it_is_asked_for(page: Page, shop: Shop) -> None:
    page.goto("/events")
    rows = page.locator("tbody tr[data-row]")
    expect(rows.first).to_contain_text("order.paid")
    before = rows.count()
    shop.tell("/events", {"name": "order.paid", "payload": {"id": "A-9"}, "subject": "A-9"})
    pill = page.get_by_role("button", name=re.compile("1 new"))
    expect(pill).to_be_visible()
    assert rows.count() == before
    pill.click()
    expect(rows.first).to_contain_text("A-9")


@pytest.mark.prove
@pytest.mark.parametrize("width", [390, 1100])
@pytest.mark.parametrize("path", ["/executions", "/jobs", "/schedules", "/schedules?view=list", "/events"])
def test_no_list_widens_the_page(page: Page, path: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(path)
    expect(page.locator("main [data-row]").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
