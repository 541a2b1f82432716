"""Reads dead letters by the fingerprints of their errors."""

from __future__ import annotations

from collections.abc import Container, Sequence

import msgspec

from rota.domain import error_fingerprint
from rota.domain.findings.facts import ErrorCount, WayBack
from rota.domain.outcome import Error
from rota.store.deploys import all_deploys
from rota.store.port import View

MOST_LETTERS = 50_000
"""The most dead letters that are grouped, newest first."""
MOST_IN_TREND = 5_000
"""The most dead letters of an error that its trend counts, newest first."""
MOST_VERSIONS, LOOKS = 100, 500
MOST_TEXT = 200
_error = msgspec.json.Decoder(Error).decode


class ErrorGroup(msgspec.Struct, frozen=True, array_like=True):
    """Dead letters of one job with one fingerprint, which is None if they have no error."""

    app: str
    job: str
    fingerprint: str | None
    count: int
    recent: int
    first_at: int
    last_at: int
    first_id: str
    last_id: str
    reason: str


class Letter(msgspec.Struct, frozen=True, array_like=True):
    """A dead letter."""

    id: str
    app: str
    job: str
    failed_at: int
    reason: str


class Occurrence(msgspec.Struct, frozen=True, array_like=True):
    """The error of one execution, as JSON, the version of its job, and when that was registered."""

    id: str
    error: str | None
    version: int
    version_at: int | None


def groups(view: View, namespace: str, recently: int) -> list[ErrorGroup]:
    """`recent` counts the letters that came since `recently`."""
    about = {"namespace": namespace, "recently": recently, "most": MOST_LETTERS}
    return view.records("error_groups", ErrorGroup, **about)


def occurrences(view: View, namespace: str, ids: Sequence[str]) -> dict[str, Occurrence]:
    if not ids:
        return {}
    bounds = {"ids": sorted(set(ids)), "lowest": min(ids), "highest": max(ids)}
    return {one.id: one for one in view.records("errors_of", Occurrence, namespace=namespace, **bounds)}


def decoded(stored: str | None) -> Error | None:
    """None if there is no error, or not in the form in which attempts end."""
    try:
        return None if stored is None else _error(stored)
    except msgspec.MsgspecError:
        return None


def text(error: Error | None) -> str | None:
    """The class and the first line of the message."""
    if error is None:
        return None
    line = error.message.strip().partition("\n")[0]
    return f"{error.type}: {line}"[:MOST_TEXT] if line else error.type


def letters(view: View, namespace: str, fingerprint: str, most: int) -> list[Letter]:
    """The newest dead letters with this error, newest first."""
    return view.records("letters_of_error", Letter, namespace=namespace, fingerprint=fingerprint, most=most)


def first_letter(view: View, namespace: str, fingerprint: str) -> Letter | None:
    found = view.records("letters_of_error_asc", Letter, namespace=namespace, fingerprint=fingerprint, most=1)
    return found[0] if found else None


def trends(view: View, namespace: str, spans: Sequence[tuple[str, int, int]]) -> dict[str, dict[int, int]]:
    """How many letters came in which interval, for each fingerprint with its start and the length of an interval."""
    found: dict[str, dict[int, int]] = {}
    for fingerprint, place, count in view.rows(
        "error_trends", namespace=namespace, spans=list(spans), most=MOST_IN_TREND
    ):
        found.setdefault(fingerprint, {})[place] = count
    return found


def fingerprint_of(view: View, namespace: str, id: str, stored: str | None) -> str | None:
    """The fingerprint of a dead letter; for any other execution, that of its stored error, if there is one."""
    row = view.one("fingerprint_of", namespace=namespace, id=id)
    error = decoded(stored)
    return row[0] if row is not None else error_fingerprint.of(error) if error is not None else None


def versions(view: View, ids: Sequence[str]) -> list[tuple[int, int]]:
    """The number of these executions by version, newest version first."""
    if not ids:
        return []
    bounds = {"ids": list(ids), "lowest": min(ids), "highest": max(ids)}
    return [(version, count) for version, count in view.rows("error_versions", **bounds)]


def registered(view: View, namespace: str, app: str, job: str) -> list[tuple[int, int]]:
    """The newest versions of a job, and when each was registered; newest first."""
    about = {"namespace": namespace, "app": app, "job": job, "most": MOST_VERSIONS}
    return [(version, at) for version, at in view.rows("versions_registered", **about)]


def way_back(view: View, namespace: str, app: str, job: str, first: int | None, last: int | None) -> WayBack | None:
    """None unless the error came with a version after the first one, and its newest letter has the version in force."""
    if first is None or first <= 1:
        return None
    rows = view.rows("versions_before", namespace=namespace, app=app, job=job, first=first, most=MOST_VERSIONS)
    if not rows or rows[0][1] != last:
        return None
    origin, version, before, _ = rows[0]
    if origin != "code":
        return WayBack(version, before)
    digests = {row[3] for row in rows}
    own = (one for one in all_deploys(view, namespace) if one.app == app)
    deploy = next((one.number for one in own if one.declared.jobs.get(job) in digests), None)
    return WayBack(version, before, is_code=True, deploy=deploy)


def last_success(view: View, namespace: str, app: str, job: str, before: str) -> tuple[str, int] | None:
    """The last success among the executions of a job before this one, and when it ended."""
    about = {"namespace": namespace, "app": app, "job": job, "before": before, "looks": LOOKS}
    row = view.one("last_success_before", **about)
    return None if row is None else (row[0], row[1])


def with_errors(
    view: View, namespace: str, found: Sequence[ErrorGroup], jobs: Container[tuple[str, str]] = ()
) -> list[ErrorCount]:
    """The groups. Those with new dead letters, and those of `jobs`, also get texts and versions."""
    wanted = [one for one in found if one.recent or (one.app, one.job) in jobs]
    known = occurrences(view, namespace, [id for one in wanted for id in (one.first_id, one.last_id)])
    counts = []
    for one in found:
        first, last = known.get(one.first_id), known.get(one.last_id)
        counts.append(
            ErrorCount(
                app=one.app,
                job=one.job,
                fingerprint=one.fingerprint,
                count=one.count,
                new=one.recent,
                first_at=one.first_at,
                last_at=one.last_at,
                text=text(decoded(last.error)) if last else None,
                first_version=first.version if first else None,
                last_version=last.version if last else None,
                version_at=first.version_at if first else None,
            )
        )
    return counts
