"""Kinds of values on the command line, and the options that several commands share."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rota.clock import SystemClock
from rota.domain import duration
from rota.domain.errors import DefinitionError
from rota.domain.instant import MICROSECONDS

if TYPE_CHECKING:
    from rota.store.reader import Filter

F = TypeVar("F", bound=Callable[..., object])
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
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


def between(start: datetime | None, end: datetime | None, now: int) -> tuple[int, int]:
    """The values of --from and --to as instants: without them, the first of all and now."""
    for option, value in (("--from", start), ("--to", end)):
        check_year(option, value)
    low, high = instant(start) or 0, instant(end) or now
    if high < low:
        raise click.UsageError("--to: comes before --from" if end else "--from: is not in the past")
    return low, high


def check_year(option: str, value: datetime | None) -> None:
    if value is not None and not EARLIEST <= value < LATEST:
        raise click.UsageError(f"{option}: must be between the years 1970 and 8999, not {value.year}")


def list_group(function: Callable[..., object]) -> click.Group:
    """A group of commands that lists when it is called without one of them."""

    @functools.wraps(function)
    def alone(*args: Any, **options: Any) -> None:
        if click.get_current_context().invoked_subcommand is None:
            function(*args, **options)

    return click.group(invoke_without_command=True)(alone)


def json_option(function: F) -> F:
    words = "Print a JSON array, one object per row, for programs."
    return click.option("--json", "as_json", is_flag=True, help=words)(function)


def object_option(function: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print a JSON object, for programs.")(function)


def owner_option(function: F) -> F:
    return click.option("--app", metavar="NAME", help="Whose, if several apps have one of this name.")(function)


def note_option(function: F) -> F:
    return click.option("--note", default="", metavar="TEXT", help="Why; shown with the pause.")(function)


def limit_option(default: int, most: int) -> Callable[[F], F]:
    bounds = click.IntRange(1, most)
    return click.option("--limit", type=bounds, default=default, show_default=True, help="How many rows at most.")


def filter_options(function: Callable[..., object]) -> Any:
    """Which executions: gives a command the value `wanted`."""

    @functools.wraps(function)
    def collect(
        *args: Any, job: str | None, queue: str | None, error: str | None, since: datetime | None, **others: Any
    ) -> object:
        from rota.store.reader import Filter

        wanted = Filter(job=job, queue=queue, error=error, since=instant(since))
        return function(*args, wanted=wanted, **others)

    when = "Only those since then: 2h (ago), 2030-01-31T09:00Z."
    options = (
        click.option("--job", metavar="NAME", help="Only executions of this job."),
        click.option("--queue", metavar="NAME", help="Only those of this queue."),
        click.option("--error", metavar="TEXT", help="Only failed ones whose error holds this text."),
        click.option("--since", type=past, metavar="TIME", help=when),
    )
    return with_all(options, collect)


def page_options(function: Callable[..., object]) -> Any:
    """Which page of a list, newest first; stands below `filter_options`."""

    @functools.wraps(function)
    def collect(*args: Any, wanted: Filter, limit: int, before: str | None, **others: Any) -> object:
        from msgspec.structs import replace

        wanted = replace(wanted, limit=limit, before=before or wanted.before)
        return function(*args, wanted=wanted, **others)

    before = click.option("--before", metavar="ID", help="The page that comes after this id (older ones).")
    return with_all((limit_option(50, 10_000), before), collect)


def with_all(options: Sequence[Callable[[Any], Any]], function: Callable[..., object]) -> Any:
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
