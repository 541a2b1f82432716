"""Claiming: ready rows become running rows of one worker, each with a new fence."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter, itemgetter

import msgspec
from msgspec.structs import replace

from rota.domain import breaker, requirement
from rota.domain.claim import Claim
from rota.domain.errors import LeaseLost
from rota.domain.outcome import Expired
from rota.domain.requirement import UNBOUNDED, Offers, Room
from rota.domain.suspicion import ALONE
from rota.ids import FIRST_ID
from rota.ops import breaking, finish, notes, pausing, preferring
from rota.store.port import Row, Tx

MICROSECONDS = 1_000_000
STARVES_S = 60
PLAIN_OFFERS = requirement.encode(Offers())
SLACK = 100_000
"""Microseconds of rank by which one lane may run ahead of another, so that a claim takes few, long pieces."""
MOST_PIECES = 16
MOST_BYTES = 32 * 1024 * 1024
_place, _arguments = itemgetter(2, 0), attrgetter("arguments")
FIRST_RANK, LAST_RANK = -(2**63), 2**63 - 1
Mark = tuple[int, int, str]
"""How far a claimer has come: a lane, and the rank and id of the last row that it took there."""


class Claimed(msgspec.Struct, frozen=True):
    """What a claim brought, the lanes that it looked at, and how far it has come in those that it took from."""

    claims: list[Claim]
    lanes: frozenset[int]
    marks: list[Mark] = []
    others: frozenset[int] = frozenset()
    """Lanes of its queues whose work the worker cannot take, whatever it runs."""
    has_no_room: bool = False
    """Whether something waits that the worker will be able to take when what it runs has ended."""
    has_put_aside: bool = False
    """Whether some of what was taken is of a paused job, and more may come behind it."""


def claim(
    tx: Tx,
    worker: int,
    namespace: str,
    app: str,
    queues: Sequence[str] | None,
    slots: int,
    marks: Sequence[Mark] = (),
    room: Room = UNBOUNDED,
) -> Claimed:
    """Up to `slots` executions, lowest rank first across the app's lanes; nothing for a worker without a live lease.

    Of those that need a process of their own, or are commands, not more than there is `room` for.

    Lanes are read from behind the claimer's `marks`. On PostgreSQL taken rows stay in the index until they are
    vacuumed, and without a mark every claim would wade through those of all claims before it. What came back or was
    committed late is below the mark: a claim without marks finds it.
    """
    served = lanes = _lanes(tx, worker, namespace, app, queues, marks)
    if room != UNBOUNDED:
        lanes = [_within(lane, requirement.within(lane.requirements, room)) for lane in lanes]
    lanes, probing = _guarded(tx, namespace, lanes)
    waiting = {lane.id: lane.head for lane in lanes if lane.head is not None and lane.room != 0}
    _keep_room(tx.now, served, waiting)  # For what lacks amounts, not for what lacks a process or waits for a breaker.
    reached = {lane: (rank, id) for lane, rank, id in marks}
    work = _Round(tx, worker, namespace, app, {lane.id: lane for lane in lanes}, waiting, probing, reached)
    taken: list[Claim] = []
    for _ in range(MOST_PIECES):
        if not waiting or len(taken) >= slots:
            break
        taken += work.piece(slots - len(taken))
    work.close()
    started = pausing.startable(tx, namespace, app, taken) if taken else taken
    claims = _startable(tx, worker, started)
    if work.probes:
        _release(tx, namespace, work.probes, claims)
    return Claimed(
        claims,
        frozenset(lane.id for lane in lanes if lane.fits),
        [(lane, *reached[lane]) for lane in {claim.lane for claim in taken} if lane in reached],
        frozenset(lane.id for lane in lanes if not lane.fits),
        work.left_some or any(lane.fits and lane.room is not None and lane.head is not None for lane in lanes),
        len(started) < len(taken),
    )


class _Lane(msgspec.Struct, frozen=True):
    """One that the worker serves: the lowest rank behind its mark, and how much of it the worker could take."""

    id: int
    head: int | None
    room: int | None
    fits: bool
    requirements: str


def _within(lane: _Lane, most: int | None) -> _Lane:
    return lane if most is None else replace(lane, room=max(0, most if lane.room is None else min(most, lane.room)))


def _keep_room(now: int, lanes: Sequence[_Lane], waiting: dict[int, int]) -> None:
    """What has waited long for more than is free is not overtaken by what needs less of the same."""
    for lane in lanes:
        if lane.fits and lane.room == 0 and lane.head is not None and lane.head < now - STARVES_S * MICROSECONDS:
            for other in lanes:
                behind = waiting.get(other.id, lane.head) > lane.head
                if behind and requirement.compete(lane.requirements, other.requirements):
                    del waiting[other.id]


def _lanes(
    tx: Tx, worker: int, namespace: str, app: str, queues: Sequence[str] | None, marks: Sequence[Mark]
) -> list[_Lane]:
    """Every lane of the worker's queues; nothing if it may not claim."""
    found = tx.rows(
        "claim_heads",
        worker=worker,
        namespace=namespace,
        app=app,
        all_queues=queues is None,
        queues=list(queues or ()),
        marks=list(marks),
        no_rank=FIRST_RANK,
        no_id=FIRST_ID,
    )
    if not found:
        raise LeaseLost(f"worker {worker} is not in the fleet any more")
    # One that drains, or whose lease ran out because the database's clock jumped, may still finish what it runs.
    rows = [row[1:] for row in found if row[0] and row[1] is not None]
    return [_lane(tx, worker, *row) for row in rows]


def _lane(tx: Tx, worker: int, id: int, head: int | None, requirements: str, offers: str) -> _Lane:
    if not requirements and offers == PLAIN_OFFERS:
        return _Lane(id, head, None, True, requirements)
    room = requirement.most(requirements, offers)
    fits = room != 0
    if room and head is not None:
        # It is about amounts, and what the worker runs already has some of them.
        room = requirement.most(requirements, offers, requirement.used(tx.rows("held_in_lanes", worker=worker)))
    return _Lane(id, head, room, fits, requirements)


def _guarded(tx: Tx, namespace: str, lanes: list[_Lane]) -> tuple[list[_Lane], dict[int, list[str]]]:
    """Nothing starts that relies on what is known not to work, but for one that tries, for these breakers."""
    relying = {
        lane.id: names for lane in lanes if lane.head is not None and (names := requirement.breakers(lane.requirements))
    }
    circuits = breaking.open_circuits(tx, namespace) if relying else {}
    if not circuits:
        return lanes, {}
    gates = {id: breaker.gate(names, circuits, tx.now) for id, names in relying.items()}
    rooms = {id: 0 if names is None else 1 for id, names in gates.items() if names != []}
    guarded = [
        replace(lane, room=rooms[lane.id] if lane.room is None else min(lane.room, rooms[lane.id]))
        if lane.id in rooms
        else lane
        for lane in lanes
    ]
    return guarded, {id: names for id, names in gates.items() if names}


class _Round:
    """One claim under way: piece after piece from the lane whose turn it is."""

    def __init__(
        self,
        tx: Tx,
        worker: int,
        namespace: str,
        app: str,
        lanes: dict[int, _Lane],
        waiting: dict[int, int],
        probing: dict[int, list[str]],
        reached: dict[int, tuple[int, str]],
    ) -> None:
        self._tx, self._worker, self._namespace, self._app = tx, worker, namespace, app
        self._lanes, self._waiting, self._probing, self._reached = lanes, waiting, probing, reached
        self._bounded = {lane.id for lane in lanes.values() if lane.room is not None}
        self._keys: list[str] = []
        self.left_some = False
        """Whether something was left for the worker that it prefers."""
        self.probes: dict[int, list[str]] = {}
        """Lanes from which one was to try, and the breakers for which it does."""

    def piece(self, most: int) -> list[Claim]:
        """Takes from the lane with the lowest head, as far as the next lane's head and the worker's room allow."""
        waiting = self._waiting
        lane = self._lanes[min(waiting, key=lambda lane: (waiting[lane], lane))]
        del waiting[lane.id]
        if lane.id in self._probing:
            if not breaking.probe(self._tx, self._namespace, self._probing[lane.id]):
                return []
            self.probes[lane.id] = self._probing[lane.id]
        highest = min(waiting.values(), default=LAST_RANK - SLACK) + SLACK
        if lane.room is not None:
            most = min(most, lane.room)
        preferred = requirement.affinity(lane.requirements)
        if preferred is None:
            found = self._in_order(lane.id, highest, most)
        else:
            found = self._preferred(lane.id, *preferred, highest, most)
        kept = _bounded(found)
        if len(kept) < len(found):
            self._tx.run("unclaim", ids=[claim.id for claim in found[len(kept) :]])
        if kept:
            self._go_on(lane.id, kept, most, marks=preferred is None)
        return kept

    def close(self) -> None:
        if self._keys:
            preferring.keep(self._tx, self._worker, self._namespace, self._app, self._keys)

    def _in_order(self, lane: int, highest: int, most: int) -> list[Claim]:
        rank, id = self._reached.get(lane, (FIRST_RANK, FIRST_ID))
        where = {"lane": lane, "rank": rank, "id": id, "highest": highest}
        return _complete(self._tx, self._tx.records("claim", tuple, worker=self._worker, most=most, **where))

    def _preferred(self, lane: int, argument: str, wait_s: float, highest: int, most: int) -> list[Claim]:
        who = (self._worker, self._namespace, self._app)
        taken, keys, left_some = preferring.take(self._tx, *who, lane, argument, wait_s, highest, most)
        self._keys += keys
        self.left_some = self.left_some or left_some
        return _complete(self._tx, taken)

    def _go_on(self, lane: int, kept: list[Claim], most: int, *, marks: bool) -> None:
        """Where the next piece, and the next claim, go on. What is left for others stays behind no mark."""
        rank, id = kept[-1].rank, kept[-1].id
        if marks:
            self._reached[lane] = (rank, id)
        if lane in self._bounded:
            # What shares these amounts is looked at anew by the next claim.
            for other in self._bounded:
                self._waiting.pop(other, None)
        elif marks and self._waiting and len(kept) < most:
            rows = self._tx.rows("lane_head", lane=lane, rank=rank, id=id)
            self._waiting.update((row[0], row[1]) for row in rows)


def _complete(tx: Tx, taken: list[Row]) -> list[Claim]:
    """What was taken, as rows with the fields of `Taken`, with what there is to run, in the order of the lane."""
    if not taken:
        return []
    ids = [row[0] for row in taken]
    tasks = {task[0]: task for task in tx.records("claimed", tuple, ids=ids, lowest=min(ids), highest=max(ids))}
    taken.sort(key=_place)
    claims = [Claim(*row, *tasks[row[0]][1:]) for row in taken]
    again = [claim.id for claim in claims if claim.fence > 1]
    return _restored(claims, notes.kept(tx, again)) if again else claims


def _restored(claims: list[Claim], kept: dict[str, notes.Kept]) -> list[Claim]:
    """With what earlier attempts have kept for these, and whether they should run alone."""
    return [
        replace(claim, checkpoint=known.checkpoint, is_suspect=known.suspicion >= ALONE)
        if (known := kept.get(claim.id))
        else claim
        for claim in claims
    ]


def _bounded(claims: list[Claim]) -> list[Claim]:
    """As many from the front as can be handed over in one piece; one at least, however large it is."""
    if sum(map(len, map(_arguments, claims))) <= MOST_BYTES:
        return claims
    total = 0
    for count, claim in enumerate(claims):
        total += len(claim.arguments)
        if count and total > MOST_BYTES:
            return claims[:count]
    return claims


def _startable(tx: Tx, worker: int, taken: list[Claim]) -> list[Claim]:
    """Without those whose start deadline passed while they waited: they end as skipped and never start."""
    late = [claim for claim in taken if claim.deadline is not None and _is_late(claim)]
    if not late:
        return taken
    finish.settle(tx, [(claim.held_by(worker), finish.Finished(claim.id, claim.fence, Expired())) for claim in late])
    gone = {claim.id for claim in late}
    return [claim for claim in taken if claim.id not in gone]


def _release(tx: Tx, namespace: str, probes: dict[int, list[str]], started: list[Claim]) -> None:
    """Who was to try may be of a paused job, or too late, or somebody else's by now."""
    tried = {claim.lane for claim in started}
    breaking.release(tx, namespace, sorted({name for lane in probes.keys() - tried for name in probes[lane]}))


def _is_late(claim: Claim) -> bool:
    """Only a first start can be too late: what has started before is past its deadline by right."""
    never_started = claim.first_start_at == claim.started_at
    return never_started and claim.deadline is not None and claim.deadline < claim.started_at
