"""The overview: what needs attention, and its actions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.browser.site import Shop
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page


def finding(page: Page, id: str) -> Locator:
    return page.locator(f'[data-finding="{id}"]')


def test_the_overview_names_every_trouble_and_fits_the_screen(page: Page, shop: Shop) -> None:
    page.goto(f"{shop.url}/?all=1")  # Other tests may have added findings to the seven that are shown otherwise.
    for id in (
        "failing:job:shop/charge",
        "no_worker:job:shop/render_video:pool video",
        "queue_paused:queue:mail",
        "ticks_overlap:schedule:shop/3",
    ):
        finding(page, id).wait_for()
    page.locator('[data-finding^="worker_trouble:"]').wait_for()
    assert finding(page, "failing:job:shop/charge").get_by_role("button", name="Pause job…").is_visible()
    assert finding(page, "no_worker:job:shop/render_video:pool video").get_by_role("link", name="Why").is_visible()
    page.goto(shop.url)
    finding(page, "failing:job:shop/charge").wait_for()
    page.locator(".uplot").nth(3).wait_for()
    page.get_by_role("link", name="expire_carts").wait_for()
    assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert "need attention" in page.title()


@pytest.mark.prove
def test_a_queue_is_resumed_from_the_overview_and_paused_again_with_its_note(page: Page, shop: Shop) -> None:
    page.goto(f"{shop.url}/?all=1")
    finding(page, "queue_paused:queue:mail").wait_for()
    shop.tell("/queues/reports/pause", {"note": "stocktaking"})
    waiting = shop.enqueue("many_lines", lines=1)
    row = finding(page, "queue_paused:queue:reports")
    row.get_by_text("stocktaking").wait_for()
    row.get_by_role("button", name="Resume…").click()
    page.get_by_role("dialog").get_by_role("button", name="Keep it paused").click()
    assert shop.ask("/queues/reports")["paused"] is not None
    row.get_by_role("button", name="Resume…").click()
    page.get_by_role("dialog").get_by_role("button", name="Resume queue").click()
    page.get_by_role("button", name="Undo: pause again").click()
    page.get_by_text("Undone.").wait_for()
    assert shop.ask("/queues/reports")["paused"]["note"] == "stocktaking"
    shop.tell("/queues/reports/resume")
    eventually(lambda: shop.status(waiting) == "success", what="the execution that waited")
    row.wait_for(state="detached")


@pytest.mark.prove
def test_a_finding_that_is_settled_under_the_pointer_hides_no_other(page: Page, shop: Shop) -> None:
    shop.tell("/queues/reports/pause", {"note": "stocktaking"})
    shop.enqueue("many_lines", lines=1)
    id = "queue_paused:queue:reports"
    eventually(lambda: id in [one["findingId"] for one in shop.ask("/overview")["findings"]], what="the finding")
    most = 7 if id in [one["findingId"] for one in shop.ask("/overview")["findings"][:7]] else 1000
    page.goto(shop.url if most == 7 else f"{shop.url}/?all=1")
    row = finding(page, id)
    row.hover()
    shop.tell("/queues/reports/resume")
    row.get_by_text("settled").wait_for()
    number = shop.ask("/overview")["findingCount"]
    live = page.locator("[data-finding]").filter(has_not_text="settled")
    assert live.count() == min(most, number)


@pytest.mark.prove
def test_a_new_finding_takes_its_place_after_a_dialog_was_over_the_list(page: Page, shop: Shop) -> None:
    page.goto(f"{shop.url}/?all=1")
    row = finding(page, "queue_paused:queue:mail")
    row.get_by_role("button", name="Resume…").click()
    page.get_by_role("dialog").get_by_text("the provider is down").wait_for()
    page.get_by_role("dialog").get_by_role("button", name="Keep it paused").click()
    shop.tell("/queues/reports/pause", {"note": "stocktaking"})
    waiting = shop.enqueue("many_lines", lines=1)
    finding(page, "queue_paused:queue:reports").wait_for()

    def is_ranked() -> bool:
        shown = page.locator("[data-finding]").evaluate_all("rows => rows.map(row => row.dataset.finding)")
        return bool(shown == [one["findingId"] for one in shop.ask("/overview")["findings"]])

    eventually(is_ranked, what="rows in the order of the server")
    shop.tell("/queues/reports/resume")
    eventually(lambda: shop.status(waiting) == "success", what="the execution that waited")


@pytest.mark.prove
@pytest.mark.parametrize(("address", "asked"), [("/", "overview"), ("/alerts", "findings")])
def test_ages_of_findings_move_on_a_quiet_system(page: Page, empty: Shop, address: str, asked: str) -> None:
    page.clock.install()
    page.goto(f"{empty.url}{address}")
    page.get_by_role("heading", level=2).or_(page.get_by_text("Nothing")).first.wait_for()
    with page.expect_request(f"**/api/v1/{asked}*"):
        page.clock.fast_forward(16_000)


@pytest.mark.prove
def test_a_version_that_replaces_another_is_named_among_the_changes(page: Page, shop: Shop) -> None:
    def version(job: str, number: int) -> dict[str, object]:
        subject = {"kind": "job", "id": job, "name": job, "app": "shop"}
        text, id = f"{job} version {number} registered", f"vshop/{job}/{number}"
        about = {"changeId": id, "kind": "version", "at": "2026-11-18T07:20:59Z", "actor": "deploy", "text": text}
        return {**about, "subject": subject, "action": None, "note": None}

    items = [version("charge", 2), *(version(f"job{number}", 1) for number in range(23))]
    answer = {"items": items, "nextCursor": None, "previousCursor": None}
    page.route("**/api/v1/changes?*", lambda route: route.fulfill(json=answer))
    page.goto(shop.url)
    page.get_by_role("listitem").filter(has_text="charge version 2 registered by deploy").wait_for()
    page.get_by_role("listitem").filter(has_text="23 new jobs registered by deploy").wait_for()


@pytest.mark.prove
def test_the_newest_change_is_shown_before_louder_ones(page: Page, shop: Shop) -> None:
    page.goto(shop.url)
    shop.tell("/jobs", {"name": "spare", "command": "true"})
    shop.tell("/queues/reports/pause")
    shop.tell("/queues/reports/resume")
    words = re.compile("queue reports resumed|pauses ended: .*reports|[0-9]+ pauses ended")
    page.get_by_role("listitem").filter(has_text=words).wait_for()
    shop.drop("/jobs/spare")


@pytest.mark.prove
def test_all_changes_are_an_address_of_their_own(page: Page, shop: Shop) -> None:
    page.goto(f"{shop.url}/?since=6h")
    page.get_by_role("button", name="changes in the last 6 hours").click()
    page.get_by_role("dialog").get_by_text("queue mail paused").first.wait_for()
    page.reload()
    page.get_by_role("dialog").get_by_text("queue mail paused").first.wait_for()
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    page.get_by_role("dialog").wait_for(state="detached")
    assert page.url.endswith("?since=6h")


@pytest.mark.prove
def test_the_list_of_keys_has_those_of_the_rows(page: Page, shop: Shop) -> None:
    page.goto(f"{shop.url}/")
    page.get_by_role("table").first.wait_for()
    page.keyboard.press("?")
    page.get_by_role("dialog").get_by_text("open the row").wait_for()


@pytest.mark.prove
def test_an_empty_system_says_the_next_step(page: Page, empty: Shop) -> None:
    page.goto(empty.url)
    page.get_by_text("Nothing has run here yet").wait_for()
    page.get_by_text("rota worker shop:app").wait_for()
    page.get_by_text("rota enqueue send").wait_for()


@pytest.mark.prove
def test_on_a_phone_the_rest_is_behind_more(page: Page, shop: Shop) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(shop.url)
    page.get_by_role("button", name="more:").click()
    page.locator("[data-finding]").nth(3).wait_for()
    page.reload()
    page.locator("[data-finding]").nth(3).wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
