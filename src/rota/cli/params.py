"""Kinds of values on the command line, and the options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

import click

from rota.clock import SystemClock
from rota.domain import duration
from rota.domain.errors import DefinitionError

F = TypeVar("F", bound=Callable[..., object])
MICROSECONDS = 1_000_000
_NUMBER = re.compile(r"\d+(\.\d+)?")


def length(value: str) -> float:
    """A duration in seconds: `30`, `90s`, `5m`, `1h30m`."""
    try:
        return duration.seconds(float(value) if _NUMBER.fullmatch(value) else value)
    except DefinitionError as error:
        raise click.BadParameter(str(error).removeprefix("duration ")) from None


def moment(value: str) -> datetime:
    """An instant: ISO 8601 with a time zone."""
    return _moment(value, "")


def past(value: str) -> datetime:
    """An instant, or how long ago it was."""
    try:
        before = SystemClock().now() / MICROSECONDS - duration.seconds(value)
    except DefinitionError:
        return _moment(value, ", or how long ago, such as 2h")
    return datetime.fromtimestamp(max(0.0, before), UTC)


def priority(value: str) -> int:
    """`high`, `normal`, `low` or a number."""
    from rota.domain import rank

    try:
        return rank.level(int(value) if re.fullmatch(r"[+-]?\d{1,6}", value) else value)
    except DefinitionError as error:
        raise click.BadParameter(str(error).removeprefix("priority ")) from None


def instant(value: datetime | None) -> int | None:
    """A time from the command line as microseconds."""
    return None if value is None else round(value.timestamp() * MICROSECONDS)


def json_option(function: F) -> F:
    words = "Print a JSON array, one object per row, for programs."
    return click.option("--json", "as_json", is_flag=True, help=words)(function)


def filter_options(function: F) -> F:
    """Which executions: what `executions` and `dead` have in common."""
    options = (
        click.option("--job", metavar="NAME", help="Only executions of this job."),
        click.option("--queue", metavar="NAME", help="Only those of this queue."),
        click.option("--error", metavar="TEXT", help="Only failed ones whose error holds this text."),
        click.option(
            "--since",
            type=past,
            metavar="TIME",
            help="Only those since then: 2h (ago), 2030-01-31T09:00Z.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def page_options(function: F) -> F:
    """Which page of a list, newest first."""
    options = (
        click.option(
            "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many rows at most."
        ),
        click.option("--before", metavar="ID", help="The page that comes after this id (older ones)."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def _moment(value: str, also: str) -> datetime:
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is no time: write 2030-01-31T09:00Z{also}.") from None
    if found.tzinfo is None:
        raise click.BadParameter(f"{value!r} has no time zone: add Z for UTC or an offset such as +02:00.")
    return found
