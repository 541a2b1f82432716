"""What differs between two versions of a workflow, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from rota.domain.workflow.graph import Graph, to_data

_ABSENT = object()


class Change(msgspec.Struct, frozen=True):
    """`step` is None for the workflow itself. A step that is new has only `after`, one that is gone only `before`."""

    kind: str
    """added, removed or changed."""
    step: str | None
    field: str | None
    before: Any
    after: Any


def differences(old: Graph, new: Graph) -> list[Change]:
    """First the workflow itself, then the steps in the order of the new version, then those that are gone."""
    before, after = to_data(old), to_data(new)
    old_steps = {step["id"]: step for step in before.pop("steps", ())}
    new_steps = {step["id"]: step for step in after.pop("steps", ())}
    found = list(_changed(None, before, after))
    for name, step in new_steps.items():
        if name in old_steps:
            found += _changed(name, old_steps[name], step)
        else:
            found.append(Change("added", name, None, None, step))
    found += [Change("removed", name, None, step, None) for name, step in old_steps.items() if name not in new_steps]
    return found


def _changed(step: str | None, before: dict[str, Any], after: dict[str, Any]) -> Iterator[Change]:
    for field in dict.fromkeys([*after, *before]):
        old, new = before.get(field, _ABSENT), after.get(field, _ABSENT)
        if old is _ABSENT:
            yield Change("added", step, field, None, new)
        elif new is _ABSENT:
            yield Change("removed", step, field, old, None)
        elif old != new:
            yield Change("changed", step, field, old, new)
