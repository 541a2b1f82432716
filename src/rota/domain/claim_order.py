"""How far one claim goes in several lanes, so that it takes their rows in the order of their ranks.

Every job has a lane of its own, so a claim for a hundred slots may take two rows from each of fifty lanes. It knows the
first few ranks of each lane and decides how far to go in each; then one statement takes everything up to there.

    lane 1   3  9                the claim has four slots: the four lowest known ranks are 2, 3, 4 and 7
    lane 2   2  4  …             lane 2 may have more rows below 7, so it must be read further first
    lane 3   7  …                lane 3 has no row below 7

If all of them lie within `SLACK`, their order does not matter: the claim takes the rows that it knows. It need not even
look at all lanes then. Every row of a lane lies behind the place where the claim starts in it, so rows up to `SLACK`
behind the lowest start may be taken from any lane.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import chain

import msgspec

from rota.domain.instant import MICROSECONDS

LAST_RANK = 2**63 - 1
SLACK = MICROSECONDS
"""Microseconds of rank by which one lane may run ahead of another, so that a claim reads few lanes, and each once."""


class Head(msgspec.Struct, frozen=True):
    """The first ranks of a lane that has work, and whether the lane may have more."""

    ranks: list[int]
    is_cut: bool


class Reach(msgspec.Struct, frozen=True):
    """Take the rows of each of these lanes up to its highest rank; or, if there are none, read the `unread` further."""

    highest: dict[int, int]
    unread: list[int]


def reach(heads: Mapping[int, Head], most: int, ceiling: int = LAST_RANK) -> Reach:
    """For a claim of at most `most` rows from these lanes, none of them behind the ceiling."""
    if len(heads) == 1:
        return Reach(dict.fromkeys(heads, ceiling), [])
    known = sorted(chain.from_iterable([head.ranks for head in heads.values()]))
    highest = known[most - 1] if len(known) >= most else LAST_RANK
    if highest > known[0] + SLACK:
        unread = [lane for lane, head in heads.items() if head.is_cut and head.ranks[-1] < highest]
        if unread:
            return Reach({}, unread)
        if _is_shared(heads, known[most:], highest):
            # There are too many rows of this rank: take all before them, and then as many of them as are still wanted.
            highest = known[bisect_left(known, highest) - 1]
    highest = min(highest, ceiling)
    return Reach({lane: _bound(head, highest) for lane, head in heads.items() if head.ranks[0] <= highest}, [])


def _is_shared(heads: Mapping[int, Head], rest: Sequence[int], highest: int) -> bool:
    """Whether more rows have the highest rank than the claim may take."""
    return rest[:1] == [highest] or any(head.is_cut and head.ranks[-1] == highest for head in heads.values())


def _bound(head: Head, highest: int) -> int:
    """How far to go in this lane: not behind its known ranks if it may have more."""
    return min(highest, head.ranks[-1]) if head.is_cut else highest


def beyond(head: Head, highest: int) -> Head | None:
    """The known rest of a lane after all rows up to the highest rank were taken; None if the lane is empty."""
    left = [rank for rank in head.ranks if rank > highest]
    return Head(left, head.is_cut) if left or head.is_cut else None


def near(starts: Mapping[int, tuple[int, str]], count: int) -> tuple[list[int], int]:
    """The `count` lanes with the lowest starts, and the highest rank to take from them without reading other lanes.

    If there is only one lane, that lane, without a limit. Otherwise no lanes if there are at most `count`, or if their
    starts lie so far apart that the chosen ones probably have few rows.
    """
    if len(starts) == 1:
        return list(starts), LAST_RANK
    if len(starts) <= count:
        return [], LAST_RANK
    order = sorted(starts, key=starts.__getitem__)
    lowest = starts[order[0]][0]
    is_close = starts[order[count]][0] < lowest + SLACK // 2
    return order[:count] if is_close else [], lowest + SLACK
