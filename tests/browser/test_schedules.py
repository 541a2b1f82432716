"""Schedules: the day, the ledger, ticks that did not run, pauses, and new schedules."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.site import Shop
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.mark.prove
def test_a_schedule_whose_ticks_overlap_is_found_and_explained(page: Page) -> None:
    page.goto("/schedules")
    page.get_by_text("1 schedule overlaps", exact=True).first.wait_for()
    page.get_by_role("link", name="sync_stock").first.click()
    ledger = page.get_by_role("table", name="Ticks of sync_stock")
    ledger.get_by_text("had not ended").first.wait_for()
    page.get_by_role("button", name="Did not run").click()
    page.wait_for_url(re.compile("of=sync_stock&show=missed"))
    ledger.get_by_text("Running").wait_for(state="hidden")
    page.reload()
    ledger.get_by_text("Overlap").first.wait_for()
    assert page.get_by_role("button", name="Did not run").get_attribute("aria-pressed") == "true"
    days = page.get_by_role("region", name=re.compile("with ticks"))
    assert days.evaluate("one => one.scrollWidth <= one.clientWidth"), "today is not cut"


@pytest.mark.prove
def test_a_new_schedule_is_checked_made_backfilled_and_removed(page: Page, shop: Shop) -> None:
    page.goto("/schedules")
    page.get_by_role("button", name="New schedule…").click()
    form = page.get_by_role("dialog")
    form.get_by_role("combobox", name="job").fill("expire_carts")
    form.get_by_role("textbox", name="name").fill("carts_hourly")
    form.get_by_role("textbox", name="cron").fill("0 * *")
    form.get_by_text("a cron expression has 5 fields").wait_for()
    assert form.get_by_role("button", name="Make the schedule").is_disabled()
    form.get_by_role("textbox", name="cron").fill("0 * * * *")
    form.get_by_role("list", name="Next ticks").get_by_role("listitem").nth(9).wait_for()
    form.get_by_role("button", name="Make the schedule").click()
    page.get_by_role("heading", name="Ledger of carts_hourly").wait_for()
    page.goto("/schedules?of=carts_hourly&view=week")
    page.get_by_role("button", name="Earlier").click()
    page.get_by_role("button", name="Backfill…").click()
    page.get_by_text("It would start 168 executions.").wait_for()
    assert shop.ask("/schedules/carts_hourly/ticks")["items"] == [], "a dry run starts nothing"
    page.get_by_role("button", name="Start 168").click()
    page.get_by_text("Started 168 ticks of carts_hourly.").wait_for()
    assert shop.ask("/schedules/carts_hourly/ticks")["summary"]["outcomes"] == {"backfilled": 168}
    page.get_by_role("button", name="Remove…").click()
    page.get_by_role("button", name="Remove it").click()
    page.get_by_text("Schedule carts_hourly removed.").wait_for()


@pytest.mark.prove
def test_a_pause_shows_its_note_and_is_undone(page: Page, shop: Shop) -> None:
    page.goto("/schedules?of=daily_report")
    page.get_by_role("button", name="Pause…").click()
    page.get_by_role("textbox", name="note").fill("quiet week")
    page.get_by_role("button", name="Pause it").click()
    page.get_by_text("“quiet week”").wait_for()
    page.get_by_text("1 schedule overlaps, 1 paused", exact=True).first.wait_for()
    assert shop.ask("/schedules/daily_report")["paused"]["note"] == "quiet week"
    page.get_by_role("button", name="Resume", exact=True).click()
    page.get_by_text("Schedule daily_report resumed.").wait_for()
    assert shop.ask("/schedules/daily_report")["paused"] is None


@pytest.mark.prove
def test_a_tick_that_did_not_run_is_run(page: Page, shop: Shop) -> None:
    page.goto("/schedules?of=sync_stock&show=missed")
    page.get_by_role("button", name="Run…").last.click()
    page.get_by_role("button", name="Run it").click()
    page.get_by_text("Started 1 tick of sync_stock.").wait_for()
    assert shop.ask("/schedules/sync_stock/ticks")["summary"]["outcomes"]["backfilled"] >= 1


@pytest.mark.prove
def test_without_schedules_the_next_step_is_shown(page: Page, empty: Shop) -> None:
    page.goto(f"{empty.url}/schedules")
    page.get_by_text("There is no schedule yet").first.wait_for()
    page.get_by_text("@app.job(cron=").wait_for()


@pytest.mark.prove
def test_lint_marks_the_rows_of_a_herd_a_clock_change_and_runs_that_take_too_long(page: Page, shop: Shop) -> None:
    planted = [f"herd_{number}" for number in range(10)] + ["at_the_change", "too_often"]
    made: dict[str, Any] = {name: {"job": "expire_carts", "cron": "0 2 * * *"} for name in planted[:10]}
    made["at_the_change"] = {"job": "expire_carts", "cron": "30 2 * * *", "tz": "Europe/Berlin"}
    made["too_often"] = {"job": "chatter", "every": "1s", "arguments": {"lines": 15}}
    for name, options in made.items():
        shop.tell("/schedules", {"name": name, "app": "shop", **options})
    try:
        eventually(lambda: len(shop.ask("/lint")["findings"]) >= 3, what="three findings")
        page.goto("/schedules?of=too_often")
        page.get_by_text("10 schedules start together at").wait_for()
        for name, words in (
            ("herd_3", "10 schedules at 02:00 UTC"),
            ("at_the_change", "its time does not exist on"),
            ("too_often", "may be due after"),
        ):
            row = page.get_by_role("row", name=name)
            row.get_by_text(words).wait_for(state="attached")
        page.locator("p", has_text="may be due after").wait_for()
    finally:
        for name in planted:
            shop.drop(f"/schedules/{name}")
