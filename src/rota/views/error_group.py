"""Dead letters grouped by error: how many, of which jobs, since when and since which version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from rota.domain import error_fingerprint
from rota.domain.instant import MICROSECONDS, moment
from rota.store import error_reader, reader
from rota.store.error_reader import ErrorGroup as Row
from rota.store.error_reader import Letter, Occurrence
from rota.store.port import View
from rota.views.shape import Shape

MINUTE, DAY = 60 * MICROSECONDS, 86_400 * MICROSECONDS
INTERVALS = 12
NEW = DAY
MOST_LETTERS = 10_000
NEWEST = 10


class JobCount(Shape, frozen=True):
    """How many of the dead letters are of a job."""

    app: str
    job: str
    count: int


class Trend(Shape, frozen=True):
    """How many letters came in each interval of `step` seconds, from the first one until now."""

    from_: datetime = msgspec.field(name="from")
    """When the first interval begins."""
    step: float
    """How many seconds an interval has."""
    points: list[int]
    """How many failed in each interval."""


class ErrorGroup(Shape, frozen=True):
    """Dead letters with the same error. `message` has a question mark in place of each value that differs.

    `fingerprint` is null for letters without an error, such as those of crashed workers. `place` is the file and the
    innermost function of the user's own code that was being called. `isNew` says that the first one came within a day.
    """

    fingerprint: str | None
    """What the errors of the group have in common, as a hash; null for dead letters without an error."""
    type: str | None
    """The class of the exception."""
    message: str | None
    """The message, with a question mark in place of each value that differs."""
    place: str | None
    """The file and the function that raised it; null if they are not known."""
    reason: str
    """Why they failed, as a code."""
    count: int
    """How many dead letters the group has."""
    is_capped: bool
    jobs: list[JobCount]
    """The number of dead letters by job."""
    first_at: datetime
    """When the first dead letter of the group failed."""
    last_at: datetime
    """When the newest one failed."""
    is_new: bool
    """Whether the first one failed within the last 24 hours."""
    sample_id: str
    """The newest execution of the group."""
    first_id: str
    """The first execution of the group."""
    first_version: int | None
    """The lowest version of the job that has the error."""
    last_version: int | None
    """The highest version of the job that has the error."""
    trend: Trend | None
    """How many failed over time, from the first one until now."""


class ErrorGroups(Shape, frozen=True):
    """The largest groups first. `count` letters were grouped; `isCapped` says that there are more, older ones."""

    items: list[ErrorGroup]
    """The groups, the largest first."""
    group_count: int
    """How many groups there are."""
    count: int
    """How many dead letters were grouped."""
    is_capped: bool
    """Whether there are more, older dead letters."""


class VersionCount(Shape, frozen=True):
    """A version of the job, and how many of the newest letters are of it."""

    version: int
    registered_at: datetime | None
    """When the version was registered."""
    count: int
    """How many of the newest dead letters are of this version."""


class RollBack(Shape, frozen=True):
    """The version in force has the error, and `to` is the last one before the error came."""

    version: int
    """The version in force."""
    to: int
    """The last version before the error came."""
    is_code: bool
    """Whether the job is of code: then a deploy is put in force, else the version."""
    deploy: int | None
    """The deploy with a version from before the error; null if none is kept, and for a job that is not of code."""


class ErrorGroupDetail(ErrorGroup, frozen=True):
    """A group with what is known of its cause, for the job with most letters.

    `without` is the last version before the first one that has the error. `lastSuccess` is the last one of the job
    before the first letter. `lastMinute` counts the letters of the last minute; `newest` are some ids.
    """

    versions: list[VersionCount]
    """The versions of the job that have the error, with how often."""
    without: VersionCount | None
    """The last version before these, which did not have the error; null if there is none."""
    roll_back: RollBack | None
    """How to leave the version with the error; null if the version in force does not have it, or is the first one."""
    last_success_id: str | None
    """The last success of the job before the first dead letter."""
    last_success_at: datetime | None
    """When that execution succeeded."""
    last_minute: int
    """How many failed with this error in the last minute."""
    newest: list[str]
    """The ids of the newest ones."""


class Similar(Shape, frozen=True):
    """Other dead letters with the error of an execution."""

    fingerprint: str | None
    """What its error has in common with others; null without an error."""
    more: int
    """How many other dead letters have the same error."""
    group: ErrorGroupDetail | None
    """The group of its error; null if it is in none."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which dead letters to group; `text` is a part of the class or the message, `since` when the last one came."""

    job: tuple[str, ...] = ()
    app: tuple[str, ...] = ()
    reason: tuple[str, ...] = ()
    text: str | None = None
    since: int = 0


def groups(view: View, namespace: str, wanted: Wanted, limit: int) -> ErrorGroups:
    rows = [row for row in error_reader.groups(view, namespace, view.now - MINUTE) if _fits(row, wanted)]
    merged: dict[str, list[Row]] = {}
    for row in rows:
        merged.setdefault(row.fingerprint or f"reason {row.reason}", []).append(row)
    ranked = sorted(merged.values(), key=lambda own: (-sum(row.count for row in own), own[0].fingerprint or ""))
    known = _occurrences(view, namespace, ranked)
    if wanted.text is not None:
        part = wanted.text.lower()
        ranked = [own for own in ranked if part in (_text(known, own) or "").lower()]
    trends = _trends(view, namespace, ranked[:limit])
    counted = sum(row.count for own in ranked for row in own)
    is_capped = sum(row.count for own in merged.values() for row in own) >= error_reader.MOST_LETTERS
    items = [ErrorGroup(**_members(own, known, trends, view.now)) for own in ranked[:limit]]
    return ErrorGroups(items, len(ranked), counted, is_capped)


def group(view: View, namespace: str, fingerprint: str) -> ErrorGroupDetail | None:
    letters = error_reader.letters(view, namespace, fingerprint, MOST_LETTERS)
    first = error_reader.first_letter(view, namespace, fingerprint)
    if not letters or first is None:
        return None
    own = _rows(letters, fingerprint, first)
    known, trends = _occurrences(view, namespace, [own]), _trends(view, namespace, [own])
    members = _members(own, known, trends, view.now)
    members["is_capped"] = len(letters) >= MOST_LETTERS
    return ErrorGroupDetail(**members, **_cause(view, namespace, own[0], letters, members))


def similar(view: View, namespace: str, id: str) -> Similar:
    row = reader.execution(view, namespace, id)
    found = error_reader.fingerprint_of(view, namespace, row.id, row.error)
    about = None if found is None else group(view, namespace, found)
    is_one = row.id in reader.are_dead(view, namespace, [row.id])
    return Similar(found, 0 if about is None else about.count - is_one, about)


def _fits(row: Row, wanted: Wanted) -> bool:
    return (
        (not wanted.job or row.job in wanted.job)
        and (not wanted.app or row.app in wanted.app)
        and (not wanted.reason or row.reason in wanted.reason)
        and row.last_at >= wanted.since
    )


def _rows(letters: Sequence[Letter], fingerprint: str, first: Letter) -> list[Row]:
    """One row for each job, as the list has them; the job with most letters first."""
    by_job: dict[tuple[str, str], list[Letter]] = {}
    for letter in [*letters, *([] if first in letters else [first])]:
        by_job.setdefault((letter.app, letter.job), []).append(letter)
    rows = [
        Row(
            app=app,
            job=job,
            fingerprint=fingerprint,
            count=len(own),
            recent=0,
            first_at=min(letter.failed_at for letter in own),
            last_at=max(letter.failed_at for letter in own),
            first_id=own[-1].id,
            last_id=own[0].id,
            reason=own[0].reason,
        )
        for (app, job), own in by_job.items()
    ]
    return sorted(rows, key=lambda row: (-row.count, row.app, row.job))


def _occurrences(view: View, namespace: str, several: Sequence[Sequence[Row]]) -> dict[str, Occurrence]:
    ids = [id for own in several for row in own for id in (row.first_id, row.last_id)]
    return error_reader.occurrences(view, namespace, ids)


def _text(known: dict[str, Occurrence], own: Sequence[Row]) -> str | None:
    last = known.get(max(row.last_id for row in own))
    return None if last is None else last.error


def _trends(view: View, namespace: str, several: Sequence[Sequence[Row]]) -> dict[str, Trend]:
    spans = []
    for own in several:
        if own[0].fingerprint is not None:
            start = min(row.first_at for row in own)
            spans.append((own[0].fingerprint, start, max(MINUTE // INTERVALS, -(-(view.now + 1 - start) // INTERVALS))))
    counts = error_reader.trends(view, namespace, spans) if spans else {}
    return {
        name: Trend(moment(start), step / MICROSECONDS, [counts.get(name, {}).get(at, 0) for at in range(INTERVALS)])
        for name, start, step in spans
    }


def _members(own: Sequence[Row], known: dict[str, Occurrence], trends: dict[str, Trend], now: int) -> dict[str, Any]:
    first_id, last_id = min(row.first_id for row in own), max(row.last_id for row in own)
    first, last = known.get(first_id), known.get(last_id)
    error = None if last is None else error_reader.decoded(last.error)
    jobs: Counter[tuple[str, str]] = Counter()
    for row in own:
        jobs[row.app, row.job] += row.count
    first_at = min(row.first_at for row in own)
    return {
        "fingerprint": own[0].fingerprint,
        "type": None if error is None else error.type,
        "message": None if error is None else error_fingerprint.normalised(error.message),
        "place": None if error is None else error_fingerprint.raised_at(error.traceback) or None,
        "reason": own[0].reason,
        "count": sum(row.count for row in own),
        "is_capped": False,
        "jobs": [
            JobCount(app, job, count)
            for (app, job), count in sorted(jobs.items(), key=lambda item: (-item[1], item[0]))
        ],
        "first_at": moment(first_at),
        "last_at": moment(max(row.last_at for row in own)),
        "is_new": first_at > now - NEW,
        "sample_id": last_id,
        "first_id": first_id,
        "first_version": None if first is None else first.version,
        "last_version": None if last is None else last.version,
        "trend": trends.get(own[0].fingerprint or ""),
    }


def _cause(view: View, namespace: str, main: Row, letters: Sequence[Letter], members: dict[str, Any]) -> dict[str, Any]:
    first_version, last_version = members["first_version"], members["last_version"]
    of_job = [letter.id for letter in letters if (letter.app, letter.job) == (main.app, main.job)]
    registered = error_reader.registered(view, namespace, main.app, main.job)
    at = {version: moment(made_at) for version, made_at in registered}
    counts = error_reader.versions(view, of_job[: error_reader.LOOKS])
    before = next(
        (version for version, _ in registered if isinstance(first_version, int) and version < first_version), None
    )
    way = error_reader.way_back(view, namespace, main.app, main.job, first_version, last_version)
    success = error_reader.last_success(view, namespace, main.app, main.job, main.first_id)
    return {
        "versions": [VersionCount(version, at.get(version), count) for version, count in counts],
        "without": None if before is None else VersionCount(before, at.get(before), 0),
        "roll_back": None if way is None else RollBack(way.version, way.before, way.is_code, way.deploy),
        "last_success_id": None if success is None else success[0],
        "last_success_at": None if success is None else moment(success[1]),
        "last_minute": sum(letter.failed_at > view.now - MINUTE for letter in letters),
        "newest": [letter.id for letter in letters[:NEWEST]],
    }
