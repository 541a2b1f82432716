"""Python on the pages runs, and commands on them exist."""

from __future__ import annotations

import contextlib
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest

import rota
from rota.cli.main import cli
from rota.clock import SystemClock
from rota.domain.instant import MICROSECONDS
from rota.executors.http import signing
from rota.sdk.app import App, registry_of
from rota.store.opening import is_server
from rota.testing import harness
from tests.docs.pages import blocks, inline_code, pages

SHELL = ("console", "sh")
ELSEWHERE = {"docs/transactions.md"}  # Needs PostgreSQL, and runs in tests/transaction.


def with_python() -> list[str]:
    return [page for page in pages() if blocks(page, "python") and page not in ELSEWHERE]


@pytest.fixture
def inline_apps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Every app that a page makes runs its jobs at once, on a database in memory."""
    monkeypatch.chdir(tmp_path)
    for name in ("ROTA_URL", "ROTA_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    with contextlib.ExitStack() as stack:

        class InlineApp(App):
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **kwargs)
                if not is_server(registry_of(self).settings.url):  # Such an app is made, but not used.
                    stack.enter_context(harness(self, inline=True))

        monkeypatch.setattr(rota, "App", InlineApp)
        yield


@pytest.mark.parametrize("page", with_python())
@pytest.mark.usefixtures("inline_apps")
def test_python_on_the_pages_runs(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page are one program, in the order in which a reader meets them."""
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)  # Dataclasses look there for their annotations.
    names = vars(module)
    for block in blocks(page, "python"):
        # Line numbers in a traceback are those of the page.
        exec(compile("\n" * (block.line - 1) + block.body, page, "exec"), names)


def test_the_fixture_on_the_page_keeps_tests_off_the_real_database(tmp_path: Path) -> None:
    first, *others = blocks("docs/testing.md", "python")
    with_fixture = [block.body for block in others if "Harness" in block.body]
    (tmp_path / "test_page.py").write_text("\n\n".join([first.body, *with_fixture]))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto", str(tmp_path)]
    answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert "3 passed" in answer.stdout, answer.stdout + answer.stderr
    assert not list(tmp_path.glob("rota.db*"))


def test_the_receiver_on_the_page_checks_what_is_signed() -> None:
    (block,) = [block for block in blocks("docs/execution.md", "python") if "def is_signed" in block.body]
    names: dict[str, Any] = {"Mapping": Mapping}
    exec(compile(block.body, "docs/execution.md", "exec"), names)
    is_signed, about = names["is_signed"], {"Idempotency-Key": "an-id", "X-Rota-Fence": "1", "Accept": "*/*"}
    now = SystemClock().now() // MICROSECONDS
    headers = {**about, **signing.sign("POST", "/a?b=c", about, b"body", b"key", now)}
    assert is_signed(headers, "POST", "/a?b=c", b"body", b"key")
    assert not is_signed({**headers, "Idempotency-Key": "another"}, "POST", "/a?b=c", b"body", b"key")
    assert not is_signed(headers, "POST", "/a?b=c", b"body", b"another key")
    old = {**about, **signing.sign("POST", "/a?b=c", about, b"body", b"key", now - 400)}
    assert not is_signed(old, "POST", "/a?b=c", b"body", b"key")


def test_pages_with_python_are_found() -> None:
    assert {"README.md", "docs/jobs.md", "docs/testing.md"} <= set(with_python())


def commands(page: str) -> list[str]:
    """Every call of `rota` that the page shows, in a block or between backticks."""
    lines = [line for block in blocks(page, *SHELL) for line in block.body.splitlines()]
    shown = [line.removeprefix("$ ").removeprefix(".venv/bin/") for line in (*lines, *inline_code(page))]
    return [line for line in shown if re.match(r"rota( |$)", line)]


@pytest.mark.parametrize("page", [page for page in pages() if commands(page)])
def test_commands_on_the_pages_exist(page: str) -> None:
    wrong = [f"{line}: {problem}" for line in commands(page) if (problem := wrong_with(line))]
    assert not wrong, "\n".join(wrong)


def wrong_with(line: str) -> str:
    """What is wrong with a command line, as far as names of commands and options go; empty if nothing is."""
    command: click.Command = cli
    context = click.Context(command, info_name="rota")
    for word in shlex.split(line, comments=True)[1:]:
        if word.startswith("--"):
            known = {name for parameter in command.get_params(context) for name in parameter.opts}
            if word.partition("=")[0] not in known:
                return f"{context.command_path} has no option {word}"
        elif isinstance(command, click.Group) and re.fullmatch(r"[a-z]+", word):
            found = command.get_command(context, word)
            if found is None:
                return f"{context.command_path} has no command {word}"
            command, context = found, click.Context(found, info_name=word, parent=context)
    return ""


def test_wrong_commands_are_found() -> None:
    assert wrong_with("rota worker shop:app --queues mail") == ""
    assert wrong_with("rota frobnicate") == "rota has no command frobnicate"
    assert wrong_with("rota dead --colour") == "rota dead has no option --colour"
