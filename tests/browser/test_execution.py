"""One execution: why it failed, why it does not run, its log, and what can be done with it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser import shop as jobs
from tests.browser.conftest import UNKNOWN
from tests.browser.site import NOTE, Shop
from tests.support.waiting import eventually

MANY = 100_000


def first(shop: Shop, **query: str) -> str:
    return str(shop.ask("/executions", limit=1, **query)["items"][0]["executionId"])


def ended(shop: Shop, job: str, **arguments: object) -> str:
    id = shop.enqueue(job, **arguments)
    eventually(lambda: shop.status(id) == "success", 120, what=f"{job} that succeeds")
    return id


def heap(page: Page) -> int:
    """Bytes that the page holds."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    size = int(session.send("Runtime.getHeapUsage")["usedSize"])
    print(f"heap: {size / 1e6:.1f} MB")
    return size


def test_a_failure_shows_its_error_its_attempts_and_those_like_it(page: Page, shop: Shop) -> None:
    page.goto(f"/executions/{first(shop, job='charge', status='failed')}")
    expect(page.get_by_text("All 3 attempts failed with")).to_be_visible()
    expect(page.get_by_role("heading", name="Error of attempt 3")).to_be_visible()
    expect(page.get_by_role("heading", name=re.compile("more like it"))).to_be_visible()
    expect(page.get_by_text("version 1 had none")).to_be_visible()
    expect(page).to_have_title("✗ charge failed · Rota")
    page.keyboard.press("1")
    expect(page.get_by_role("heading", name="Error of attempt 1")).to_be_visible()
    expect(page).to_have_url(re.compile("attempt=1"))
    page.get_by_role("button", name="Raw").click()
    expect(page.get_by_text("Traceback (most recent call last)")).to_be_visible()


@pytest.mark.prove
def test_own_frames_have_the_lines_around_and_the_raw_text_is_a_traceback(page: Page, shop: Shop) -> None:
    failed = shop.ask("/executions", job="charge", status="failed", limit=1)["items"][0]["executionId"]
    page.goto(f"/executions/{failed}")
    expect(page.get_by_text('log.warning("connection reset, giving up after 2.0 s")')).to_be_visible()
    expect(page.get_by_text('return f"receipt for {order}"')).to_be_visible()
    page.get_by_role("button", name="Raw").click()
    raw = page.locator("pre", has_text="Traceback (most recent call last)")
    expect(raw).to_contain_text("raise GatewayError")
    expect(raw).not_to_contain_text("receipt for")


def test_what_does_not_run_says_why_and_what_makes_it_run(page: Page, shop: Shop) -> None:
    page.goto(f"/executions/{first(shop, job='render_video', status='queued')}")
    expect(page.get_by_text("Not running because")).to_contain_text("no live worker has what it needs (pool video)")
    expect(page.get_by_text("nearest workers")).to_be_visible()
    expect(page.get_by_text("rota worker MODULE:shop --pool video")).to_be_visible()
    expect(page.get_by_role("heading", name="Place in line")).to_be_visible()


@pytest.mark.prove
def test_a_paused_queue_is_named_with_its_note(page: Page, shop: Shop) -> None:
    page.goto(f"/executions/{first(shop, job='send_email', status='queued')}")
    expect(page.get_by_text("Not running because")).to_contain_text(NOTE)
    expect(page.get_by_role("button", name="Resume queue mail")).to_be_visible()


@pytest.mark.prove
def test_cancelling_is_seen_without_a_reload(page: Page, shop: Shop) -> None:
    id = shop.enqueue("render_video", product="P-1")
    page.goto(f"/executions/{id}")
    expect(page.get_by_role("heading", name="Why it is not running")).to_be_visible()
    page.keyboard.press("c")
    page.get_by_label("note").fill("wrong product")
    page.get_by_role("dialog").get_by_role("button", name="Cancel 1").click()
    expect(page.get_by_text("It was cancelled at")).to_be_visible()
    expect(page.get_by_text("none, up to")).to_be_visible()


@pytest.mark.prove
def test_a_priority_is_raised_and_a_scheduled_one_runs_now(page: Page, shop: Shop) -> None:
    body = {"job": "build", "arguments": {"version": "7"}, "delay": "6h"}
    id = str(shop.tell("/executions", body)["executionId"])
    page.goto(f"/executions/{id}")
    page.get_by_role("button", name="Raise priority…").click()
    page.get_by_role("button", name="Change the priority").click()
    expect(page.get_by_text("priority high").first).to_be_visible()
    page.get_by_role("button", name="Run now").first.click()
    expect(page.get_by_text("It ended well")).to_be_visible()
    expect(page.get_by_role("heading", name="Result")).to_be_visible()


@pytest.mark.prove
def test_a_replay_with_changes_is_checked_before_it_is_sent(page: Page, shop: Shop) -> None:
    page.goto(f"/executions/{ended(shop, 'build', version='1')}")
    page.get_by_role("button", name="Replay with changes…").click()
    dialog = page.get_by_role("dialog")
    box = dialog.get_by_label("arguments")
    box.fill('{"version": ')
    expect(dialog.get_by_text("no JSON")).to_be_visible()
    expect(dialog.get_by_role("button", name="Replay 1")).to_be_disabled()
    box.fill('{"version": "2"}')
    dialog.get_by_role("button", name="Replay 1").click()
    page.get_by_role("button", name="Open it").click()
    expect(page.get_by_text("image:2")).to_be_visible()


@pytest.mark.prove
def test_a_long_log_reaches_its_first_line_and_finds_any(page: Page, shop: Shop) -> None:
    id = ended(shop, "many_lines", lines=MANY)
    page.goto(f"/executions/{id}")
    log = page.get_by_label("Lines of the log")
    expect(log.get_by_text(f"line {MANY} of {MANY}")).to_be_visible()
    expect(page.get_by_text(f"{MANY:,} lines")).to_be_visible()
    expect(page.get_by_text("earlier ones are being read")).to_have_count(0)
    before = heap(page)
    for _ in range(3):
        log.evaluate("box => box.scrollTo(0, 0)")
        expect(log.get_by_text(f"line 1 of {MANY}", exact=True)).to_be_visible()
        log.evaluate("box => box.scrollTo(0, box.scrollHeight / 2)")
        expect(log.get_by_text(re.compile("line 50000 of"))).to_be_attached()
        log.evaluate("box => box.scrollTo(0, box.scrollHeight)")
        expect(log.get_by_text(f"line {MANY} of {MANY}")).to_be_visible()
        assert log.locator("[data-index]").count() < 200
    assert heap(page) < before + 5_000_000
    page.get_by_label("Search the log").fill("line 80123 of")
    expect(page.get_by_role("status").filter(has_text="1 of 1")).to_be_visible()
    expect(log.get_by_text(f"line 80123 of {MANY}")).to_be_visible()
    with page.expect_download() as downloaded:
        page.get_by_role("button", name="Download the log as text").click()
    texts = downloaded.value.path().read_text().splitlines()
    assert texts == [f"line {number} of {MANY}" for number in range(1, MANY + 1)]


@pytest.mark.prove
def test_a_selection_in_a_long_log_is_copied_and_survives_scrolling(page: Page, shop: Shop) -> None:
    page.goto(f"/executions/{ended(shop, 'many_lines', lines=8000)}")
    log = page.get_by_label("Lines of the log")
    expect(page.get_by_text("8,000 lines")).to_be_visible()
    log.evaluate("box => box.scrollTo(0, 0)")
    for number, act in ((1, page.mouse.down), (3, page.mouse.up)):
        box = log.get_by_text(f"line {number} of 8000", exact=True).bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + (1 if number == 1 else 400), box["y"] + 9)
        act()
    selected = "line 1 of 8000\nline 2 of 8000\nline 3 of 8000"
    assert page.evaluate("getSelection().toString()") == selected
    log.evaluate("box => box.scrollBy(0, 20000)")
    expect(log.get_by_text("line 1120 of 8000", exact=True)).to_be_visible()
    assert page.evaluate("getSelection().toString()") == selected


@pytest.mark.prove
def test_a_log_above_its_bound_says_what_is_left_out(page: Page, shop: Shop) -> None:
    page.goto(f"/executions/{ended(shop, 'many_lines', lines=500_000)}")
    expect(page.get_by_text(re.compile(r"lines, [\d,]+ left out after line [\d,]+$"))).to_be_visible(timeout=60_000)
    log = page.get_by_label("Lines of the log")
    expect(log.get_by_text("line 500000 of 500000")).to_be_visible()
    page.get_by_label("Search the log").fill("left out here")
    expect(log.get_by_text(re.compile(r"\([\d,]+ lines are left out here\)"))).to_be_visible()


@pytest.mark.prove
def test_a_live_log_is_followed_until_the_reader_scrolls_up(page: Page, shop: Shop) -> None:
    id = shop.enqueue("chatter", lines=3000)
    page.goto(f"/executions/{id}")
    expect(page.get_by_text("word 60", exact=True)).to_be_visible(timeout=60_000)
    expect(page.get_by_text("Following")).to_be_visible()
    page.get_by_label("Lines of the log").evaluate("box => box.scrollBy(0, -200)")
    expect(page.get_by_role("button", name=re.compile("new lines?$"))).to_be_visible()
    page.keyboard.press("f")
    expect(page.get_by_text("Following")).to_be_visible()
    shop.tell(f"/executions/{id}/cancel", {})
    expect(page.get_by_text("It was cancelled at").or_(page.get_by_text("It ended well"))).to_be_visible()


@pytest.mark.prove
def test_hostile_text_is_only_text(page: Page, shop: Shop) -> None:
    page.goto(f"/executions/{first(shop, job='import_catalog')}")
    expect(page.get_by_text(jobs.HOSTILE).first).to_be_visible()
    assert page.evaluate("window.hostile") is None


@pytest.mark.prove
@pytest.mark.parametrize("width", [390, 1100])
def test_long_names_do_not_widen_the_page(page: Page, shop: Shop, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"/executions/{first(shop, job=jobs.LONG_NAME)}")
    expect(page.get_by_role("heading", name="Error of attempt 1")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.prove
def test_an_unknown_id_says_so(page: Page) -> None:
    page.goto(f"/executions/{UNKNOWN}")
    expect(page.get_by_text(f"No execution starts with {UNKNOWN}")).to_be_visible()
