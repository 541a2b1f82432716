"""Finds what a caller names: an execution by a part of its id, a job or a schedule by its name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import msgspec

from rota import ids
from rota.domain.errors import UnknownExecution, UnknownJob, UnknownSchedule, UsageError
from rota.store import definition_reader, reader, run_reader, schedule_reader, workflow_reader
from rota.store.port import View
from rota.store.reader import Filter
from rota.store.schedule_reader import ScheduleRow

MOST_NAMED = 5
FOREVER = 2**62
LEAST_END = 6
"""The fewest characters of the end of an id. Only the newest ids are searched: a shorter end would too often match an
id other than the intended, older one."""


def execution_id(view: View, namespace: str, part: str) -> str:
    """The only id that starts with `part`, or ends with it; `…1a2b3c4d`, as a narrow table shows it, works too."""
    if not part:
        raise UnknownExecution("an id cannot be empty; `rota executions` lists them")
    end = part.lower().lstrip("…")
    bounds = ids.range_of(end) if end == part.lower() else None
    found = reader.ids_between(view, namespace, *bounds, MOST_NAMED + 1) if bounds else []
    if LEAST_END <= len(end) < len(ids.LAST_ID) and ids.is_id(ids.FIRST_ID[: -len(end)] + end):
        found += reader.ids_ending(view, namespace, end)
    found = sorted(set(found), reverse=True)
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{part} may be any of {_listed(found)}: give more of the id")
    if reader.apps_of_job(view, namespace, part):
        raise UnknownExecution(
            f"{part} is a job, not the id of an execution: `rota enqueue {part}` runs it now, "
            f"`rota executions --job {part}` lists its executions"
        )
    raise UnknownExecution(
        f"there is no execution {part}: give the start of its id, or of a recent one the last {LEAST_END} characters "
        "or more; `rota executions` lists them"
    )


def run_id(view: View, namespace: str, part: str) -> str:
    """Like `execution_id`. If several executions match and one of them is a run, returns the run: the ids of its steps
    begin like its own."""
    try:
        return execution_id(view, namespace, part)
    except UnknownExecution:
        if any(row.name == part for row in workflow_reader.workflows(view, namespace)):
            raise UnknownExecution(
                f"{part} is a workflow, not the id of a run: `rota runs --workflow {part}` lists its runs"
            ) from None
        raise
    except UsageError:
        bounds = ids.range_of(part.lower()) if part else None
        found = run_reader.runs_between(view, namespace, *bounds, MOST_NAMED + 1) if bounds else []
        if len(found) == 1:
            return found[0]
        if found:
            raise UsageError(f"{part} may be any of the runs {_listed(found)}: give more of the id") from None
        raise


def execution_ids(view: View, namespace: str, parts: Sequence[str]) -> list[str]:
    """The ids that these mean, each once, in the order given."""
    return list(dict.fromkeys([execution_id(view, namespace, part) for part in parts]))


def job(view: View, namespace: str, name: str, app: str | None, *, what: str = "job") -> tuple[str, str]:
    """The app and the name of the only job with this name. `app.job`, as lists show it, works too.

    `what` is the word in messages: `job`, or `workflow` if a workflow is wanted.
    """
    found = _jobs_called(view, namespace, name, app, what)
    if len(found) > 1:
        raise UsageError(
            f"the apps {', '.join(app for app, _ in found)} have a {what} {name!r}: say which with --app {found[0][0]}"
        )
    return found[0]


def chosen(view: View, namespace: str, wanted: Filter) -> Filter:
    """The filter with the job's own name, if it names one; a job that no app has is an error, not an empty list."""
    if wanted.job is None:
        return wanted
    found = _jobs_called(view, namespace, wanted.job, wanted.app)
    return msgspec.structs.replace(wanted, job=found[0][1], app=found[0][0] if len(found) == 1 else wanted.app)


def schedule(view: View, namespace: str, name: str, app: str | None) -> ScheduleRow:
    """The one schedule of that name, or of the job of that name. `app.name`, as the list shows it, works too."""
    rows = schedules_called(view, namespace, name, app)
    rows = [row for row in rows if row.name == name] or rows
    if not rows:
        raise UnknownSchedule(f"there is no schedule {name!r}; `rota schedules` lists them")
    return _the_only(rows, name, "the schedule's own name")


def schedule_of_job(view: View, namespace: str, job: str, name: str | None, app: str | None) -> ScheduleRow:
    """The schedule of a job, by its own name if the job has several; instead of the job, a schedule may be named."""
    rows = schedules_called(view, namespace, job, app)
    rows = [row for row in rows if row.job == job] or rows
    if not rows:
        raise UnknownSchedule(f"there is no schedule of a job {job!r}; `rota schedules` lists them")
    if name is not None:
        known = ", ".join(sorted({row.name for row in rows})[:MOST_NAMED])
        rows = [row for row in rows if row.name == name]
        if not rows:
            raise UnknownSchedule(f"--schedule: job {job!r} has no schedule {name!r}, but {known}")
    return _the_only(rows, job, "--schedule")


def schedules_called(view: View, namespace: str, name: str, app: str | None) -> list[ScheduleRow]:
    """The schedules with that name, or of the job with that name; if there are none, those of `app.name`."""
    rows = schedule_reader.schedules(view, namespace, app, name)
    if rows or app is not None:
        return rows
    # An app's name may have dots, too.
    for at in [place for place, char in enumerate(name) if char == "."]:
        rows = schedule_reader.schedules(view, namespace, name[:at], name[at + 1 :])
        if rows:
            return [row for row in rows if row.name == name[at + 1 :]] or rows
    return []


def ledger(view: View, namespace: str, name: str, app: str | None) -> tuple[ScheduleRow | None, str, str, list[str]]:
    """The schedule, its app and its name, and remarks on what was found; None for a removed one, whose ledger stays."""
    try:
        row = schedule(view, namespace, name, app)
    except UnknownSchedule:
        apps = [app] if app else sorted({job.app for job in definition_reader.all_jobs(view, namespace)})
        found = [one for one in apps if schedule_reader.ticks(view, namespace, one, name, 0, FOREVER, 1)]
        if not found:
            raise
        if len(found) > 1:
            raise UsageError(f"several apps had a schedule {name!r}: say which with --app") from None
        return None, found[0], name, [f"schedule {name} was removed"]
    is_job = name not in (row.name, f"{row.app}.{row.name}")
    return row, row.app, row.name, [f"{name} is a job; this is its schedule {row.name}"] if is_job else []


def _jobs_called(view: View, namespace: str, name: str, app: str | None, what: str = "job") -> list[tuple[str, str]]:
    """The jobs of that name, by app; else the one that `app.job` names."""
    known = [(row.app, row.name) for row in definition_reader.all_jobs(view, namespace) if app in (None, row.app)]
    found = [one for one in known if one[1] == name] or [one for one in known if ".".join(one) == name]
    if found:
        return found
    near = get_close_matches(name, [job for _, job in known] + [".".join(one) for one in known], 1)
    hint = f", did you mean {near[0]!r}?" if near else ";"
    whose = f"there is no {what}" if app is None else f"app {app!r} has no {what}"
    raise UnknownJob(f"{whose} {name!r}{hint} `rota {what}s` lists those of apps that have used this database")


def _the_only(rows: Sequence[ScheduleRow], name: str, otherwise: str) -> ScheduleRow:
    if len(rows) == 1:
        return rows[0]
    how = "--app" if len({row.app for row in rows}) > 1 else otherwise
    raise UsageError(f"{name!r} may be any of {_listed(f'{row.app}.{row.name}' for row in rows)}: say which with {how}")


def _listed(names: Iterable[str]) -> str:
    known = list(names)
    return ", ".join(known[:MOST_NAMED]) + (", …" if len(known) > MOST_NAMED else "")
