"""The types of values on the command line, and the options that several commands share."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from rota.clock import MACHINE
from rota.domain import duration, rank
from rota.domain.errors import DefinitionError
from rota.domain.instant import MICROSECONDS
from rota.ids import LAST_ID

F = TypeVar("F", bound=Callable[..., object])
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
WHOLE = 1000
"""As the width of a help line: nothing is cut off."""
_NUMBER = re.compile(r"\d+(\.\d+)?")


def length(value: str) -> float:
    """A duration in seconds: `30`, `90s`, `5m`, `1h30m`."""
    try:
        return duration.seconds(float(value) if _NUMBER.fullmatch(value) else value)
    except DefinitionError as error:
        raise click.BadParameter(str(error).removeprefix("duration ")) from None


def number(most: int) -> Callable[[str | int], int]:
    """A whole number from 1 to `most`."""

    def convert(value: str | int) -> int:
        if re.fullmatch(r"[1-9]\d{0,15}", str(value)) and int(value) <= most:
            return int(value)
        raise click.BadParameter(f"must be a number from 1 to {most:,}, not {str(value)[:64]!r}.")

    return convert


def moment(value: str) -> datetime:
    """An instant: ISO 8601 with a time zone."""
    return _moment(value, "")


def past(value: str) -> int:
    """An instant, or the time since then, such as `2h`; in microseconds."""
    try:
        return max(0, MACHINE.now() - round(duration.seconds(value) * MICROSECONDS))
    except DefinitionError:
        return round(_moment(value, ", or how long ago, such as 2h").timestamp() * MICROSECONDS)


def past_or_day(value: str) -> int | date:
    """`past`, or a day without a time."""
    if re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        with contextlib.suppress(ValueError):
            return date.fromisoformat(value)
    return past(value)


def priority(value: str) -> int:
    """`high`, `normal`, `low` or a number."""
    try:
        return rank.level(int(value) if re.fullmatch(r"[+-]?\d{1,6}", value) else value)
    except DefinitionError as error:
        raise click.BadParameter(str(error).removeprefix("priority ")) from None


def between(start: int | None, end: int | None, now: int) -> tuple[int, int]:
    """The values of --from and --to; by default 1970 and now."""
    low, high = start or 0, end or now
    if high < low:
        raise click.UsageError("--to: comes before --from" if end else "--from: is not in the past")
    return low, high


class Group(click.Group):
    """A group of commands whose help lines are not cut off."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_section("Commands", self.list_commands(ctx), ctx, formatter)

    def format_section(
        self, title: str, names: Iterable[str], ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        found = [(name, self.get_command(ctx, name)) for name in names]
        with formatter.section(title):
            formatter.write_dl([(name, command.get_short_help_str(WHOLE)) for name, command in found if command])


def list_group(function: Callable[..., object]) -> click.Group:
    """A group of commands that lists when it is called without one of them."""

    @functools.wraps(function)
    def alone(*args: Any, **options: Any) -> None:
        context = click.get_current_context()
        if context.invoked_subcommand is None:
            function(*args, **options)
            return
        for option in context.command.params:
            if option.name in options and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE:
                command = f"{context.command_path} {context.invoked_subcommand}"
                raise click.UsageError(
                    f"{option.opts[0]} is an option of the list: give the options of `{command}` after it"
                )

    return click.group(cls=Group, invoke_without_command=True)(alone)


def all_of(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Several options as one decorator."""
    return lambda function: functools.reduce(lambda decorated, option: option(decorated), reversed(options), function)


def limit_option(default: int, most: int) -> Callable[[F], F]:
    words = f"How many rows at most (default: {default:,}, highest: {most:,})."
    return click.option("--limit", type=number(most), default=default, metavar="N", help=words)


def drawing_option(text: str) -> Callable[[F], F]:
    """`--format` of a command that draws a graph."""
    forms = click.Choice(["text", "mermaid", "dot"])
    return click.option("--format", "form", type=forms, default="text", show_default=True, help=text)


ids_argument = click.argument("ids", nargs=-1, required=True, metavar="ID…")
json_option = click.option("--json", "as_json", is_flag=True, help="Print a JSON array, one object per row.")
object_option = click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
load_option = click.option("--load", metavar="MODULE:APP", help="Load this code, or a file of jobs such as jobs.toml.")
app_option = click.option("--app", metavar="NAME", help="Only those of this app.")
owner_option = click.option("--app", metavar="NAME", help="The app, if several apps use this name.")
note_option = click.option("--note", default="", metavar="TEXT", help="The reason; shown with the pause.")
filter_options = all_of(
    click.option("--app", metavar="NAME", help="Only executions of this app."),
    click.option("--job", metavar="NAME", help="Only executions of this job."),
    click.option("--queue", metavar="NAME", help="Only executions of this queue."),
    click.option("--error", metavar="TEXT", help="Only failed executions whose error contains this text."),
    click.option("--since", type=past, metavar="TIME", help="Only those since then: 2h (ago), 2030-01-31T09:00Z."),
)
"""The fields of a `Filter`."""
page_options = all_of(
    limit_option(50, 10_000),
    click.option("--before", default=LAST_ID, metavar="ID", help="The next page: executions older than this id."),
)


def _moment(value: str, also: str) -> datetime:
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a time: write 2030-01-31T09:00Z{also}.") from None
    if found.tzinfo is None:
        raise click.BadParameter(f"{value!r} has no time zone: add Z for UTC or an offset such as +02:00.")
    if not EARLIEST <= found < LATEST:
        raise click.BadParameter(f"must be between the years 1970 and 8999, not {found.year}.")
    return found
