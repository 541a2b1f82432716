"""A change of a namespace that may explain what happens in it: versions, pauses, drains, workers, settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec
from msgspec.structs import replace

from rota.domain.findings.finding import Subject


class Kind(StrEnum):
    """The kind of a change."""

    VERSION = "version"
    DEPLOY = "deploy"
    PAUSE = "pause"
    RESUME = "resume"
    DRAIN = "drain"
    BREAKER = "breaker"
    WORKER_STARTED = "worker_started"
    WORKER_STOPPED = "worker_stopped"
    WORKER_LOST = "worker_lost"
    SETTING = "setting"


_VERBS = {"pause": Kind.PAUSE, "resume": Kind.RESUME, "drain": Kind.DRAIN}
_NOUNS = {"deploy": Kind.DEPLOY, "breaker": Kind.BREAKER}
_SETTINGS = {"queue", "job", "schedule", "calendar", "namespace", "workflow", "template", "hook"}
_DEFINING = {"job.create", "job.change", "workflow.apply"}
"""If one of these actions registered a version, the version is shown instead of the action."""
_WORDS = {
    "pause": "paused",
    "resume": "resumed",
    "drain": "asked to drain",
    "put": "set",
    "set": "set",
    "remove": "removed",
    "delete": "deleted",
    "declare": "declared",
    "open": "opened",
    "close": "closed",
    "apply": "applied",
    "use": "put in force",
    "create": "made",
    "change": "changed",
    "rotate": "got a new secret",
    "quotas": "got other quotas",
    "retention": "got another retention",
    "backfill": "backfilled",
}
_OF_APPS = {"job", "schedule", "workflow", "deploy"}


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """`action` is that of the audit trail, if the change is from there."""

    id: str
    at: int
    kind: Kind
    subject: Subject
    text: str
    actor: str | None = None
    note: str | None = None
    action: str | None = None


def of_audit(id: int, at: int, actor: str, action: str, about: str, after: Any) -> Change | None:
    """None for an action that changes no definition and stops nothing, such as a replay."""
    noun, _, verb = action.partition(".")
    kind = _VERBS.get(verb) or _NOUNS.get(noun) or (Kind.SETTING if noun in _SETTINGS else None)
    if kind is None:
        return None
    app, dot, name = about.partition(".")
    subject = Subject(noun, name, name, app) if noun in _OF_APPS and dot else Subject(noun, about, about)
    note = after.get("note") if isinstance(after, dict) else None
    return Change(
        id=f"a{id}",
        at=at,
        kind=kind,
        subject=subject,
        text=f"{noun} {subject.name} {_WORDS.get(verb, verb.replace('_', ' '))}",
        actor=actor or None,
        note=str(note) if note else None,
        action=action,
    )


def merged(audited: Iterable[Change], versions: Sequence[Change], workers: Mapping[str, str]) -> list[Change]:
    """All changes, without the actions that registered one of the versions, and with the names of workers."""
    known = {(one.subject.app, one.subject.name, one.at) for one in versions}
    found = list(versions)
    for one in audited:
        if one.action in _DEFINING and (one.subject.app, one.subject.name, one.at) in known:
            continue
        if one.subject.kind == "worker" and (name := workers.get(one.subject.id)) is not None:
            text = one.text.replace(f"worker {one.subject.id} ", f"worker {name} ")
            one = replace(one, subject=replace(one.subject, name=name), text=text)
        found.append(one)
    return found


def of_version(app: str, job: str, number: int, at: int, actor: str | None) -> Change:
    subject, text = Subject("job", job, job, app), f"{job} version {number} registered"
    return Change(
        id=f"v{app}/{job}/{number}", at=at, kind=Kind.VERSION, subject=subject, text=text, actor=actor or "deploy"
    )


def of_worker(id: int, name: str, app: str, at: int, state: str | None, ended: Any) -> Change:
    """`state` is None if the worker started then, else the state in which it stopped."""
    subject = Subject("worker", str(id), name, app)
    if state is None:
        return Change(id=f"w{id}+", at=at, kind=Kind.WORKER_STARTED, subject=subject, text=f"worker {name} started")
    held = ended.get("held", 0) if isinstance(ended, dict) else 0
    cause = ended.get("cause") if isinstance(ended, dict) else None
    is_lost = state == "lost"
    moved = f", {held:,} {'execution' if held == 1 else 'executions'} moved" if held else ""
    return Change(
        id=f"w{id}-",
        at=at,
        kind=Kind.WORKER_LOST if is_lost else Kind.WORKER_STOPPED,
        subject=subject,
        text=f"worker {name} {'lost' if is_lost else 'stopped'}{moved}",
        note=str(cause) if cause else None,
    )
