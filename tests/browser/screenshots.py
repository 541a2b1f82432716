"""Pictures of every page, to look at: in both themes, at three widths, of the shop and of an empty system."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from tests.browser import visits
from tests.browser.conftest import FLAGS, PATIENCE_MS
from tests.browser.site import Shop
from tests.browser.visits import Visit

SIZES = ({"width": 1440, "height": 900}, {"width": 1100, "height": 900}, {"width": 390, "height": 844})
THEMES = ("light", "dark")


def take(folder: Path, full: Shop, empty: Shop, only: str) -> int:
    """Writes `FOLDER/PAGE/WIDTH-THEME.png` for each page whose name begins with `only`; says how many."""
    shots = [(visit.name, full, visit, visits.found(full)) for visit in visits.EVERY]
    shots += [(f"empty-{visit.name}", empty, visit, {}) for visit in visits.EMPTY]
    shots = [shot for shot in shots if shot[0].startswith(only)]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS.split())
        for size in SIZES:
            for theme in THEMES:
                look: Any = {"viewport": size, "color_scheme": theme, "reduced_motion": "reduce"}
                context = browser.new_context(**look)
                context.set_default_timeout(PATIENCE_MS)
                page = context.new_page()
                for name, site, visit, ids in shots:
                    visit.open(page, site.url, ids)
                    page.screenshot(path=folder / name / f"{size['width']}-{theme}.png", full_page=_is_long(visit))
                context.close()
        browser.close()
    return len(shots) * len(SIZES) * len(THEMES)


def _is_long(visit: Visit) -> bool:
    """A dialog lies over what is on the screen, so there the picture ends with it."""
    return visit.click is None and visit.press is None
