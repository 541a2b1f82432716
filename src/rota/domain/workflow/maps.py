"""Maps: when a mapped step has failed, how it ends, and which shard of its tally counts an item."""

from __future__ import annotations

import re
from fractions import Fraction

import msgspec

from rota.domain.errors import DefinitionError
from rota.domain.workflow.letters import CANCELLED, FAILED, OPEN, SKIPPED, SUCCESS

SHARDS = 16
WIDEST_UNSHARDED = 1_000
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


def outcome(tally: Tally, tolerate: int | str | None, *, is_stopping: bool = False) -> str:
    """The letter of a map: failed as soon as too many items are bad, otherwise open until its last item has ended.

    With `is_stopping` its run stops or the map itself was cancelled: too many cancelled items then cancel the map.
    """
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
        raise DefinitionError(f"tolerate takes a number of items or a share such as '1%', not {tolerate!r}")
    return int(Fraction(share[1]) * width / 100)


def shards(width: int) -> int:
    return SHARDS if width > WIDEST_UNSHARDED else 1


def shard(index: int, width: int) -> int:
    return index // BLOCK % shards(width)


def shard_widths(width: int) -> list[int]:
    """How many items each shard counts."""
    widths = [0] * shards(width)
    for first in range(0, width, BLOCK):
        widths[shard(first, width)] += min(BLOCK, width - first)
    return widths
