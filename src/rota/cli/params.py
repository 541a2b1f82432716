"""Kinds of values on the command line, and the options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from rota.clock import SystemClock
from rota.domain import duration
from rota.domain.errors import DefinitionError

F = TypeVar("F", bound=Callable[..., object])
MICROSECONDS = 1_000_000
_NUMBER = re.compile(r"\d+(\.\d+)?")


class Length(click.ParamType[float]):
    """A duration in seconds: `30`, `90s`, `5m`, `1h30m`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if not isinstance(value, str):
            return float(value)
        try:
            return duration.seconds(float(value) if _NUMBER.fullmatch(value) else value)
        except DefinitionError as error:
            self.fail(str(error).removeprefix("duration "), param, ctx)


class Moment(click.ParamType[datetime]):
    """An instant: ISO 8601 with a time zone, or, where `past` is set, how long ago."""

    name = "time"

    def __init__(self, *, past: bool = False) -> None:
        self._past = past

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        if self._past:
            try:
                before = SystemClock().now() / MICROSECONDS - duration.seconds(value)
                return datetime.fromtimestamp(max(0.0, before), UTC)
            except DefinitionError:
                pass
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            also = ", or how long ago, such as 2h" if self._past else ""
            self.fail(f"{value!r} is no time: write 2030-01-31T09:00Z{also}.", param, ctx)
        if moment.tzinfo is None:
            self.fail(f"{value!r} has no time zone: add Z for UTC or an offset such as +02:00.", param, ctx)
        return moment


class Priority(click.ParamType[int]):
    """`high`, `normal`, `low` or a number."""

    name = "priority"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from rota.domain import rank

        try:
            return rank.level(int(value) if re.fullmatch(r"[+-]?\d{1,6}", str(value)) else value)
        except DefinitionError as error:
            self.fail(str(error).removeprefix("priority "), param, ctx)


def instant(moment: datetime | None) -> int | None:
    """A time from the command line as microseconds."""
    return None if moment is None else round(moment.timestamp() * MICROSECONDS)


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
            type=Moment(past=True),
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
