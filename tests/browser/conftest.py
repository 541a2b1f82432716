"""A real browser on the shop: a page fails its test on an error of the console and on a request to another host."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.browser.site import Shop, fill
from tests.support import ownership

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Request, ViewportSize

FLAGS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update"
    " --disable-sync"
)
SIZE: ViewportSize = {"width": 1440, "height": 900}
PATIENCE_MS = 30_000


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The Chromium of the system. Without it, or without Playwright, the tests of the page are skipped."""
    api = pytest.importorskip("playwright.sync_api")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("needs chromium")
    with ownership.shared():
        playwright = api.sync_playwright().start()
        launched = playwright.chromium.launch(executable_path=program, args=FLAGS.split())
    yield launched
    launched.close()
    playwright.stop()


@pytest.fixture(scope="session")
def shop(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Work in every state, and five troubles. A test that changes something changes it back."""
    folder = tmp_path_factory.mktemp("shop")
    with ownership.shared():
        site = Shop(folder, f"sqlite:///{folder}/rota.db")
        fill(site)
    yield site
    site.close()


@pytest.fixture(scope="session")
def empty(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A server on a new database."""
    folder = tmp_path_factory.mktemp("empty")
    with ownership.shared():
        site = Shop(folder, f"sqlite:///{folder}/rota.db")
    yield site
    site.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport=SIZE)
    context.set_default_timeout(PATIENCE_MS)
    made = context.new_page()
    wrong: list[str] = []

    def say(message: ConsoleMessage) -> None:
        # A refusal of what was typed is an answer, which the page shows; Chromium reports it as an error all the same.
        if message.type == "error" and "status of 422" not in message.text:
            wrong.append(message.text)

    def look(request: Request) -> None:
        if urlsplit(request.url).hostname not in ("127.0.0.1", None):
            wrong.append(f"a request to {request.url}")

    made.on("console", say)
    made.on("pageerror", lambda error: wrong.append(str(error)))
    made.on("request", look)
    yield made
    context.close()
    assert wrong == []
