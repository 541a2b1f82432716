"""One run: start everything, kill for a while, let it come to rest, compare the witnesses."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path

import msgspec

from tests.kill import check, effects, evidence, journal
from tests.kill.check import Witnesses
from tests.kill.course import Course
from tests.kill.crew import Crew, Death
from tests.kill.databases import database, leftovers
from tests.kill.effects import Answer
from tests.kill.enqueuer import journal_path
from tests.kill.fleet import Fleet
from tests.kill.killer import DECK, Killer, Kind
from tests.kill.report import MOST_PROBLEMS, Plan, Report, shortened, too_little

STALL_S = 1.5


class Run:
    """The steps in order; what goes wrong on the way is gathered, not raised."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan = plan
        self._folder = folder

    def run(self) -> Report:
        plan = self._plan
        with (
            database(plan.database, self._folder) as url,
            Fleet(self._folder, url, processes=plan.children, lease_s=plan.lease_s, poll_s=0.2, grace_s=10.0) as fleet,
        ):
            # All programs at once, on a database that is empty or does not exist: the first one creates it.
            chance = random.Random(plan.seed)
            crew = Crew(fleet, chance, plan.lease_s, plan.supervisors, plan.enqueuers)
            killer = Killer(crew, chance)
            course = Course(self._folder, crew, crew.tend, stall_s=STALL_S + 3 * plan.lease_s)
            course.begin()
            started_at = time.monotonic()
            self._kill(killer, course)
            killed_at = time.monotonic()
            course.rest(url, plan.supervisors * plan.children)
            rest_s = time.monotonic() - killed_at
            course.drain()
            problems = course.problems + crew.problems + course.logged() + leftovers(url)
            return self._report(url, killer, killed_at - started_at, rest_s, problems)

    def _kill(self, killer: Killer, course: Course) -> None:
        """Keeps to a rate on average: after a blow against many the others have time to come back."""
        plan = self._plan
        started_at = time.monotonic()
        while killer.count < plan.kills or not _has_seen_all(killer):
            if time.monotonic() - started_at > plan.minutes * 60:
                course.problems.append(f"only {killer.count} kills in {plan.minutes:g} minutes")
                return
            if len(killer.crew.problems) >= MOST_PROBLEMS:
                course.problems.append("too much went wrong by itself to go on")
                return
            killer.act()
            course.wait(started_at + killer.count / plan.kills_per_s)

    def _report(self, url: str, killer: Killer, killing_s: float, rest_s: float, problems: list[str]) -> Report:
        plan = self._plan
        journals = [journal.read(journal_path(self._folder, enqueuer.name)) for enqueuer in killer.crew.enqueuers]
        seen = Witnesses(journals, effects.recorded(self._folder), evidence.read(url))
        ends = Counter(f"{history[-1].status}: {history[-1].reason}" for history in seen.database.attempts.values())
        answers = Counter(recorded.answer for recorded in seen.effects)
        noticed, restarted = _delays(seen, killer.crew.deaths)
        report = Report(
            database=plan.database,
            seed=plan.seed,
            kills=killer.count,
            kills_by_kind={kind.value: killer.crew.kills[kind] for kind in Kind if kind in killer.crew.kills},
            stops_by_kind={kind.value: killer.crew.stops[kind] for kind in Kind if kind in killer.crew.stops},
            killing_s=round(killing_s, 1),
            rest_s=round(rest_s, 1),
            accepted=len({entry.id for entries in journals for entry in entries if entry.id is not None}),
            ends=dict(ends.most_common()),
            lost_attempts=sum(one.status == "lost" for history in seen.database.attempts.values() for one in history),
            charged=answers[Answer.DONE],
            charged_already=answers[Answer.ALREADY],
            stale_refused=answers[Answer.STALE],
            unfenced_doubles=check.unfenced_doubles(seen),
            longest_to_notice_s=max(noticed, default=0.0),
            longest_to_restart_s=max(restarted, default=0.0),
            median_to_restart_s=sorted(restarted)[len(restarted) // 2] if restarted else 0.0,
            problems=[],
        )
        found = problems + check.problems(seen) + too_little(report, plan)
        return msgspec.structs.replace(report, problems=shortened(found))


def _has_seen_all(killer: Killer) -> bool:
    return all(killer.crew.kills[kind] or killer.crew.stops[kind] for kind in DECK)


def _delays(seen: Witnesses, deaths: list[Death]) -> tuple[list[float], list[float]]:
    """Seconds from a process's death to the end of the attempts it held, and to their next start."""
    by_pid: dict[int, list[int]] = {}
    for death in deaths:
        by_pid.setdefault(death.pid, []).append(death.at)
    noticed, restarted = [], []
    for history in seen.database.attempts.values():
        for place, attempt in enumerate(history):
            killed = [at for at in by_pid.get(attempt.pid or 0, []) if attempt.started_at <= at <= attempt.finished_at]
            if killed and attempt.status == "lost":
                noticed.append((attempt.finished_at - killed[0]) / 1e6)
                restarted += [(after.started_at - killed[0]) / 1e6 for after in history[place + 1 : place + 2]]
    return noticed, restarted
