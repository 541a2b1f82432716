"""Runs: the step that holds one up, its graph and timeline, answers, pause, cancel and retry."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.site import Shop
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page, ViewportSize

PHONE: ViewportSize = {"width": 390, "height": 844}


def run_of(shop: Shop, workflow: str) -> str:
    return str(shop.ask("/runs", workflow=workflow, order="asc")["items"][0]["runId"])


def release(shop: Shop, version: str) -> str:
    """A run that has come to its question."""
    run = str(shop.tell("/workflows/release/trigger", {"arguments": {"version": version}})["runId"])
    eventually(lambda: about(shop, run)["questions"], what="a run that asks")
    return run


def about(shop: Shop, run: str) -> Any:
    return shop.ask(f"/runs/{run}")


def graph(page: Page) -> Locator:
    return page.get_by_role("region", name="Steps of the run")


@pytest.mark.prove
def test_a_run_names_the_step_that_holds_it_up(shop: Shop, page: Page) -> None:
    page.goto(f"{shop.url}/runs/{run_of(shop, 'etl')}")
    page.get_by_text("transform [17]", exact=True).first.wait_for()
    page.get_by_text("UnicodeDecodeError").first.wait_for()
    graph(page).get_by_role("button", name=re.compile("^load")).click()
    page.wait_for_url("**?step=load")
    page.reload()
    page.get_by_role("heading", name="load").wait_for()
    page.locator("ol").get_by_role("button", name="load", pressed=True).wait_for()
    page.locator("ol").get_by_role("button", name="check").click()
    graph(page).get_by_role("button", name=re.compile("^check"), pressed=True).wait_for()
    page.go_back()
    page.get_by_role("heading", name="load").wait_for()


def test_an_answer_lets_a_run_continue(shop: Shop, page: Page) -> None:
    run = release(shop, "2.0")
    page.goto(f"{shop.url}/runs/{run}")
    page.get_by_label("note").fill("looks good")
    page.get_by_role("button", name=re.compile("^Approve$")).click()
    page.get_by_text("Succeeded in").wait_for()
    [answer] = shop.ask("/approvals", run=run)["items"]
    assert (answer["status"], answer["note"]) == ("approved", "looks good")


@pytest.mark.prove
def test_nodes_stay_in_place_when_states_change(shop: Shop, page: Page) -> None:
    run = release(shop, "2.1")
    page.goto(f"{shop.url}/runs/{run}")
    node = graph(page).get_by_role("button", name=re.compile("^deploy"))
    before = node.bounding_box()
    [asked] = shop.ask("/approvals", run=run)["items"]
    shop.tell(f"/approvals/{asked['approvalId']}/approve", {"note": ""})
    page.get_by_text("Succeeded in").wait_for()
    assert node.bounding_box() == before


@pytest.mark.prove
def test_a_run_is_paused_and_resumed(shop: Shop, page: Page) -> None:
    run = release(shop, "2.2")
    page.goto(f"{shop.url}/runs/{run}")
    page.get_by_role("button", name="Pause run…").click()
    page.get_by_role("dialog").get_by_label("note").fill("wait for Ann")
    page.get_by_role("dialog").get_by_role("button", name="Pause run").click()
    page.get_by_text("wait for Ann").wait_for()
    page.get_by_role("button", name="Resume run").click()
    page.get_by_role("button", name="Pause run…").wait_for()
    assert about(shop, run)["paused"] is None


@pytest.mark.prove
def test_a_retry_says_what_is_kept_before_it_is_asked_for(shop: Shop, page: Page) -> None:
    run = release(shop, "2.3")
    page.goto(f"{shop.url}/runs/{run}")
    page.get_by_role("button", name="Cancel run…").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel run").click()
    page.get_by_role("button", name="Retry run…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("Kept: 1").wait_for()
    dialog.get_by_label("from").select_option("build")
    dialog.get_by_text("Kept: 0").wait_for()
    dialog.get_by_label("from").select_option("")
    dialog.get_by_role("button", name="Retry 2 steps").click()
    page.get_by_text("Retries an earlier run").wait_for()
    assert about(shop, run)["retriedAs"] in page.url


@pytest.mark.prove
def test_on_a_phone_the_graph_is_a_list_of_steps(shop: Shop, page: Page) -> None:
    page.set_viewport_size(PHONE)
    page.goto(f"{shop.url}/runs/{run_of(shop, 'release')}")
    page.get_by_role("heading", name="Steps").wait_for()
    assert graph(page).count() == 0
    page.get_by_role("button", name=re.compile("^Approve$")).wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


@pytest.mark.prove
def test_the_list_leads_to_the_question_of_a_run(shop: Shop, page: Page) -> None:
    page.goto(f"{shop.url}/runs?workflow=release")
    page.get_by_role("link", name=re.compile("approve asks: Release 1.4")).click()
    page.wait_for_url("**/runs/*?step=approve")


@pytest.mark.prove
def test_without_runs_the_list_says_how_to_start_one(empty: Shop, page: Page) -> None:
    page.goto(f"{empty.url}/runs")
    page.get_by_text("rota start WORKFLOW").wait_for()
