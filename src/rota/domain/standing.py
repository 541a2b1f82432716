"""Why an execution is not running: the conditions of a claim, turned into words.

A claim takes the lowest rank of a lane whose queue is not paused, for a live worker of the app that serves the queue.
What stands in the way is the first of these that does not hold.
"""

from __future__ import annotations

import msgspec

from rota.domain import duration, requirement
from rota.domain.status import Status

MICROSECONDS = 1_000_000
MOST_COUNTED = 10_000
_AFTER = {"snoozed": " (snoozed)", "not_begun": " (no process could be started for it: its last attempt says why)"}


class Standing(msgspec.Struct, frozen=True, array_like=True):
    """What a claim looks at, for one execution. `ahead` counts up to `MOST_COUNTED` in the same lane."""

    status: Status
    app: str
    queue: str
    reason: str
    due_at: int | None
    paused_at: int | None
    paused_by: str | None
    paused_note: str | None
    live_workers: int
    offers: str | None
    requirements: str | None
    ahead: int
    cancel_at: int | None
    lease_until: int | None
    circuits: str | None = None
    """Open breakers of the namespace, as JSON: the name, and when one may try."""
    job: str = ""
    job_paused_at: int | None = None
    job_paused_by: str | None = None
    job_paused_note: str | None = None
    troubles: str | None = None
    """What live workers offer, as JSON, each with the reasons why it cannot start processes, by what they are for."""


def why(standing: Standing, now: int) -> str:
    """One sentence for people; empty if there is nothing to explain."""
    match standing.status:
        case Status.SCHEDULED | Status.RETRYING:
            return _later(standing, now)
        case Status.WAITING:
            return _paused(standing) or f"waits for {standing.reason or 'a limit or another execution'}"
        case Status.QUEUED:
            return _queued(standing, now)
        case Status.RUNNING:
            return _running(standing, now)
        case _:
            return ""


def is_in_line(standing: Standing, now: int) -> bool:
    """Whether it waits for nothing but its turn, which may come at any moment."""
    return standing.status is Status.QUEUED and not _blocked(standing) and not _relies(standing, now)


def _later(standing: Standing, now: int) -> str:
    due_at = standing.due_at or now
    if due_at <= now:
        return f"due {_length(now - due_at)} ago; {_blocked(standing) or 'about to be queued'}"
    kind = "to be tried again" if standing.status is Status.RETRYING else "scheduled to start"
    return f"{kind} in {_length(due_at - now)}{_AFTER.get(standing.reason, '')}"


def _queued(standing: Standing, now: int) -> str:
    place = "next in line"
    if standing.ahead:
        more = "more than " if standing.ahead > MOST_COUNTED else ""
        place = f"queued behind {more}{min(standing.ahead, MOST_COUNTED):,}"
    blocked = _blocked(standing) or _relies(standing, now)
    return f"{blocked}; {place}" if blocked else f"{place}; waits for a free slot of a worker"


def _blocked(standing: Standing) -> str:
    if standing.paused_at is not None:
        why = _by(standing.paused_by, standing.paused_note)
        return f"queue {standing.queue} is paused{why}: `rota queues resume {standing.queue}`"
    if standing.job_paused_at is not None:
        return _paused(standing)
    wanted = requirement.words(standing.requirements or "")
    start = "start one with `rota worker --pool`, `--tag` or `--resource`" if wanted else "start one with `rota worker`"
    if not standing.live_workers:
        needed = f", and it needs {wanted}" if wanted else ""
        return f"no live worker of app {standing.app} serves queue {standing.queue}{needed}: {start}"
    if not _fits(standing):
        return f"no live worker has what it needs ({wanted}): {start}"
    return _unstartable(standing)


def _unstartable(standing: Standing) -> str:
    """None of those that it fits can start the process that it needs."""
    listed = msgspec.json.decode(standing.troubles, type=list[tuple[str, str]]) if standing.troubles else []
    wanted, reasons = standing.requirements or "", []
    for offers, trouble in listed:
        if requirement.fits(wanted, offers):
            reasons.append(msgspec.json.decode(trouble, type=dict[str, str]).get(requirement.processes(wanted), ""))
    return f"no live worker can start a process for it: {reasons[0]}" if reasons and all(reasons) else ""


def _paused(standing: Standing) -> str:
    if standing.job_paused_at is None:
        return ""
    why = _by(standing.job_paused_by, standing.job_paused_note)
    return f"job {standing.app}.{standing.job} is paused{why}: `rota jobs resume {standing.job}`"


def _by(actor: str | None, note: str | None) -> str:
    return (f" by {actor}" if actor else "") + (f" ({note})" if note else "")


def _relies(standing: Standing, now: int) -> str:
    wanted = requirement.breakers(standing.requirements or "")
    known = msgspec.json.decode(standing.circuits, type=list[tuple[str, int]]) if standing.circuits else []
    for name, retry_at in sorted(known):
        if name in wanted:
            when = f"one tries in {_length(retry_at - now)}" if retry_at > now else "one tries"
            return f"breaker {name} is open because what it stands for has failed: {when}"
    return ""


def _fits(standing: Standing) -> bool:
    offers = msgspec.json.decode(standing.offers, type=list[str]) if standing.offers else []
    return any(requirement.fits(standing.requirements or "", one) for one in offers)


def _running(standing: Standing, now: int) -> str:
    if standing.lease_until is not None and standing.lease_until <= now:
        gone = _length(now - standing.lease_until)
        return f"the lease of its worker ran out {gone} ago: any live worker will give it to another"
    if standing.cancel_at is not None:
        return f"asked to stop {_length(now - standing.cancel_at)} ago"
    return ""


def _length(microseconds: int) -> str:
    return duration.words(max(0, microseconds) / MICROSECONDS)
