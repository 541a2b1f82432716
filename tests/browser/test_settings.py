"""Signing in, what each role sees, tokens, the audit trail, and events."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.browser.site import Shop
from tests.support.proving import proof

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import Locked

SEEN = {
    "viewer": (["Appearance"], []),
    "operator": (["Appearance"], ["Backfill…", "Pause…"]),
    "admin": (["Appearance", "Tokens", "Namespaces", "Audit"], ["Backfill…", "New schedule…", "Pause…"]),
}


def sign_in(page: Page, locked: Locked, role: str, path: str) -> None:
    page.goto(f"{locked.url}{path}")
    page.get_by_label("token").fill(locked.secrets[role])
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{locked.url}{path}")


@pytest.mark.parametrize("role", [proof("viewer"), proof("operator"), proof("admin")])
def test_what_a_role_may_not_do_is_absent(page: Page, locked: Locked, role: str) -> None:
    sections, actions = SEEN[role]
    sign_in(page, locked, role, "/schedules?of=daily_report")
    page.get_by_role("heading", name="Ledger of daily_report").wait_for()
    names = re.compile("^(Backfill|Pause|New schedule|Run).*…$")
    assert sorted(page.get_by_role("button", name=names).all_inner_texts()) == actions
    page.goto(f"{locked.url}/settings")
    page.get_by_text("You and this server").wait_for()
    assert page.get_by_role("navigation", name="Sections").get_by_role("link").all_inner_texts() == sections


@pytest.mark.prove
def test_a_token_is_made_rotated_and_revoked(page: Page, locked: Locked) -> None:
    sign_in(page, locked, "admin", "/settings/tokens")
    page.get_by_role("button", name="New token…").click()
    page.get_by_role("textbox", name="name", exact=True).fill("ci")
    page.get_by_role("button", name="Make token").click()
    first = page.get_by_role("dialog").locator("code").inner_text()
    page.get_by_role("button", name="I have copied it").click()
    row = page.get_by_role("row", name=re.compile("^ci "))
    row.get_by_role("button", name="Rotate…").click()
    page.get_by_role("button", name="Make a new secret").click()
    page.get_by_text("This is shown once").wait_for()
    assert page.get_by_role("dialog").locator("code").inner_text() != first
    page.get_by_role("button", name="I have copied it").click()
    row.get_by_role("button", name="Revoke…").click()
    page.get_by_role("button", name="Revoke it").click()
    row.get_by_text("Revoked").wait_for()
    page.goto(f"{locked.url}/settings/audit?action=token.revoke")
    page.get_by_role("link", name="token.revoke").click()
    page.get_by_role("dialog").get_by_text("session:admin").wait_for()


@pytest.mark.prove
def test_a_wrong_token_is_refused_in_words(page: Page, locked: Locked) -> None:
    page.goto(f"{locked.url}/events")
    page.get_by_label("token").fill("rota_wrong")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("the token is malformed or mistyped").wait_for()


@pytest.mark.prove
def test_an_event_is_replayed_to_those_that_had_it(page: Page, shop: Shop) -> None:
    page.goto("/events")
    page.get_by_role("row").filter(has_text='{"id":"A-0"}').wait_for()
    page.get_by_role("link", name="order.paid").first.click()
    page.get_by_role("table", name="Executions that the event started").get_by_text("send_receipt").wait_for()
    before = len(shop.ask("/events")["items"])
    page.get_by_role("button", name="Replay…").click()
    page.get_by_text("Also deliver it again").click()
    page.get_by_role("button", name="Replay it").click()
    page.get_by_text("Event replayed.").wait_for()
    assert len(shop.ask("/events")["items"]) == before + 1


@pytest.mark.prove
def test_without_tokens_the_page_says_who_may_do_what(page: Page, empty: Shop) -> None:
    page.goto(f"{empty.url}/settings/tokens")
    page.locator("p", has_text="No token was made: every caller on this machine may do everything").wait_for()
    assert page.title().startswith("No token was made")
    assert page.get_by_role("button", name="New token…").count() == 0
