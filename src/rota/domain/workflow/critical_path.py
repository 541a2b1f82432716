"""The critical path of a run: the steps that a shorter run would have to make shorter."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from rota.domain.workflow import edges
from rota.domain.workflow.graph import Graph


class Span(msgspec.Struct, frozen=True):
    """When a step was placed, started and ended. The times of a map are those of its first and last items."""

    placed_at: datetime
    started_at: datetime
    ended_at: datetime


def critical_path(graph: Graph, spans: Mapping[int, Span]) -> list[int]:
    """The numbers of the steps, first to last: from the step that ended last back along the upstream that ended last.

    `spans` has the steps that have run. A rule may start a step before all its upstreams have ended; those that ended
    later did not delay it.
    """
    if not spans:
        return []
    index = edges.of(graph)
    number = max(spans, key=lambda one: (spans[one].ended_at, one))
    path = [number]
    while True:
        begun_at = max(spans[number].placed_at, spans[number].started_at)
        before = [one for one in index.steps[number].upstream if one in spans and spans[one].ended_at <= begun_at]
        if not before:
            return path[::-1]
        number = max(before, key=lambda one: (spans[one].ended_at, one))
        path.append(number)
