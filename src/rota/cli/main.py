"""`rota`: finds a command by its name, and lists all commands with their help.

The module of a command is imported when the command is called, so that each command starts fast.
"""

from __future__ import annotations

import os
import sys
from difflib import get_close_matches
from importlib import import_module

import click

import rota
from rota.cli import failure
from rota.cli.database import Database, url_options
from rota.cli.options import Group
from rota.domain.errors import UsageError

SECTIONS = {
    "Run jobs": {
        "dev": "rota.cli.work:dev",
        "worker": "rota.cli.work:worker",
        "server": "rota.cli.server:server",
        "deploys": "rota.cli.deploys:deploys",
    },
    "Executions": {
        "enqueue": "rota.cli.enqueue:enqueue",
        "executions": "rota.cli.executions:executions",
        "show": "rota.cli.show:show",
        "logs": "rota.cli.logs:logs",
        "cancel": "rota.cli.executions:cancel",
        "run-now": "rota.cli.executions:run_now",
        "replay": "rota.cli.executions:replay",
        "dead": "rota.cli.dead:dead",
    },
    "Workflows": {
        "start": "rota.cli.enqueue:start",
        "runs": "rota.cli.runs:runs",
        "run": "rota.cli.run:run",
        "workflows": "rota.cli.workflows:workflows",
        "check": "rota.cli.check:check",
        "graph": "rota.cli.check:graph",
    },
    "Events": {
        "emit": "rota.cli.emit:emit",
        "events": "rota.cli.events:events",
        "hooks": "rota.cli.hooks:hooks",
    },
    "Schedules": {
        "schedules": "rota.cli.schedules:schedules",
        "next": "rota.cli.next_ticks:next_ticks",
        "backfill": "rota.cli.backfill:backfill",
    },
    "Jobs, queues, workers": {
        "jobs": "rota.cli.jobs:jobs",
        "queues": "rota.cli.queues:queues",
        "breakers": "rota.cli.breakers:breakers",
        "namespaces": "rota.cli.namespaces:namespaces",
        "templates": "rota.cli.templates:templates",
        "tokens": "rota.cli.tokens:tokens",
        "audit": "rota.cli.audit:audit",
        "workers": "rota.cli.workers:workers",
        "load": "rota.cli.load:load",
    },
    "The database": {
        "migrate": "rota.cli.migrate:migrate",
        "doctor": "rota.cli.doctor:doctor",
    },
}
COMMANDS = {name: place for section in SECTIONS.values() for name, place in section.items()}
EXAMPLE = """\b
Example, with a job `send` in shop.py:
  rota dev shop:app                  start a worker, on rota.db here
  rota enqueue send to=a@b.c --wait  run the job once and print its result
  rota executions --status failed    list failures
  rota show 1a2b3c4d                 show one with its error

\b
An ID may be shortened to its start, or to its last characters.
Every list has --json, which prints JSON.
`rota COMMAND --help` explains a command.
Settings come from the environment (ROTA_URL and others) or from rota.toml."""


class Commands(Group):
    """Finds commands by name and lists them by section."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            near = get_close_matches(args[0], COMMANDS, 1)
            hint = f", did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"No such command {args[0]!r}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section, names in SECTIONS.items():
            self.format_section(section, names, ctx, formatter)


@click.group(
    cls=Commands,
    epilog=EXAMPLE,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@url_options(hidden=False)
@click.version_option(rota.__version__, message="rota %(version)s", help="Print the version.")
@click.pass_context
def cli(context: click.Context) -> None:
    """Rota runs jobs: durably, on time, again if they fail."""
    context.call_on_close(context.ensure_object(Database).close)
    if context.invoked_subcommand is None:
        print(context.get_help())


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        # On a terminal that cannot show a character, print an escape instead of raising an error.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    if "_ROTA_COMPLETE" in os.environ:
        cli.main(prog_name="rota")
    sys.exit(failure.guarded(lambda: _run(sys.argv[1:])))


def _run(arguments: list[str]) -> None:
    for argument in arguments:
        if argument != argument.encode(errors="ignore").decode():
            raise UsageError(f"the argument {argument!r} is not valid UTF-8: encode it as UTF-8")
    with cli.make_context("rota", list(arguments)) as context:
        cli.invoke(context)
