"""The overview: what needs attention, and the numbers that say how the system is."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, NamedTuple

import msgspec

from rota.api.answer import Answer, shown
from rota.api.call import Call
from rota.api.route import NoQuery, route
from rota.api.services import Services
from rota.api.shared_read import SharedRead
from rota.domain.access import Scope
from rota.domain.findings.finding import Kind, Severity
from rota.store import finding_reader
from rota.store.port import View
from rota.views import finding as views
from rota.views.finding import Finding, Overview
from rota.views.outlook import QueueOutlooks, outlooks
from rota.views.shape import Shape

MOST_SHOWN = 50


class Now(NamedTuple):
    """What one read of a namespace gives."""

    overview: Overview
    outlook: QueueOutlooks


class Shared(SharedRead[Now]):
    """The state of each namespace."""

    def __init__(self, services: Services) -> None:
        super().__init__(services, _read)


def _read(view: View, namespace: str) -> Now:
    read = finding_reader.read(view, namespace)
    return Now(views.overview(view, namespace, read), outlooks(read))


class FindingsQuery(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Which findings; a repeated parameter means any of its values."""

    kind: tuple[Kind, ...] = ()
    """What is wrong, as a code."""
    severity: tuple[Severity, ...] = ()
    """`critical` or `warning`."""
    subject: Annotated[tuple[str, ...], msgspec.Meta(description="A name or an id, such as that of a job.")] = ()


class FindingList(Shape, frozen=True):
    """Findings, worst first."""

    at: datetime
    """When they were evaluated."""
    items: list[Finding]
    """The findings, worst first."""


_FINDING = {
    "findingId": "queue_paused:queue:mail",
    "kind": "queue_paused",
    "severity": "warning",
    "subject": {"kind": "queue", "id": "mail", "name": "mail", "app": None},
    "text": "Queue mail is paused by oncall: “the provider is down”",
    "evidence": "1,830 queued, oldest 51 m",
    "since": "2026-01-31T08:00:00Z",
    "measure": 1830.0,
    "usual": None,
    "unit": "count",
    "affected": 1830,
    "series": {"metric": "queued", "from": "2026-01-31T08:00:00Z", "step": 60, "points": [0, None, 1830]},
    "actions": [
        {
            "label": "Resume…",
            "kind": "do",
            "link": None,
            "method": "POST",
            "path": "/api/v1/queues/mail/resume",
            "command": "rota queues resume mail",
            "needs": "operate",
            "isConfirmed": True,
        }
    ],
    "advice": None,
    "means": None,
}
_AT = "2026-01-31T08:51:00Z"
_NUMBERS = {
    "endedPerMinute": 904.0,
    "usualEndedPerMinute": 1210.0,
    "successRate": 0.902,
    "usualSuccessRate": 0.994,
    "queued": 2130,
    "waiting": 25,
    "waitingIsCapped": False,
    "busy": 47,
    "slots": 73,
    "dead": 447,
    "deadIsCapped": False,
    "deadNew": 412,
}


@route(
    "GET /overview",
    Scope.READ,
    answer=Overview,
    answer_example={
        "at": _AT,
        "text": "1 thing needs attention",
        "numbers": _NUMBERS,
        "findings": [_FINDING],
        "findingCount": 1,
    },
)
async def overview(call: Call, query: NoQuery) -> Answer:
    """What needs attention, worst first, and the numbers that say how the namespace is. Up to a second old."""
    found = (await call.services.part(Shared).of(call.namespace)).overview
    return shown(msgspec.structs.replace(found, findings=found.findings[:MOST_SHOWN]))


@route("GET /findings", Scope.READ, answer=FindingList, answer_example={"at": _AT, "items": [_FINDING]})
async def list_findings(call: Call, query: FindingsQuery) -> Answer:
    """All that needs attention, worst first: the same findings as `rota doctor` has. Up to a second old."""
    found = (await call.services.part(Shared).of(call.namespace)).overview
    return shown(FindingList(found.at, [one for one in found.findings if _fits(one, query)]))


@route("GET /outlook", Scope.READ, answer=QueueOutlooks)
async def outlook(call: Call, query: NoQuery) -> Answer:
    """All queues with their rates, and when they will be empty. Up to a second old."""
    return shown((await call.services.part(Shared).of(call.namespace)).outlook)


def _fits(one: Finding, query: FindingsQuery) -> bool:
    return (
        (not query.kind or one.kind in query.kind)
        and (not query.severity or one.severity in query.severity)
        and (not query.subject or one.subject.id in query.subject or one.subject.name in query.subject)
    )
