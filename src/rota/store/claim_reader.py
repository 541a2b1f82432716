"""Reads what the claim of an execution depends on."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.domain import requirement
from rota.domain.status import Status
from rota.store.port import View
from rota.store.reader import known, unknown

MOST_COUNTED = 10_000
"""Executions ahead of another one are counted up to this number."""
_BOUNDS = {"most": MOST_COUNTED + 1, "workflow": requirement.WORKFLOW}


class ClaimFacts(msgspec.Struct, frozen=True, array_like=True):
    """The values that the conditions of a claim depend on, for one execution.

    `ahead` counts the executions ahead of it in the queue, of all jobs with the same requirements, up to a bound.
    `live_workers` counts the live workers that serve the queue. `offers` and `troubles` are those of the workers that
    have the job.
    """

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
    """Open breakers of the namespace, as JSON: the name, and when the next probe may start."""
    job: str = ""
    job_paused_at: int | None = None
    job_paused_by: str | None = None
    job_paused_note: str | None = None
    troubles: str | None = None
    """The offers of live workers, as JSON, each with the reasons why the worker cannot start processes."""
    blockers: str | None = None
    """The blockers of a waiting execution, as JSON: kinds and keys."""
    id: str = ""


def claim_facts(view: View, namespace: str, id: str) -> ClaimFacts:
    """Reads the values that a claim of this execution depends on."""
    found = claim_facts_of(view, namespace, [known(id)])
    if not found:
        raise unknown(id)
    return found[0]


def claim_facts_of(view: View, namespace: str, ids: Sequence[str], most_ahead: int = MOST_COUNTED) -> list[ClaimFacts]:
    """`claim_facts` of several executions; `most_ahead` is the bound of `ahead`."""
    bounds = {**_BOUNDS, "most": most_ahead + 1}
    found = view.records("claim_facts", ClaimFacts, namespace=namespace, ids=list(ids), **bounds) if ids else []
    # The databases order aggregates differently.
    names = ("offers", "circuits", "troubles", "blockers")
    return [
        msgspec.structs.replace(facts, **{name: _in_order(getattr(facts, name)) for name in names}) for facts in found
    ]


def _in_order(listed: str | None) -> str:
    return msgspec.json.encode(sorted(msgspec.json.decode(listed or "[]"))).decode()
