"""Reads dead letters by the fingerprints of their errors."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.domain.findings.facts import ErrorCount
from rota.domain.outcome import Error
from rota.store.port import View

MOST_LETTERS = 50_000
"""So many of the newest dead letters are grouped."""
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


def with_errors(view: View, namespace: str, found: Sequence[ErrorGroup]) -> list[ErrorCount]:
    """The groups with texts and versions, as far as there are new letters among them."""
    wanted = [one for one in found if one.recent]
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
                version_at=first.version_at if first else None,
            )
        )
    return counts
