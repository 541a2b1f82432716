"""A real browser on the shop. A page fails its test on an error in the console and on a request to another host."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect, sync_playwright

from tests.browser.site import Shop, fill
from tests.support import ownership

FLAGS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update"
    " --disable-sync"
)
WIDE = {"width": 1440, "height": 900}
PATIENCE_MS = 30_000
UNKNOWN = "01a1e2"
"""No execution has this id."""
REFUSAL = re.compile(r"Failed to load resource: the server responded with a status of 4\d\d")
"""What the console says of an answer that the page expects and shows, such as that a form is not valid yet."""

expect.set_options(timeout=PATIENCE_MS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of these tests run in one process, which fills the shop once."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser of the system. Skips the test where it is missing."""
    found = shutil.which("chromium")
    return found or pytest.skip("needs chromium: scripts/test-servers, or apt-get install chromium")


@pytest.fixture(scope="session")
def shop(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Work in every state, and five troubles. A test that changes something changes it back."""
    folder = tmp_path_factory.mktemp("shop")
    with ownership.shared():
        site = Shop(folder, f"sqlite:///{folder}/rota.db")
        fill(site)
    with site:
        yield site


@pytest.fixture(scope="session")
def empty(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A server on a new database, without tokens."""
    folder = tmp_path_factory.mktemp("empty")
    with ownership.shared():
        site = Shop(folder, f"sqlite:///{folder}/rota.db")
    with site:
        yield site


class Locked:
    """A server that wants a token, and the secrets of one token for each role."""

    def __init__(self, site: Shop) -> None:
        self.url = site.url
        self.secrets = {role: _token(site, role) for role in ("viewer", "operator", "admin")}


@pytest.fixture(scope="session")
def locked(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Locked]:
    folder = tmp_path_factory.mktemp("locked")
    with ownership.shared():
        site = Shop(folder, f"sqlite:///{folder}/rota.db")
        site.worker("--concurrency", "4")
    with site:
        yield Locked(site)


@pytest.fixture
def browser(chromium: str) -> Iterator[Browser]:
    """One for each test: Playwright keeps an event loop running, which other plugins must not find between tests."""
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium, args=FLAGS.split())
        yield found
        found.close()


@pytest.fixture
def troubles() -> list[str]:
    """What went wrong in the pages of the test."""
    return []


@pytest.fixture
def context(browser: Browser, shop: Shop, troubles: list[str]) -> BrowserContext:
    """Addresses without a host are those of the shop. Its pages tell their troubles."""
    size: Any = WIDE
    made = browser.new_context(viewport=size, base_url=shop.url)
    made.set_default_timeout(PATIENCE_MS)

    def on_console(message: ConsoleMessage) -> None:
        if message.type == "error" and not REFUSAL.match(message.text):
            troubles.append(f"console: {message.text}")

    def on_request(request: Request) -> None:
        if urlsplit(request.url).hostname not in ("127.0.0.1", None):
            troubles.append(f"another host: {request.url}")

    made.on("console", on_console)
    made.on("request", on_request)
    made.on("weberror", lambda error: troubles.append(f"error: {error.error}"))
    return made


@pytest.fixture
def page(context: BrowserContext, troubles: list[str]) -> Iterator[Page]:
    yield context.new_page()
    assert troubles == []


def _token(site: Shop, role: str) -> str:
    """Made by the command line, as an admin makes the first one."""
    command = [sys.executable, "-m", "rota", "tokens", "create", role, "--role", role, "--in", "*"]
    environment = {**os.environ, "ROTA_URL": site.database}
    done = subprocess.run(command, cwd=site.folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()
