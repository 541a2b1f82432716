"""A step that waits: what for, since when, until when, and what would end it."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

import msgspec

from rota.domain import duration
from rota.domain.blocker import Kind
from rota.domain.instant import moment
from rota.domain.status import TERMINAL, Status
from rota.domain.workflow import wait as waits
from rota.domain.workflow.drawing import template_words
from rota.domain.workflow.wait import Approve, AwaitEvent, Decision, Sleep, Wait
from rota.views.shape import Shape
from rota.views.stored_json import decoded

_approve = msgspec.json.Decoder(Approve).decode


class WaitInfo(Shape, frozen=True):
    """What a step waits for, or has waited for.

    `kind` is `sleep`, `approval` or `event`. The wait ends by itself at `until`, as `on_timeout` says. `commands` are
    the commands that end it earlier. `outcome` says in words how it ended.
    """

    kind: str
    """`sleep`, `approval` or `event`."""
    text: str
    """What the step waits for, in words."""
    who: list[str]
    """The names, groups or roles of those who may answer; empty for everyone, and for other waits."""
    since: datetime
    """When the wait began."""
    until: datetime | None
    on_timeout: str | None
    """What happens at `until`: `reject`, `approve`, `fail` or `skip`; null for a sleep."""
    commands: list[str]
    """The commands that end the wait earlier."""
    outcome: str | None
    """How it ended, in words; null before that."""


class WaitRow(Protocol):
    """The columns of an execution that say whether it is a wait, and what it waits for."""

    @property
    def job(self) -> str: ...
    @property
    def arguments(self) -> str | None: ...
    @property
    def status(self) -> Status: ...
    @property
    def created_at(self) -> int: ...
    @property
    def deadline(self) -> int | None: ...


def wait_info(row: WaitRow, result: str | None, run: str, step: str) -> WaitInfo | None:
    """None if the execution is not a wait. `step` is its name in its run."""
    if not waits.is_wait(row.job) or row.arguments is None:
        return None
    wait = waits.of_execution(row.job, row.arguments)
    is_open = row.status not in TERMINAL
    verbs = ("approve", "reject") if isinstance(wait, Approve) and is_open else ()
    return WaitInfo(
        kind=waits.kind_of(wait).blocker.value,
        text=words(wait),
        who=list(wait.who) if isinstance(wait, Approve) else [],
        since=moment(row.created_at),
        until=None if row.deadline is None else moment(row.deadline),
        on_timeout=None if isinstance(wait, Sleep) else wait.on_timeout,
        commands=[f"rota run {verb} {run} {step}" for verb in verbs],
        outcome=None if is_open else _outcome(wait, result),
    )


def words(wait: Wait) -> str:
    """What a step waits for, as the end of a sentence: `an answer of ops: Release?`, `event order.paid of 17`."""
    match wait:
        case Sleep():
            return duration.words(duration.seconds(wait.duration))
        case Approve():
            who = f" of {', '.join(wait.who)}" if wait.who else ""
            return f"an answer{who}: {_text(wait)}"
        case AwaitEvent():
            subject = "" if wait.subject is None else f" of {wait.subject}"
            where = "" if wait.where is None else f" where {template_words(wait.where)}"
            return f"event {' or '.join(wait.names)}{subject}{where}"


def question(arguments: str) -> str:
    """The text of an approval, from the arguments of its execution."""
    return _text(_approve(arguments))


def sentence(info: WaitInfo, now: datetime) -> str:
    """`waits for an answer: Release?, since 5m, for 1d23h at most, then reject`; `sleeps 10m, 5m left`."""
    if info.kind == Kind.SLEEP:
        left = "" if info.until is None else f", {_length(info.until, now)} left"
        return f"sleeps {info.text}{left}"
    then = f", then {info.on_timeout}" if info.on_timeout else ""
    left = "" if info.until is None else f", for {_length(info.until, now)} at most{then}"
    return f"waits for {info.text}, since {_length(now, info.since)}{left}"


def _text(wait: Approve) -> str:
    return wait.text if isinstance(wait.text, str) else template_words(wait.text)


def _outcome(wait: Wait, result: str | None) -> str | None:
    found = decoded(result)
    if not isinstance(found, dict):
        return None
    if isinstance(wait, AwaitEvent):
        return f"event {found.get('name')}"
    decision = msgspec.convert(found, Decision)
    word = "approved" if decision.approved else "rejected"
    if decision.timed_out:
        return f"{word}: no answer came in time"
    return f"{word} by {decision.by}" + (f": {decision.note}" if decision.note else "")


def _length(later: datetime, earlier: datetime) -> str:
    return duration.words(max(0.0, (later - earlier).total_seconds()))
