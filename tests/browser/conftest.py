"""The shop as a site that all tests of a session share, and a page that fails its test on trouble in the browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

from tests.browser.site import Shop, fill
from tests.support import ownership

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
WIDE = {"width": 1440, "height": 900}
PATIENCE_MS = 30_000
UNKNOWN = "01a1e2"
"""No execution has this id: that the server does not find it is no trouble."""
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("shop")
    with ownership.shared():
        site = Shop(folder, f"sqlite:///{folder}/rota.db")
        fill(site)
    with site:
        yield site


@pytest.fixture
def browser() -> Iterator[Browser]:
    """One for each test: Playwright keeps an event loop running, which other plugins must not find between tests."""
    path = shutil.which("chromium")
    assert path is not None, "these tests need chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield found
        found.close()


@pytest.fixture
def page(browser: Browser, shop: Shop) -> Iterator[Page]:
    """Fails the test on errors in the console and on requests to other hosts."""
    troubles: list[str] = []
    context = browser.new_context(viewport=WIDE, base_url=shop.url)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()

    def on_console(message: ConsoleMessage) -> None:
        if message.type == "error" and UNKNOWN not in message.location.get("url", ""):
            troubles.append(f"console: {message.text}")

    def on_request(request: Request) -> None:
        if not request.url.startswith((shop.url, "blob:", "data:")):
            troubles.append(f"another host: {request.url}")

    page.on("console", on_console)
    page.on("request", on_request)
    page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
    yield page
    assert troubles == []
