"""A virtual year of a hundred schedules: several schedulers that all lead, crash, and are away for minutes or days.

Everything follows from a seed. What the schedules should have done is not asked of the product, but of the oracle for
cron expressions and of plain arithmetic.
"""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import msgspec

from rota.clock import ManualClock
from rota.domain import schedule as schedules
from rota.domain.claim import Claim
from rota.domain.outcome import Succeeded
from rota.domain.schedule import CatchUp, Overlap, Spec
from rota.domain.ticks import Gap, Repeat
from rota.domain.trigger import At, Cron, Every
from rota.ids import IdSource
from rota.ops import after_end, backfill, finish, firing, schedule, upkeep
from rota.store.sqlite.store import SqliteStore
from tests.cron.oracle import Oracle
from tests.schedules.timetable import DAY_S, SECOND, START, Timetable
from tests.support.world import APP, FAILED, LEASE_S, NAMESPACE, THREE_TRIES, Boom, World, boom_after

HOUR_S = 3600
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "America/Sao_Paulo"]
REAL_TIME = [("0 * * * *", "Europe/Berlin"), ("15 */6 * * *", "America/New_York"), ("*/30 2 * * *", "Europe/London")]
TIMES_OF_DAY = [
    "30 2 * * *",
    "0 0 * * *",
    "0 9 * * 1-5",
    "15 1,2,3 * * *",
    "0 12 L * *",
    "0 6 15W * *",
    "30 18 * * 5#2",
    "0 3 1,15 * MON",
    "0 0 29 2 *",
    "59 23 31 12 *",
    "0 2,14 * * SUN",
]


class Supervisor(msgspec.Struct):
    """A scheduler: its ids, which shards it believes to have, and until when it is away."""

    ids: IdSource
    shards: list[tuple[int, int]]
    away_until: int = 0


class Year:
    """The world, its schedules, and what happens to them."""

    def __init__(self, seed: int, days: int = 365, count: int = 100) -> None:
        self.chance = random.Random(seed)
        self.clock = ManualClock(seed=seed)
        self.end = START + days * DAY_S * SECOND
        self.world = World(SqliteStore("sqlite://:memory:", self.clock, inline=True), self.clock)
        self.table = Timetable(self.world)
        self.specs = {f"s{number:03}": self._spec(number) for number in range(count)}
        self.table.declare(**self.specs)
        self.supervisors = [Supervisor(IdSource(self.clock), schedules.share(3, [place])) for place in range(3)]
        self.ticks_told: dict[str, int | None] = {}
        self.crashes = 0
        self._worker = self.world.join(lease_s=10_000.0 * DAY_S)
        self._running: list[Claim] = []
        self._paused: set[str] = set()

    # The schedules.

    def _spec(self, number: int) -> Spec:
        chance = self.chance
        bounded = chance.random() < 0.2
        return Spec(
            job=chance.choice(["send", "receive", "count"]),
            trigger=self._trigger(number),
            tz=chance.choice(ZONES),
            start=START + chance.randrange(30 * DAY_S) * SECOND if bounded else None,
            end=self.end - chance.randrange(30 * DAY_S) * SECOND if bounded else None,
            excluded=("2026-03-29", "2026-05-01", "2026-12-24") if chance.random() < 0.2 else (),
            catch_up=chance.choice(list(CatchUp)),
            catch_up_most=chance.choice([1, 5, 100]),
            window_s=chance.choice([None, 600.0, 7200.0, 3.0 * DAY_S]),
            overlap=chance.choice(list(Overlap)),
            jitter_s=chance.choice([0.0, 0.0, 300.0]),
        )

    def _trigger(self, number: int) -> Cron | Every | At:
        chance = self.chance
        if number < len(REAL_TIME):
            return Cron(*REAL_TIME[number])
        if number % 10 < 6:
            gap, repeat = chance.choice(list(Gap)), chance.choice(list(Repeat))
            return Cron(chance.choice(TIMES_OF_DAY), chance.choice(ZONES), gap, repeat)
        if number % 10 < 9:
            period = chance.choice([2 * HOUR_S, 4 * HOUR_S, 50_000, DAY_S, 100_000, 7 * DAY_S]) * SECOND
            return Every(period, chance.choice([0, 0, 0, chance.randrange(period)]))
        span = (self.end - START) // SECOND
        return At(tuple(sorted({START + chance.randrange(1, span) * SECOND for _ in range(20)})))

    # What happens.

    def run(self) -> None:
        while self.clock.now() < self.end:
            for _ in range(self.chance.randint(5, 30)):
                self._step()
            self._be_away()
        self._settle()

    def _step(self) -> None:
        """Moves to the next tick, or a little later; every supervisor that is not away checks."""
        now = self.clock.now()
        due = self.world.store.read(upkeep.look, LEASE_S).next_tick_at or now + HOUR_S * SECOND
        self._set(max(now + SECOND // 3, due + self.chance.choice([0, 0, 0, SECOND // 2, 20 * SECOND])))
        for supervisor in self.chance.sample(self.supervisors, len(self.supervisors)):
            if supervisor.away_until <= self.clock.now():
                self._look(supervisor)
        if self.chance.random() < 0.3:
            self._work()
        if self.chance.random() < 0.02:
            self._meddle()

    def _look(self, supervisor: Supervisor) -> None:
        match self.chance.randrange(40):
            case 0:
                supervisor.away_until = self.clock.now() + self.chance.randrange(60, 2 * DAY_S) * SECOND
            case 1:
                self._crash(supervisor)
            case 2:
                supervisor.shards = schedules.share(self.chance.randint(0, 3), [self.chance.randrange(3)])
            case 3:
                supervisor.shards = list(upkeep.ALL_SHARDS)
            case _:
                pass
        self.world.store.transact(firing.fire, supervisor.shards, supervisor.ids.many)

    def _crash(self, supervisor: Supervisor) -> None:
        """Before its commit, or after it and before the answer; the supervisor restarts without any state."""
        if self.chance.random() < 0.5:
            try:
                self.world.store.transact(boom_after, firing.fire, supervisor.shards, supervisor.ids.many)
            except Boom:
                self.crashes += 1
        else:
            self.world.store.transact(firing.fire, supervisor.shards, supervisor.ids.many)
            self.crashes += 1
        supervisor.shards = list(upkeep.ALL_SHARDS)

    def _be_away(self) -> None:
        """No supervisor runs for minutes, hours or days; sometimes the clock is set back instead."""
        if self.chance.random() < 0.1:
            return self._set(self.clock.now() - self.chance.randrange(1, 2 * HOUR_S) * SECOND)
        longest = self.chance.choice([600, 600, 4 * HOUR_S, 4 * HOUR_S, DAY_S, 2 * DAY_S])
        return self._set(self.clock.now() + self.chance.randrange(60, longest + 60) * SECOND)

    def _set(self, instant: int) -> None:
        self.clock.set(min(instant, self.end))

    def _work(self) -> None:
        """Some running executions end in one way or another, and others start."""
        store = self.world.store
        store.transact(upkeep.promote)
        begun = self.world.claim(self._worker)
        self.ticks_told |= {one.id: one.tick for one in begun}
        self._running += begun
        left, reports = [], []
        for one in self._running:
            match self.chance.randrange(10):
                case 0:
                    left.append(one)
                case 1:
                    self.world.set_rules(one.id, THREE_TRIES)
                    reports.append(finish.Finished(one.id, one.fence, FAILED))
                case _:
                    reports.append(finish.Finished(one.id, one.fence, Succeeded("1")))
        self._running = left
        store.transact(finish.finish, reports)
        store.transact(after_end.wake_forgotten)

    def _meddle(self) -> None:
        """An owner pauses, resumes, changes or backfills one of the schedules."""
        name = self.chance.choice(list(self.specs))
        match self.chance.randrange(4):
            case 0 if name not in self._paused:
                self._paused.add(name)
                self.table.pause(name)
            case 1:
                self._resume()
            case 2:
                self.specs[name] = msgspec.structs.replace(self.specs[name], priority=self.chance.randrange(9))
                self.table.declare(**self.specs)
            case _:
                high = self.clock.now() - self.chance.randrange(DAY_S) * SECOND
                low = max(START, high - self.chance.randrange(5 * DAY_S) * SECOND)
                args: tuple[Any, ...] = (NAMESPACE, APP, name, low, high, "test", self.supervisors[0].ids.many)
                self.world.store.transact(backfill.backfill, *args)

    def _resume(self) -> None:
        for name in sorted(self._paused):
            self.world.store.transact(schedule.resume, NAMESPACE, APP, name, "test")
        self._paused.clear()

    def _settle(self) -> None:
        self._set(self.end)
        self._resume()
        for _ in range(3):
            while self.table.fire().schedules:
                pass
            self._work()


# What should have happened.


def nominal(spec: Spec, until: int, gap: Gap = Gap.NEXT) -> list[int]:
    """Every tick of the schedule up to `until`, without a line of the product."""
    low = START + 1 if spec.start is None else max(START + 1, spec.start)
    high = until if spec.end is None else min(until, spec.end)
    match spec.trigger:
        case Cron(expression=expression, tz=tz, repeat=repeat):
            found = _cron(expression, tz, (until - START) // SECOND, gap.value, repeat.value)
        case Every(period=period, phase=phase):
            found = list(range(phase + (START - phase) // period * period, until + 1, period))
        case At(instants=instants):
            found = list(instants)
        case _:
            raise AssertionError("a fixed delay has no ticks of its own")
    return [at for at in found if low <= at <= high]


@cache
def _cron(expression: str, tz: str, seconds: int, gap: str, overlap: str) -> list[int]:
    start = START // SECOND
    found = Oracle(expression).instants(tz, start, start + seconds + 1, gap, overlap)
    return [instant * SECOND for instant in found]
