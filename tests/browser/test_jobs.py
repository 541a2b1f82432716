"""Jobs: the list, the history of one, the form that runs it, and its definition."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.browser import shop as code
from tests.browser.site import Shop

if TYPE_CHECKING:
    from playwright.sync_api import Page

HELLO = {"name": "hello", "app": "shop", "command": ["echo", "hello"]}


@pytest.mark.prove
def test_the_list_leads_to_a_job_and_its_failures(shop: Shop, page: Page) -> None:
    page.goto(f"{shop.url}/jobs")
    page.get_by_role("img", name="last 20 runs: 20 failed").wait_for()
    page.get_by_role("link", name=re.compile("^charge")).click()
    page.wait_for_url("**/jobs/shop/charge")
    page.get_by_text("What 2 changed").wait_for()
    page.get_by_role("navigation", name="About the job").get_by_role("link", name="Executions").click()
    page.wait_for_url("**?tab=executions")
    page.reload()
    page.get_by_role("table", name="Executions, newest first").wait_for()


@pytest.mark.prove
def test_the_form_checks_arguments_as_the_server_does(shop: Shop, page: Page) -> None:
    page.goto(f"{shop.url}/jobs/shop/many_lines")
    page.get_by_role("button", name="Run…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label(re.compile("^lines")).fill("many")
    dialog.get_by_role("button", name="Run many_lines").click()
    dialog.get_by_text(re.compile("expected whole number")).first.wait_for()
    dialog.get_by_role("button", name="Take the arguments of the last run").click()
    last = shop.ask("/executions", job="many_lines", limit=1, fields="arguments")["items"][0]["arguments"]
    assert dialog.get_by_label(re.compile("^lines")).input_value() == str(last["lines"])
    dialog.get_by_label(re.compile("^lines")).fill("3")
    dialog.get_by_role("button", name="Run many_lines").click()
    page.get_by_role("button", name="Open it").click()
    page.wait_for_url("**/executions/*")
    execution = page.url.rsplit("/", 1)[1]
    assert shop.ask(f"/executions/{execution}")["arguments"] == {"lines": 3}


@pytest.mark.prove
def test_a_job_is_paused_with_a_note_and_resumed(shop: Shop, page: Page) -> None:
    page.goto(f"{shop.url}/jobs/shop/daily_report")
    page.get_by_role("button", name="Pause…").click()
    page.get_by_role("dialog").get_by_label("note").fill("the source is down")
    page.get_by_role("dialog").get_by_role("button", name="Pause job").click()
    page.get_by_text("the source is down").wait_for()
    page.get_by_role("button", name="Resume", exact=True).click()
    page.get_by_role("button", name="Pause…").wait_for()
    assert shop.ask("/jobs/daily_report", app="shop")["state"] == "active"


@pytest.mark.prove
def test_a_job_that_is_data_is_edited_and_rolled_back(shop: Shop, page: Page) -> None:
    shop.tell("/jobs", HELLO)
    page.goto(f"{shop.url}/jobs/shop/hello?tab=definition")
    page.get_by_role("button", name="Edit definition").click()
    area = page.get_by_label(re.compile("^definition"))
    text = area.input_value()
    area.fill(text.replace('"queue": "default"', '"queue": 5'))
    page.get_by_role("button", name="Check").click()
    page.get_by_text(re.compile("/queue: expected")).wait_for()
    area.fill(text.replace('"queue": "default"', '"queue": "greetings"'))
    page.get_by_role("button", name="Save definition").click()
    page.get_by_text("Definition, version 2").wait_for()
    page.get_by_role("link", name="History").click()
    page.get_by_role("button", name="Roll back to 1…").click()
    page.get_by_role("dialog").get_by_role("button", name="Roll back to 1").click()
    page.get_by_text(re.compile("again, as a new version")).wait_for()
    assert shop.ask("/jobs/hello", app="shop")["queue"] == "default"


@pytest.mark.prove
def test_the_graph_leads_from_a_job_to_what_it_starts(empty: Shop, page: Page) -> None:
    empty.tell("/jobs", {"name": "first", "command": ["true"]})
    empty.tell("/jobs", {"name": "second", "command": ["true"], "dependencies": ["first"]})
    page.goto(f"{empty.url}/jobs/default/first?tab=depends")
    page.get_by_role("button", name=re.compile("^second")).click()
    page.wait_for_url("**/jobs/default/second?tab=depends")
    page.get_by_text("Runs after first.").wait_for()
    for name in ("second", "first"):
        empty.drop(f"/jobs/{name}")


@pytest.mark.prove
def test_a_job_of_code_is_only_read(shop: Shop, page: Page) -> None:
    page.goto(f"{shop.url}/jobs/shop/charge?tab=definition")
    page.get_by_text("change it there and deploy").wait_for()
    assert page.get_by_role("button", name="Edit definition").count() == 0


@pytest.mark.prove
def test_a_job_of_code_says_how_its_deploy_is_rolled_back(shop: Shop, page: Page) -> None:
    words = "deploy 1 of app shop comes into force with all its jobs"
    page.goto(f"{shop.url}/jobs/shop/charge")
    page.get_by_text(words).wait_for()
    page.get_by_text("rota deploys use shop 1").wait_for()
    page.goto(shop.url)
    row = page.locator('[data-finding="failing:job:shop/charge"]')
    row.get_by_role("button", name="Roll back…").click()
    page.get_by_role("dialog").get_by_text(words).wait_for()


@pytest.mark.prove
@pytest.mark.parametrize("width", [390, 1100, 1440])
def test_a_long_name_does_not_widen_the_page(shop: Shop, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    for address in ("/jobs", f"/jobs/shop/{code.LONG_NAME}"):
        page.goto(shop.url + address)
        page.get_by_text(code.LONG_NAME).first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.prove
def test_a_filter_that_finds_nothing_has_a_way_out(empty: Shop, page: Page) -> None:
    page.goto(f"{empty.url}/jobs?name=none")
    page.get_by_role("link", name="Show all jobs").wait_for()


@pytest.mark.prove
def test_a_schedule_that_is_paused_is_said_so_in_the_list_of_jobs(shop: Shop, page: Page) -> None:
    schedule = next(one for one in shop.ask("/schedules")["items"] if one["name"] == "expire_carts")
    shop.tell(f"/schedules/{schedule['scheduleId']}/pause", {"note": "stocktaking"})
    page.goto(f"{shop.url}/jobs")
    page.get_by_role("row").filter(has_text="expire_carts").get_by_text("(paused)").wait_for()
    shop.tell(f"/schedules/{schedule['scheduleId']}/resume")
