"""How much there is to do and how many slots there are for it, as people and autoscalers read it."""

from __future__ import annotations

from datetime import datetime

import msgspec

from rota.domain import load as domain
from rota.domain.instant import moment
from rota.domain.load import WINDOW_S, Figures, Group, Measured
from rota.store import load_reader
from rota.store.port import View
from rota.views.shape import Shape


class Load(Shape, frozen=True):
    """For all groups together, and for each queue and pool of an app."""

    at: datetime
    """When it was measured."""
    target_s: float
    """Within how many seconds the suggested slots would work off what is ready."""
    window_s: float
    """Over how many seconds rates are measured."""
    slots_of_a_worker: int
    """How many executions one worker runs at once."""
    total: Figures
    """The figures of all groups together."""
    groups: list[Group]
    """The figures of each queue and pool of an app."""


class Scope(msgspec.Struct, frozen=True):
    """Which work to measure; None for all."""

    app: str | None = None
    queue: str | None = None
    pool: str | None = None


def load(view: View, namespace: str, scope: Scope, target_s: float, slots: int | None, usual_slots: int) -> Load:
    """`slots` is the number of slots of one worker; None for that of the largest live worker, or `usual_slots`."""
    measured = _only(load_reader.measure(view, namespace), scope)
    found = domain.report(measured, target_s, slots or domain.usual_slots(measured, usual_slots))
    return Load(
        at=moment(measured.at),
        target_s=target_s,
        window_s=WINDOW_S,
        slots_of_a_worker=found.slots_of_a_worker,
        total=found.total,
        groups=found.groups,
    )


def _only(measured: Measured, scope: Scope) -> Measured:
    lanes = [
        lane
        for lane in measured.lanes
        if scope.app in (None, lane.app)
        and scope.queue in (None, lane.queue)
        and scope.pool in (None, domain.pool_of(lane))
    ]
    return msgspec.structs.replace(measured, lanes=lanes)
