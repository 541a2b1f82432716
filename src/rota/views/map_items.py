"""The items of a map: how many are in each state, and the first ones that failed."""

from __future__ import annotations

from collections.abc import Sequence

from rota.domain.status import Status
from rota.domain.workflow import maps
from rota.domain.workflow.graph import Step
from rota.domain.workflow.maps import Tally
from rota.store.run_reader import BadItem, ItemEnds
from rota.views.shape import Shape, shaped
from rota.views.stored_json import decoded, error_text


class MapItem(Shape, frozen=True):
    """An item of a map that failed or was cancelled."""

    index: int
    """Its place among the items, from 0."""
    execution_id: str
    status: Status
    reason: str
    attempt_count: int
    error_message: str | None


class MapInfo(Shape, frozen=True):
    """How many items of a map are in each state. `open` items have not ended; `running` of them run now.

    `kept` says how many of the successful items a retry took from an earlier run. `tolerated` is how many may fail, as
    `tolerate` says; `bad_items` are the first of those that failed or were cancelled. `last_index` is the item that
    ended last, once the map has ended.
    """

    width: int
    open: int
    """How many items have not ended."""
    running: int
    """How many items run now."""
    success: int
    """How many items succeeded."""
    kept: int
    """How many of the successful items a retry took from an earlier run."""
    failed: int
    """How many items failed."""
    cancelled: int
    """How many items were cancelled."""
    skipped: int
    """How many items were skipped."""
    at_once: int | None
    """How many items may run at once; null is no limit."""
    tolerate: int | str | None
    """How many items may fail, as a number or a share."""
    tolerated: int
    """How many items may fail, as a number."""
    bad_items: list[MapItem]
    """The first items that failed or were cancelled."""
    last_index: int | None
    """The item that ended last; null before the map has ended."""


def map_info(step: Step, tally: Tally, running: int, bad: Sequence[BadItem], ends: ItemEnds | None) -> MapInfo:
    return shaped(
        MapInfo,
        tally,
        running=running,
        at_once=step.at_once,
        tolerate=step.tolerate,
        tolerated=maps.allowed(step.tolerate, tally.width),
        bad_items=[_item(one) for one in bad],
        kept=ends.kept if ends else 0,
        last_index=ends.last_item if ends and not tally.open else None,
    )


def bad_words(step: Step, tally: Tally) -> str:
    """`3 of 10 items failed, 4 were cancelled (tolerates 1%)`."""
    counts = [f"{tally.failed:,} of {tally.width:,} items failed"] if tally.failed else []
    if tally.cancelled:
        counts.append(f"{tally.cancelled:,} {'' if counts else f'of {tally.width:,} items '}were cancelled")
    tolerated = f" (tolerates {step.tolerate})" if step.tolerate is not None else ""
    return ", ".join(counts) + tolerated


def _item(one: BadItem) -> MapItem:
    message = error_text(decoded(one.error))
    return shaped(
        MapItem, one, index=one.item, execution_id=one.execution, attempt_count=one.attempts, error_message=message
    )
