"""Maps: when a mapped step has failed, how it ends, and which shard of its tally counts an item."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import msgspec

from rota.domain.errors import DefinitionError
from rota.domain.workflow.graph import Step, Template
from rota.domain.workflow.letters import CANCELLED, FAILED, OPEN, SKIPPED, SUCCESS
from rota.domain.workflow.reference import RESERVED
from rota.domain.workflow.template import TemplateError, kind

SHARDS = 16
SHORT_VALUE = 40
"""An error message shows a value if its JSON has at most this many characters."""
BLOCK = 100
"""Neighbouring items share a shard, so that one batch of ends updates few rows."""

_SHARE = re.compile(r"([0-9]+(?:\.[0-9]+)?)%")


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """How many items of a map are in each state; `open` counts those that have not ended, placed or not."""

    open: int = 0
    success: int = 0
    failed: int = 0
    cancelled: int = 0
    skipped: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(**{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__})

    @property
    def width(self) -> int:
        return self.open + self.success + self.failed + self.cancelled + self.skipped


def outcome(tally: Tally, tolerate: int | str | None, *, is_stopping: bool = False, runs_all: bool = False) -> str:
    """The letter of a map: failed as soon as too many items are bad, otherwise open until its last item has ended.

    With `is_stopping` its run stops or the map itself was cancelled: too many cancelled items then cancel the map. With
    `runs_all`, too many bad items do not end the map early: it stays open until its last item has ended.
    """
    if runs_all and tally.open:
        return OPEN
    tolerated = allowed(tolerate, tally.width)
    if tally.failed > tolerated:
        return FAILED
    is_bad = tally.failed + tally.cancelled > tolerated
    if is_bad and not is_stopping:
        return FAILED
    if tally.open:
        return OPEN
    if is_bad:
        return CANCELLED
    return SKIPPED if 0 < tally.width == tally.skipped else SUCCESS


def allowed(tolerate: int | str | None, width: int) -> int:
    """How many items of a map of this width may be bad."""
    if tolerate is None:
        return 0
    if isinstance(tolerate, int) and tolerate >= 0:
        return tolerate
    share = _SHARE.fullmatch(str(tolerate))
    if share is None or Fraction(share[1]) > 100:
        raise DefinitionError(f"tolerate takes a whole number or a percentage such as '5%', not {tolerate!r}")
    return int(Fraction(share[1]) * width / 100)


def shard(index: int) -> int:
    """The shard that counts an item. A finish knows the item and not the width of its map."""
    return index // BLOCK % SHARDS


def shard_widths(width: int, first: int = 0) -> list[int]:
    """How many of the items from `first` on each shard counts."""
    widths = [0] * SHARDS
    for low in range(first - first % BLOCK, width, BLOCK):
        widths[shard(low)] += min(low + BLOCK, width) - max(low, first)
    return widths


def items(step: Step, most: int, value: Any) -> list[Any]:
    """The items of a map, from the value that it maps over."""
    if not isinstance(value, list):
        raise TemplateError(f"{_source(step.map)} {kind(value)}{_shown(value)}, a map needs a list")
    if len(value) > most:
        raise TemplateError(f"step {step.id} maps over {len(value):,} items; at most {most:,} are allowed (max_width)")
    if step.item is None:
        for index, item in enumerate(value):
            call(step, item, index)
    return value


def _source(mapped: Template) -> str:
    """The start of an error message about the mapped value: `step sizes returned`, or for a member `sizes.files is`."""
    match mapped:
        case {"$": str() as name} if name.isidentifier() and name not in RESERVED:
            return f"step {name} returned"
        case {"$": reference}:
            return f"{reference} is"
        case _:
            return "the mapped value is"


def _shown(value: Any) -> str:
    """The value in parentheses, if it is short."""
    words = msgspec.json.encode(value).decode()
    return f" ({words})" if value is not None and len(words) <= SHORT_VALUE else ""


def call(step: Step, item: Any, index: int = 0) -> dict[str, Any]:
    """The arguments that an item gives its execution."""
    if step.item is not None:
        return {step.item: item}
    if isinstance(item, dict):
        return item
    if isinstance(item, list) and len(item) <= len(step.positional):
        return dict(zip(step.positional, item, strict=False))
    raise TemplateError(
        f"step {step.id}: item {index} is {kind(item)}; each item must be an object of arguments, or a list of at most "
        f"{len(step.positional)}"
    )
