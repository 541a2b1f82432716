"""`rota show`: everything about one execution, and why it is not running."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.domain import standing

if TYPE_CHECKING:
    from rota.domain.note import State
    from rota.domain.standing import Standing
    from rota.store.port import View
    from rota.store.reader import AttemptRow, ExecutionRow

MANY = 1e15
SHORT_S = 0.1


class Facts(NamedTuple):
    """Everything about one execution, as it was at one instant."""

    row: ExecutionRow
    attempts: list[AttemptRow]
    standing: tuple[Standing, int]
    origin: tuple[str | None, int | None, int | None]
    told: State | None
    usages: dict[int, str]


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
    facts = database.read(_facts, database.namespace, full)
    state, now = facts.standing
    why = standing.why(state, now)
    if as_json:
        output.print_json(_data(facts, why))
        return
    _heading(facts.row, why, facts.origin, now)
    if facts.told is not None:
        _progress(facts.told, now)
    for attempt in facts.attempts:
        _attempt(attempt, facts.usages.get(attempt.fence), now)


def resolved(view: View, namespace: str, prefixes: list[str] | tuple[str, ...]) -> list[str]:
    """The ids that start with these, each once, in the order given."""
    from rota.domain.errors import UnknownExecution
    from rota.store import reader

    if not all(prefixes):
        raise UnknownExecution("an id cannot be empty; `rota executions` lists them")
    return list(dict.fromkeys(reader.resolve(view, namespace, prefix) for prefix in prefixes))


def _facts(view: View, namespace: str, id: str) -> Facts:
    from rota.store import notes, reader, timetable

    return Facts(
        reader.execution(view, namespace, id),
        reader.attempts(view, namespace, id),
        reader.standing(view, namespace, id),
        timetable.origin(view, id),
        notes.state(view, namespace, id),
        notes.usages(view, namespace, id),
    )


def _data(facts: Facts, why: str) -> dict[str, Any]:
    schedule, tick, catch_up = facts.origin
    listed = [
        {**output.data(attempt), "usage": output.decoded(facts.usages.get(attempt.fence))} for attempt in facts.attempts
    ]
    return {
        **output.data(facts.row),
        "schedule": schedule,
        "tick": text.iso(tick),
        "catch_up": bool(catch_up),
        "why": why or None,
        "progress": None if facts.told is None else _progress_data(facts.told),
        "attempts_list": listed,
    }


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
    _field("tags", _tags(output.decoded(row.tags)))


def _progress(told: State, now: int) -> None:
    words = [] if told.done is None and told.total is None else [_so_far(told.done, told.total)]
    words += [told.note] if told.note else []
    if words:
        _field("progress", f"{', '.join(words)} (attempt {told.fence}, {text.ago(told.at, now)})")
    if told.checkpoint is not None:
        _field("checkpoint", text.size(len(told.checkpoint.encode())))


def _so_far(done: float | None, total: float | None) -> str:
    if total is None:
        return _number(done or 0.0)
    share = (done or 0.0) / total if total else math.inf
    percent = f" ({share:.0%})" if 0 <= share <= 1 else ""
    return f"{_number(done or 0.0)} of {_number(total)}{percent}"


def _number(value: float) -> str:
    if value.is_integer() and abs(value) < MANY:
        return f"{value:,.0f}"
    return f"{value:,.2f}" if 1 <= abs(value) < MANY else f"{value:.3g}"


def _progress_data(told: State) -> dict[str, Any]:
    return {
        "attempt": told.fence,
        "at": text.iso(told.at),
        "done": _finite(told.done),
        "total": _finite(told.total),
        "note": told.note,
        "checkpoint": output.decoded(told.checkpoint),
    }


def _finite(value: float | None) -> float | None:
    """JSON has no infinity."""
    return value if value is not None and math.isfinite(value) else None


def _usage(stored: str) -> str:
    """What an attempt cost, in words; whoever writes to the database may have stored anything."""
    import msgspec

    from rota.domain import usage

    try:
        found = usage.decode(stored)
    except msgspec.DecodeError:
        return stored
    words = [f"{found.cpu_s:.{1 if found.cpu_s >= SHORT_S else 3}f} s CPU"] if found.cpu_s > 0 else []
    words += [text.size(found.peak_bytes)] if found.peak_bytes > 0 else []
    words += [f"exit code {found.exit_code}"] if found.exit_code else []
    words += [found.signal] if found.signal else []
    return ", ".join(words)


def _attempt(attempt: AttemptRow, usage: str | None, now: int) -> None:
    took = text.length(attempt.started_at, attempt.finished_at)
    where = f" on {attempt.worker}" if attempt.worker else ""
    when = text.when(attempt.finished_at, now)
    never = attempt.started_at is None
    title = "ended without a start" if never else f"attempt {attempt.fence}: {attempt.status}, took {took}{where}"
    print(f"\n{text.harmless(title)} ({text.harmless(attempt.reason)}), {when}")
    _field("  usage", "" if usage is None else _usage(usage))
    if attempt.result is not None and attempt.status == "success":
        _field("  result", attempt.result)
    _error(output.decoded(attempt.error))


def _tags(tags: Any) -> str:
    """Whoever writes to the database may have stored anything as tags."""
    if isinstance(tags, list):
        return ", ".join(map(output.as_text, tags))
    return output.as_text(tags) if tags else ""


def _error(error: Any) -> None:
    if not error:
        return
    _field("  error", output.error_words(error))
    traceback = error.get("traceback") if isinstance(error, dict) else None
    for line in text.harmless_lines(str(traceback or "").rstrip()):
        if line:
            print(f"    {line}")


def _moment(name: str, instant: int | None, now: int) -> None:
    _field(name, "" if instant is None else text.when(instant, now))


def _field(name: str, value: str) -> None:
    if value:
        print(f"{name + ':':12}{text.harmless(value)}")
