"""What axe finds on every page: contrast, names, roles, landmarks, tables and the order of headings."""

from __future__ import annotations

import fnmatch
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser import visits
from tests.browser.site import Shop
from tests.browser.visits import Visit
from tests.support.proving import proof

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "ui" / "node_modules" / "axe-core" / "axe.min.js"
ADDRESSES = ROOT / "src" / "rota" / "api" / "pages" / "addresses.json"
HEIGHTS = {1440: 900, 390: 844}
SAMPLE = [one for one in visits.EVERY if one.name in ("overview", "execution-failed")]
FIND = """async () => (await axe.run(document, {resultTypes: ['violations']})).violations
  .filter((one) => ['serious', 'critical'].includes(one.impact))
  .flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.html.slice(0, 160)} ${node.any[0]?.message ?? ''}`))"""


@pytest.mark.parametrize(
    ("theme", "width", "pages"),
    [
        ("light", 1440, SAMPLE),
        *(proof(theme, width, visits.EVERY) for theme in ("light", "dark") for width in (1440, 390)),
    ],
    ids=lambda value: "" if isinstance(value, list | tuple) else str(value),
)
def test_axe_finds_nothing_serious(page: Page, shop: Shop, theme: Any, width: int, pages: list[Visit]) -> None:
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": HEIGHTS[width]})
    ids, found = visits.found(shop), {}
    for visit in pages:
        visit.open(page, shop.url, ids)
        page.evaluate(AXE.read_text())  # Not as a script tag, which the policy of the page forbids.
        if problems := page.evaluate(FIND):
            found[visit.name] = problems
    assert found == {}


@pytest.mark.prove
def test_no_page_scrolls_sideways_at_a_zoom_of_400_percent(page: Page, shop: Shop) -> None:
    page.set_viewport_size({"width": 320, "height": 512})
    ids, wide = visits.found(shop), {}
    for visit in visits.EVERY:
        visit.open(page, shop.url, ids)
        if (width := page.evaluate("document.documentElement.scrollWidth")) > 320:
            wide[visit.name] = width
    assert wide == {}


@pytest.mark.prove
def test_an_unknown_address_has_a_page_that_says_so(page: Page, shop: Shop) -> None:
    answer = page.goto(f"{shop.url}/nowhere?a=b")
    assert answer is not None
    assert answer.status == 404
    page.get_by_text("There is no page at this address").wait_for()
    page.get_by_role("link", name="Open the overview").click()
    page.get_by_role("heading", name="Overview").wait_for()


def test_every_address_is_visited() -> None:
    paths = [visit.path.partition("?")[0] for visit in visits.EVERY]
    patterns = [re.sub(r"\{\w+\}", "*", one["path"]) for one in json.loads(ADDRESSES.read_text())]
    assert [one for one in patterns if not fnmatch.filter(paths, one)] == []
