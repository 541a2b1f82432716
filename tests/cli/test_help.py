"""Help, version, documentation and start-up."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import rota
from rota.cli.main import COMMANDS, SECTIONS, cli
from tests.cli.shell import Shell

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "cli.md"


def every_command(
    group: click.Group = cli, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from every_command(command, (*path, name))


PATHS = {" ".join(path): command for path, command in every_command()}


def options_of(command: click.Command) -> list[click.Option]:
    return [one for one in command.params if isinstance(one, click.Option) and not one.hidden]


@pytest.mark.parametrize("path", ["", *PATHS])
def test_help_fits_into_80_columns_and_is_not_cut_off(path: str) -> None:
    done = CliRunner().invoke(cli, [*path.split(), "--help"], terminal_width=78)  # Click leaves two columns free.
    assert done.exit_code == 0, done.output
    usage, *lines = done.output.splitlines()
    assert usage.startswith("Usage: ")
    for line in lines:
        assert len(line) <= 80
        assert not line.endswith(("…", "...")), line


@pytest.mark.parametrize("path", PATHS)
def test_every_command_and_option_has_a_help_line(path: str) -> None:
    short = PATHS[path].get_short_help_str(200)
    assert 10 < len(short) <= 75
    for option in options_of(PATHS[path]):
        assert option.help, f"{path} {option.opts[0]} has no help"
        assert option.help.endswith("."), f"the help of {path} {option.opts[0]} is not a sentence"


@pytest.mark.parametrize("path", PATHS)
def test_every_command_and_option_is_documented(path: str) -> None:
    sections = re.split(r"^## ", DOCUMENT.read_text("utf-8"), flags=re.MULTILINE)
    own = [section for section in sections if f"`rota {path}" in section]
    assert own, f"docs/cli.md does not say `rota {path}`"
    for option in options_of(PATHS[path]):
        assert any(option.opts[0] in section for section in own), (
            f"docs/cli.md does not say {option.opts[0]} for {path}"
        )


def test_the_document_names_no_option_that_does_not_exist() -> None:
    known = {opt for command in (cli, *PATHS.values()) for one in command.params for opt in one.opts}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", DOCUMENT.read_text("utf-8")))
    assert named <= known | {"--help"}


def test_the_main_help_lists_every_command_in_a_section_and_has_an_example(shell: Shell) -> None:
    text = shell.ok("--help").out
    for section in SECTIONS:
        assert f"{section}:\n" in text
    for name in COMMANDS:
        assert re.search(rf"^  {name}  +\w", text, re.MULTILINE)
    assert "rota dev shop:app" in text
    assert shell.ok().out == text


def test_a_group_without_a_command_prints_its_help_and_fails(shell: Shell) -> None:
    done = shell("run")
    assert (done.code, done.err) == (2, shell.ok("run", "--help").out)


def test_the_version_is_printed_without_loading_the_engine(shell: Shell) -> None:
    assert shell.ok("--version").out == f"rota {rota.__version__}\n"
    code = (
        "import sys, rota.cli.main as main; sys.argv = ['rota', '--version']\n"
        "try: main.main()\n"
        "finally: print(*sorted(sys.modules))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"rich", "asyncio", "msgspec", "sqlite3", "rota.sdk", "rota.engine", "rota.store"}
    assert heavy.isdisjoint(loaded)


def test_lists_do_not_load_the_sdk_or_the_engine(shell: Shell) -> None:
    shell.ok("migrate")
    code = (
        "import sys, rota.cli.main as main; sys.argv = ['rota', 'executions']\n"
        "try: main.main()\n"
        "finally: print(*sorted(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=shell.folder, env=shell.env, capture_output=True, text=True, check=True
    )
    assert {"rich", "asyncio", "rota.sdk", "rota.engine"}.isdisjoint(done.stdout.split())


def test_importing_rota_opens_nothing_and_loads_little() -> None:
    code = (
        "import sys, rota; print([name for name in ('sqlite3', 'psycopg', 'asyncio', 'click') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
