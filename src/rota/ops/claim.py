"""Claiming: ready rows become running rows of one worker, each with a new fence.

A worker claims from the lanes of the jobs that it can run. Lane gates bound how much may be taken from which lanes, and
row gates put back executions that may not start (`ops/gates/`). Rows of lanes with the same requirements are taken
together, in the order of their ranks (`domain/claim_order.py`). Groups of lanes with different requirements are taken
piece by piece.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import attrgetter, itemgetter
from typing import Any

import msgspec
from msgspec.structs import replace

from rota.domain import claim_order
from rota.domain.claim import Claim
from rota.domain.claim_order import LAST_RANK, SLACK, Head
from rota.domain.errors import LeaseLost
from rota.domain.requirement import UNBOUNDED, Room
from rota.domain.served import Served
from rota.domain.suspicion import ALONE
from rota.ids import FIRST_ID, LAST_ID
from rota.ops import finish, notes
from rota.ops.finish import Finished
from rota.ops.gates.claim_affinity import claim_affinity
from rota.ops.gates.claim_state import Claiming, Group, Starts
from rota.ops.gates.definitions import definitions
from rota.ops.gates.offers import PLAIN_OFFERS, offers, starving_lanes
from rota.ops.gates.open_breakers import open_breakers
from rota.ops.gates.open_runs import open_runs
from rota.ops.gates.paused_jobs import paused_jobs
from rota.ops.gates.paused_runs import paused_runs
from rota.ops.gates.processes import processes
from rota.ops.gates.run_info import run_info
from rota.ops.gates.start_deadlines import start_deadlines
from rota.ops.gates.step_inputs import step_inputs
from rota.store.port import Row, Tx

LANE_GATES: tuple[Callable[[Claiming, Group], None], ...] = (
    offers,
    processes,
    open_breakers,
    claim_affinity,
    starving_lanes,
)
"""Each bounds what may be taken from a group of lanes."""
ROW_GATES: tuple[Callable[[Claiming, list[Claim]], list[Claim]], ...] = (
    paused_jobs,
    start_deadlines,
    paused_runs,
    step_inputs,
    open_runs,
    run_info,
    definitions,
)
"""Each returns the executions that may start, and has moved the others to where they belong."""
DEEPER = 4
"""If the ranks that were read of a lane are not enough, this many times as many are read next."""
MOST_PIECES = 16
MOST_BYTES = 32 * 1024 * 1024
_place, _arguments = itemgetter(2, 0), attrgetter("arguments")
_ranks = msgspec.json.Decoder(list[int]).decode
FIRST_RANK = -(2**63)
Mark = tuple[int, int, str]
"""How far a claimer has come: a lane, and the rank and id of the last row that it took there."""


def just_before(rank: int) -> tuple[int, str]:
    """The place just before all rows of this rank. Nothing is below the lowest rank."""
    return max(rank - 1, FIRST_RANK), LAST_ID


class Claimed(msgspec.Struct, frozen=True):
    """The executions that a worker has claimed, and how far it has come in each lane."""

    claims: list[Claim]
    lanes: frozenset[int] | None = None
    """All lanes that the worker can take from; None if the caller named the lanes."""
    marks: list[Mark] = []
    empty: list[int] = []
    """Lanes without a ready row behind the worker's watermark."""
    has_no_room: bool = False
    """Whether there are ready rows that the worker can take once its running executions have ended."""
    has_more: bool = False
    """Whether to claim again at once: a row gate moved executions away, or this claim stopped early or was cut."""


def claim(
    tx: Tx,
    worker: int,
    served: Served,
    slots: int,
    marks: Sequence[Mark] | None = None,
    room: Room = UNBOUNDED,
) -> Claimed:
    """Up to `slots` executions, lowest rank first across the lanes; nothing for a worker without a live lease.

    Takes rows behind the `marks`, which name the lanes. On PostgreSQL taken rows stay in the index until they are
    vacuumed, and without a mark every claim would read the dead rows of all claims before it. A row that came back or
    was committed late is below the mark. Without marks the claim looks up the lanes of the `served` jobs and starts at
    the beginning of each, which finds such rows. `room` says for how many jobs the worker has processes.
    """
    starts = _all_lanes(tx, served) if marks is None else {lane: (rank, id) for lane, rank, id in marks}
    claiming = Claiming(tx, worker, served, room)
    taking = _Taking(claiming)
    taken = taking.at_once(starts, slots)
    empty, has_no_room = [], False
    if not taken or (len(taken) < slots and not taking.has_more and not taking.emptied):
        if not _read_groups(claiming, starts | taking.reached, slots - len(taken)) and not taken:
            return Claimed([])
        empty = [lane for group in claiming.groups for lane in group.lanes if lane not in group.heads]
        has_no_room = any(group.fits and group.room is not None and group.heads for group in claiming.groups)
        taken += taking.from_groups(slots - len(taken))
    started = taken
    claiming.has_steps = not {claim.run for claim in taken} <= {None}
    for gate in ROW_GATES if taken else ():
        started = gate(claiming, started)
    for follow in claiming.at_end:
        follow(started)
    return Claimed(
        started,
        claiming.lanes_that_fit() if marks is None else None,
        [(lane, *place) for lane, place in taking.reached.items()],
        empty + taking.emptied,
        claiming.left_some or has_no_room,
        taking.has_more or len(started) < len(taken),
    )


class FinishedAndClaimed(msgspec.Struct, frozen=True):
    """The ids whose report was stale, and what was claimed."""

    stale: list[str]
    claimed: Claimed


def finish_and_claim(
    tx: Tx,
    reports: Sequence[Finished],
    worker: int,
    served: Served,
    slots: int,
    marks: Sequence[Mark] | None,
    room: Room = UNBOUNDED,
) -> FinishedAndClaimed:
    """`finish`, then `claim`, with one commit for both: at full speed most of the cost is the commit."""
    stale = finish.finish(tx, reports, worker)
    claimed = claim(tx, worker, served, slots, marks, room)
    if claimed.empty and not claimed.has_more:
        # The finish has placed the next steps in `ready` and added a hint about them. If the claim has taken them all,
        # no worker needs the hint. A row gate that moves executions may place further steps, and sets `has_more`.
        watermarks = {lane: rank for lane, rank, _ in marks or ()}
        tx.withdraw_ready({lane: watermarks.get(lane, FIRST_RANK) for lane in claimed.empty})
    return FinishedAndClaimed(stale, claimed)


def _all_lanes(tx: Tx, served: Served) -> dict[int, tuple[int, str]]:
    """The start of every lane of the jobs that the worker has, in the queues that it serves."""
    rows = tx.rows("served_lanes", jobs=served.jobs, **served.where())
    return dict.fromkeys((row[0] for row in rows), (FIRST_RANK, FIRST_ID))


def _read_groups(claiming: Claiming, starts: dict[int, tuple[int, str]], slots: int) -> bool:
    """Reads the heads of the lanes, in groups with the same needs, and runs the lane gates. False if not allowed."""
    depth = _depth(slots, len(starts)) if len(starts) > 1 else 1
    lanes = [(lane, *start) for lane, start in starts.items()]
    found = claiming.tx.rows("claim_heads", worker=claiming.worker, lanes=lanes, depth=depth)
    if not found:
        raise LeaseLost(f"worker {claiming.worker} has left, or was declared dead")
    may_claim, claiming.offers = found[0][:2]
    if not may_claim:
        # A worker that drains, or whose lease ran out because the database's clock jumped, may still finish its work.
        return False
    groups: dict[tuple[str, str, str], Group] = {}
    for _, _, lane, namespace, app, requirements, listed in found:
        if lane is None:
            continue
        key = (namespace, app, requirements)
        group = groups.get(key)
        if group is None:
            group = groups[key] = Group(*key, starts, depth)
        group.lanes.append(lane)
        if listed and (ranks := _ranks(listed)):
            group.heads[lane] = Head(ranks, len(ranks) >= depth)
    claiming.groups = list(groups.values())
    for gate in LANE_GATES:
        for group in claiming.groups:
            gate(claiming, group)
    return True


def _depth(slots: int, lanes: int) -> int:
    """A little more than a lane's share of the slots."""
    return 1 + math.ceil(1.25 * slots / lanes)


def _few(slots: int) -> int:
    """The number of lanes that a claim takes from if it may choose.

    Rows of one job lie together in `ready`, rows that were enqueued together lie together in every other table. A few
    rows from each of a few lanes change the fewest pages.
    """
    return math.ceil(math.sqrt(slots))


def _merged(groups: Sequence[Group]) -> list[Group]:
    """Joins all groups that are bounded only by the slots, and splits groups with `choose` into single lanes."""
    if len(groups) == 1 and groups[0].room is None and groups[0].choose is None:
        return [groups[0]]
    free: Group | None = None
    merged: list[Group] = []
    for group in groups:
        if group.choose is not None:
            merged += [group.part([lane]) for lane in group.heads]
        elif group.room is not None:
            merged.append(group)
        elif free is None:
            free = group.part(group.heads)
        else:
            free.heads |= group.heads
    return merged if free is None else [free, *merged]


class _Taking:
    """Takes rows piece by piece, each piece from the group with the lowest head."""

    def __init__(self, claiming: Claiming) -> None:
        self._claiming = claiming
        self._tx = claiming.tx
        self._waiting: list[Group] = []
        self.reached: dict[int, tuple[int, str]] = {}
        """The last row that was taken from each lane. A lane with `choose` is not here: its rows are not in order."""
        self.emptied: list[int] = []
        """The lanes whose ready rows were all taken."""
        self.has_more = False

    def at_once(self, starts: Starts, most: int) -> list[Claim]:
        """Takes rows within the slack from the few lanes with the lowest starts, or from a single lane without a limit,
        and reads no heads first.

        The statement takes only from lanes without requirements, which all lane gates let through.
        """
        lanes, ceiling = claim_order.near(starts, _few(most))
        if not lanes or starts[lanes[0]][0] == FIRST_RANK:
            return []
        bounds = {"highest": ceiling, "depth": _depth(most, len(lanes)), "most": most}
        behind = [(lane, *starts[lane]) for lane in lanes]
        kept = self._kept("claim_at_once", lanes=behind, offers=PLAIN_OFFERS, **bounds)
        if len(starts) == 1 and 0 < len(kept) < most and not self.has_more:
            self.emptied += lanes  # The only lane, without a limit on ranks, had fewer rows than were wanted.
        return kept

    def from_groups(self, slots: int) -> list[Claim]:
        self._waiting = _merged([group for group in self._claiming.groups if group.heads and group.room != 0])
        taken: list[Claim] = []
        pieces = 0
        while self._waiting and len(taken) < slots:
            if pieces >= MOST_PIECES and taken:
                self.has_more = True
                break
            taken += self._piece(slots - len(taken))
            pieces += 1
        return taken

    def _piece(self, most: int) -> list[Claim]:
        """Takes from the group with the lowest head, up to the head of the next group, within the worker's room."""
        group = min(self._waiting, key=attrgetter("head"))
        self._waiting.remove(group)
        if group.permit is not None and not group.permit():
            return []
        ceiling = min((other.head for other in self._waiting), default=LAST_RANK - SLACK) + SLACK
        if group.room is not None:
            most = min(most, group.room)
        if group.choose is not None:
            (lane,) = group.heads
            kept = self._bounded(_complete(self._tx, group.choose(lane, ceiling, most)))
        else:
            kept = self._in_order(group, ceiling, most)
        if kept and group.room is not None:
            # Groups that may share resources with this one must pass the gates again: the next claim takes from them.
            others = [other for other in self._waiting if other.room is None or other is group]
            self.has_more = self.has_more or len(others) < len(self._waiting)
            self._waiting = others
        return kept

    def _in_order(self, group: Group, ceiling: int, most: int) -> list[Claim]:
        found = claim_order.reach(group.heads, most, ceiling)
        while found.unread:
            self._read(group, found.unread, most)
            if not group.heads:
                return []
            found = claim_order.reach(group.heads, most, ceiling)
        # From the lane with the lowest head first, up to the highest rank of each.
        order = sorted((group.heads[lane].ranks[0], lane) for lane in found.highest)
        lanes = [(lane, *group.starts[lane], found.highest[lane]) for _, lane in order]
        kept = self._kept("claim", lanes=lanes, most=most)
        if len(kept) < most and not self.has_more:
            self._read_beyond(group, found.highest, most - len(kept))
        return kept

    def _kept(self, statement: str, **params: Any) -> list[Claim]:
        rows = self._tx.records(statement, tuple, worker=self._claiming.worker, **params)
        kept = self._bounded(_complete(self._tx, rows))
        last = {claim.lane: claim for claim in kept}
        self.reached |= {lane: (claim.rank, claim.id) for lane, claim in last.items()}
        return kept

    def _bounded(self, found: list[Claim]) -> list[Claim]:
        """Keeps the first claims, at least one, whose arguments fit into `MOST_BYTES`; the others return to `ready`."""
        if len(found) < 2 or sum(map(len, map(_arguments, found))) <= MOST_BYTES:
            return found
        totals = accumulate(map(len, map(_arguments, found)))
        count = max(1, sum(total <= MOST_BYTES for total in totals))
        self._tx.run("unclaim", ids=[claim.id for claim in found[count:]])
        self._waiting.clear()
        self.has_more = True
        return found[:count]

    def _read_beyond(self, group: Group, highest: dict[int, int], most: int) -> None:
        """Puts the group back, with the rows of these lanes beyond their highest rank and all rows of the others."""
        unread = []
        for lane, rank in highest.items():
            beyond = claim_order.beyond(group.heads.pop(lane), rank)
            if beyond is not None and rank < LAST_RANK:
                group.heads[lane] = beyond
                if not beyond.ranks:
                    unread.append(lane)
        group.starts = {**group.starts, **{lane: (rank, LAST_ID) for lane, rank in highest.items()}}
        if group.room is not None:
            group.room = most
        self._read(group, unread, most)
        self.emptied += [lane for lane in highest if lane not in group.heads]
        if group.heads:
            self._waiting.append(group)

    def _read(self, group: Group, lanes: Sequence[int], most: int) -> None:
        """Reads more ranks of these lanes: probably enough, and never more than the claim could take."""
        if not lanes:
            return
        group.depth = min(most, max(DEEPER * group.depth, math.ceil(2 * most / len(group.heads))))
        starts = [(lane, *group.starts[lane]) for lane in lanes]
        found: dict[int, str | None] = dict(self._tx.rows("lane_ranks", lanes=starts, depth=group.depth))
        for lane in lanes:
            if ranks := _ranks(found[lane] or "[]"):
                group.heads[lane] = Head(ranks, len(ranks) >= group.depth)
            else:
                del group.heads[lane]


def _complete(tx: Tx, taken: list[Row]) -> list[Claim]:
    """The rows that were taken (with the fields of `Taken`) as claims, with their executions, in the order of ranks."""
    if not taken:
        return []
    ids = [row[0] for row in taken]
    tasks = {task[0]: task for task in tx.records("claimed", tuple, ids=ids, lowest=min(ids), highest=max(ids))}
    taken.sort(key=_place)
    claims = [Claim(*row, *tasks[row[0]][1:]) for row in taken]
    kept = notes.kept(tx, [claim.id for claim in claims if claim.fence > 1])
    if not kept:
        return claims
    return [
        replace(claim, checkpoint=known.checkpoint, is_suspect=known.suspicion >= ALONE)
        if (known := kept.get(claim.id))
        else claim
        for claim in claims
    ]
