"""`rota show`: everything about one execution, and why it is not running."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import click

from rota.cli import layout, output, text
from rota.cli.database import Database, with_database
from rota.cli.options import object_option
from rota.domain import size
from rota.views import execution, lookup
from rota.views.attempt import Attempt, Usage
from rota.views.execution import ExecutionDetail
from rota.views.progress import Progress
from rota.views.step import Neighbour

MANY = 1e15
SHORT_S = 0.1
MOST_ARGUMENTS = 2_000
"""How many characters of the arguments are printed."""


@click.command()
@click.argument("id")
@object_option
@with_database
def show(database: Database, id: str, as_json: bool) -> None:
    """Show one execution: attempts, error, result, and why it is not running.

    An ID may be shortened to its start, or to its last characters.

    \b
    rota show 1a2b3c4d
    """
    full = database.read(lookup.execution_id, database.namespace, id)
    found = database.read(execution.execution, database.namespace, full)
    if as_json:
        print(output.to_json(found, indent=2))
        return
    _heading(found)
    if found.progress_detail is not None:
        _progress(found.progress_detail)
    told: dict[str, int] = {}
    for attempt in found.attempts:
        _attempt(attempt, told)


def _heading(one: ExecutionDetail) -> None:
    cancelling = ", asked to stop" if one.cancel_requested_at is not None else ""
    _field("execution", one.execution_id)
    _field("status", _status(one.status.value, one.reason) + cancelling)
    _field("error", text.first_line(one.error_message or ""))
    _field("why", one.why.text if one.why else None)
    _field("job", f"{one.app}.{one.job} (version {one.version})")
    _run(one)
    _wait(one)
    _field("queue", f"{one.queue}, priority {one.priority}")
    _field("arguments", text.shortened(output.as_text(one.arguments), MOST_ARGUMENTS))
    crashes = f", {one.crashes} crashed" if one.crashes else ""
    _field("attempts", f"{one.fence} started, {one.attempt_count} counted{crashes}" if one.fence else None)
    _field("created", text.when(one.created_at) + (f" by {one.actor}" if one.actor else ""))
    if one.schedule is not None and one.tick is not None:
        late = ", a missed tick that was caught up" if one.catch_up else ""
        _field("schedule", f"{one.schedule}, tick {text.when(one.tick)}{late}")
    if one.event is not None:
        _field("event", f"{one.event.name} {one.event.event_id}")
    if isinstance(one.upstream, dict):
        _field("after", ", ".join(f"{job} {id}" for job, id in one.upstream.items()))
    due_at = one.run_at if one.run_at != one.created_at else None
    first = one.attempts[0].started_at if one.attempts else one.started_at
    times = {"due": due_at, "start by": one.start_by, "started": first, "ended": one.completed_at}
    for name, at in times.items():
        _field(name, None if at is None else text.when(at))
    _field("key", one.key)
    _field("worker", one.worker)
    _field("replay of", one.replay_of)
    _field("replayed", one.replayed_by and f"as {one.replayed_by}")
    _field("parent", one.parent_id if one.parent_id != one.run_id else None)
    _field("tags", _tags(one.tags))


def _wait(one: ExecutionDetail) -> None:
    """Prints what a step waits for, or how its wait ended."""
    if one.wait is None:
        return
    wait = one.wait
    _field("for", wait.text)
    _field("outcome", wait.outcome)
    _field("since", text.when(wait.since))
    then = f", then {wait.on_timeout}" if wait.on_timeout else ""
    _field("until", None if wait.until is None else text.when(wait.until) + then)
    for command in wait.commands:
        _field("to end it", command)


def _run(one: ExecutionDetail) -> None:
    """Prints the run of a step, the steps that it waited for, and the steps that wait for it."""
    if one.step_of is None:
        return
    place = one.step_of
    item = "" if place.index is None else f"[{place.index}]"
    if place.undoes is not None:
        what = f"run {place.undoes}" if place.step is None else f"step {place.step}{item} of run {place.undoes}"
        _field("undoes", f"{what} ({place.workflow})")
        return
    _field("step", f"{place.step}{item} of run {place.run_id} ({place.workflow})")
    _field("waits for", _neighbours(place.upstream))
    _field("needed by", _neighbours(place.downstream))


def _neighbours(steps: Sequence[Neighbour]) -> str:
    return ", ".join(f"{one.step} ({one.status})" for one in steps)


def _progress(last: Progress) -> None:
    words = [] if last.done is None and last.total is None else [_so_far(last.done or 0.0, last.total)]
    words += [last.note] if last.note else []
    if words:
        _field("progress", f"{', '.join(words)} (fence {last.fence}, {text.ago(last.at)})")
    if last.checkpoint is not None:
        _field("checkpoint", size.words(len(output.to_json(last.checkpoint).encode())))


def _so_far(done: float, total: float | None) -> str:
    if total is None:
        return _number(done)
    share = done / total if total else math.inf
    percent = f" ({share:.0%})" if 0 <= share <= 1 else ""
    return f"{_number(done)} of {_number(total)}{percent}"


def _number(value: float) -> str:
    if value.is_integer() and abs(value) < MANY:
        return f"{value:,.0f}"
    return f"{value:,.2f}" if 1 <= abs(value) < MANY else f"{value:.3g}"


def _attempt(one: Attempt, told: dict[str, int]) -> None:
    """`told` has the tracebacks so far, each with the fence under which it was printed."""
    print(f"\nattempt {one.attempt} (fence {one.fence}):" if one.started_at else "\nended without a start:")
    _field("  status", _status(one.status, one.reason))
    _field("  worker", one.worker)
    _field("  started", None if one.started_at is None else text.when(one.started_at))
    took = f", took {text.length(one.started_at, one.completed_at)}" if one.started_at else ""
    _field("  ended", text.when(one.completed_at) + took)
    _field("  usage", None if one.usage is None else _usage(one.usage))
    if one.status == "success" and one.result is not None:
        _field("  result", output.to_json(one.result))
    _error(one, told)


def _status(status: str, reason: str | None) -> str:
    """The reason, too, if it says more than the status."""
    return status if not reason or status == "success" or reason == status else f"{status} ({reason})"


def _usage(cost: Usage) -> str:
    cpu_s = cost.cpu.total_seconds()
    words = [f"{cpu_s:.{1 if cpu_s >= SHORT_S else 3}f} s CPU"] if cpu_s > 0 else []
    words += [size.words(cost.peak_bytes)] if cost.peak_bytes > 0 else []
    words += [f"exit code {cost.exit_code}"] if cost.exit_code else []
    words += [cost.signal] if cost.signal else []
    return ", ".join(words)


def _tags(tags: Any) -> str:
    """Tags are normally a list of texts, but a row may hold any JSON."""
    if isinstance(tags, list):
        return ", ".join(map(output.as_text, tags))
    return output.as_text(tags) if tags else ""


def _error(one: Attempt, told: dict[str, int]) -> None:
    """A job that fails often fails at the same place: its traceback is printed once."""
    traceback = one.error.get("traceback") if isinstance(one.error, dict) else None
    printed = str(traceback or "").rstrip()
    same = f" (traceback as for fence {told[printed]})" if printed in told else ""
    _field("  error", one.error_message and one.error_message + same)
    if printed and not same:
        told[printed] = one.fence
        for line in text.harmless_lines(printed):
            if line:
                print(f"    {line}")


def _field(name: str, value: str | None) -> None:
    if value:
        layout.paragraph({f"{name}:": 12}, value)
