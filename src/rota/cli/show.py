"""`rota show`: everything about one execution, and why it is not running."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.domain import standing

if TYPE_CHECKING:
    from rota.domain.standing import Standing
    from rota.store.port import View
    from rota.store.reader import AttemptRow, ExecutionRow


@click.command()
@click.argument("id")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object, for programs.")
@with_database
def show(database: Database, id: str, as_json: bool) -> None:
    """Show one execution: attempts, error, result, and why it is not running.

    The start of an ID is enough, if only one execution starts with it.

    \b
    rota show 0197a3c2
    """
    full = database.read(resolved, database.namespace, [id])[0]
    row, attempts, (state, now), origin = database.read(_facts, database.namespace, full)
    why = standing.why(state, now)
    if as_json:
        listed = [output.data(attempt) for attempt in attempts]
        schedule, tick, catch_up = origin
        of_schedule = {"schedule": schedule, "tick": text.iso(tick), "catch_up": bool(catch_up)}
        output.print_json({**output.data(row), **of_schedule, "why": why or None, "attempts_list": listed})
        return
    _heading(row, why, origin, now)
    for attempt in attempts:
        _attempt(attempt, now)


def resolved(view: View, namespace: str, prefixes: list[str] | tuple[str, ...]) -> list[str]:
    """The ids that start with these, each once, in the order given."""
    from rota.domain.errors import UnknownExecution
    from rota.store import reader

    if not all(prefixes):
        raise UnknownExecution("an id cannot be empty; `rota executions` lists them")
    return list(dict.fromkeys(reader.resolve(view, namespace, prefix) for prefix in prefixes))


def _facts(
    view: View, namespace: str, id: str
) -> tuple[ExecutionRow, list[AttemptRow], tuple[Standing, int], tuple[str | None, int | None, int | None]]:
    from rota.store import reader, timetable

    row = reader.execution(view, namespace, id)
    origin = timetable.origin(view, id)
    return row, reader.attempts(view, namespace, id), reader.standing(view, namespace, id), origin


def _heading(row: ExecutionRow, why: str, origin: tuple[str | None, int | None, int | None], now: int) -> None:
    cancelling = ", asked to stop" if row.cancel_at is not None else ""
    _field("execution", row.id)
    _field("status", row.status.value + (f" ({row.reason})" if row.reason else "") + cancelling)
    _field("why", why)
    _field("job", f"{row.app}.{row.job} (version {row.job_version})")
    _field("queue", f"{row.queue}, priority {row.priority}")
    _field("arguments", row.arguments)
    _field("attempts", f"{row.attempts} counted, {row.fence} started, {row.crashes} crashed")
    _field(
        "created", f"{text.when(row.created_at, now)} by {row.actor}" if row.actor else text.when(row.created_at, now)
    )
    schedule, tick, catch_up = origin
    if schedule is not None and tick is not None:
        _field("schedule", f"{schedule}, tick {text.when(tick, now)}{', made up for later' if catch_up else ''}")
    _moment("due", row.due_at or row.run_at, now)
    _moment("start by", row.deadline, now)
    _moment("started", row.started_at, now)
    _moment("ended", row.finished_at, now)
    for name, value in (("key", row.key), ("worker", row.worker), ("replay of", row.replay_of), ("parent", row.parent)):
        _field(name, value or "")
    _field("tags", ", ".join(output.decoded(row.tags) or ()))


def _attempt(attempt: AttemptRow, now: int) -> None:
    took = text.length(attempt.started_at, attempt.finished_at)
    where = f" on {attempt.worker}" if attempt.worker else ""
    when = text.when(attempt.finished_at, now)
    never = attempt.started_at is None
    title = "ended without a start" if never else f"attempt {attempt.fence}: {attempt.status}, took {took}{where}"
    print(f"\n{text.harmless(title)} ({text.harmless(attempt.reason)}), {when}")
    if attempt.result is not None and attempt.status == "success":
        _field("  result", attempt.result)
    _error(output.decoded(attempt.error))


def _error(error: dict[str, Any] | None) -> None:
    if not error:
        return
    _field("  error", f"{error['type']}: {error['message']}")
    for line in text.harmless_lines(str(error.get("traceback") or "").rstrip()):
        if line:
            print(f"    {line}")


def _moment(name: str, instant: int | None, now: int) -> None:
    _field(name, "" if instant is None else text.when(instant, now))


def _field(name: str, value: str) -> None:
    if value:
        print(f"{name + ':':12}{text.harmless(value)}")
