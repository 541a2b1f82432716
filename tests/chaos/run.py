"""One chaos run: start everything, let the storm rage, let it come to rest, compare the witnesses, measure."""

from __future__ import annotations

import random
import socket
import time
from collections import Counter, defaultdict
from pathlib import Path

import msgspec

from rota import App
from tests.chaos import check, measures
from tests.chaos.check import Story
from tests.chaos.designs import ELSEWHERE
from tests.chaos.enqueuer import EVEN, PACE, SEED
from tests.chaos.receiver import PORT
from tests.chaos.report import Plan, Report
from tests.chaos.storm import Fault, Storm
from tests.kill import effects, evidence, journal
from tests.kill.check import entries
from tests.kill.course import FORBIDDEN, Course
from tests.kill.crew import Crew, now
from tests.kill.databases import database, leftovers
from tests.kill.effects import Answer
from tests.kill.enqueuer import journal_path
from tests.kill.fleet import Fleet
from tests.kill.journal import Word
from tests.kill.report import MOST_PROBLEMS, shortened

REST_S = 240.0
CONCURRENCY = 8
OF_CONNECTIONS = "out of reach"
"""What a worker may say of a database that ends its connections."""


class Run:
    """The steps in order; what goes wrong on the way is gathered, not raised."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan = plan
        self._folder = folder

    def run(self) -> Report:
        plan = self._plan
        with database(plan.database, self._folder) as url, self._fleet(url) as fleet:
            chance = random.Random(plan.seed)
            crew = Crew(fleet, chance, plan.lease_s, plan.supervisors, plan.enqueuers)
            storm = Storm(crew, chance, url, fleet.mark, lease_s=plan.lease_s, cheap=plan.cheap)
            forbidden = [words for words in FORBIDDEN if plan.database == "sqlite" or words != OF_CONNECTIONS]
            course = Course(self._folder, crew, storm.tend, stall_s=3.0, rest_s=REST_S, forbidden=forbidden)
            course.begin()
            begun_at = now()
            self._rage(storm, course)
            ended_at = now()
            _hush(url)
            course.rest(url, plan.supervisors * plan.children)
            rest_s = (now() - ended_at) / 1e6
            course.drain()
            storm.close()
            story = self._story(url, storm)
            problems = course.problems + crew.problems + course.logged() + leftovers(url)
            return self._report(story, storm, (begun_at, ended_at), rest_s, problems)

    def _fleet(self, url: str) -> Fleet:
        plan = self._plan
        fleet = Fleet(
            self._folder,
            url,
            room="tests.chaos",
            processes=plan.children,
            concurrency=CONCURRENCY,
            lease_s=plan.lease_s,
            grace_s=10.0,
        )
        wishes = {PACE: plan.pace_s, SEED: plan.seed, EVEN: plan.even, PORT: _free_port()}
        fleet.environment |= {name: str(value) for name, value in wishes.items()}
        return fleet

    def _rage(self, storm: Storm, course: Course) -> None:
        """Keeps to a rate on average, for the time that was asked for."""
        plan = self._plan
        started_at = time.monotonic()
        while time.monotonic() - started_at < plan.minutes * 60:
            if len(storm.crew.problems) >= MOST_PROBLEMS:
                course.problems.append("too much went wrong by itself to go on")
                return
            storm.act()
            course.wait(min(started_at + storm.dealt / plan.blows_per_s, started_at + plan.minutes * 60))
        if storm.count < plan.kills:
            course.problems.append(f"{storm.count} kills are fewer than {plan.kills}")

    def _story(self, url: str, storm: Storm) -> Story:
        crew = storm.crew
        journals = [journal.read(journal_path(self._folder, enqueuer.name)) for enqueuer in crew.enqueuers]
        story = Story(
            journals,
            effects.recorded(self._folder),
            evidence.read(url),
            ELSEWHERE,
            deaths=crew.deaths,
            pauses=crew.pauses,
            blackouts=storm.blackouts,
        )
        # To be read in the folder afterwards, when the database is gone.
        (self._folder / "story.json").write_bytes(msgspec.json.encode(story))
        return story

    def _report(self, seen: Story, storm: Storm, raged: tuple[int, int], rest_s: float, problems: list[str]) -> Report:
        plan, crew, histories = self._plan, storm.crew, seen.database.attempts
        answers = Counter(recorded.answer for recorded in seen.effects)
        broken = check.problems(seen)
        success, killed_by_us = measures.success(seen)
        available, apart = measures.availability(seen, *raged)
        return Report(
            database=plan.database,
            seed=plan.seed,
            lease_s=plan.lease_s,
            storm_s=round((raged[1] - raged[0]) / 1e6, 1),
            rest_s=round(rest_s, 1),
            kills=storm.count,
            kills_by_kind={fault.value: crew.kills[fault] for fault in Fault if fault in crew.kills},
            others_by_kind={fault.value: crew.stops[fault] for fault in Fault if fault in crew.stops},
            grandchildren=storm.orphans.seen,
            executions=len(seen.database.executions),
            refused=sum(entry.word is Word.REFUSED for entry in entries(seen)),
            ends=_ends(seen),
            attempts=sum(map(len, histories.values())),
            lost=sum(one.status == "lost" for history in histories.values() for one in history),
            ticks=_ticks(seen),
            effects=len(seen.effects),
            charged=answers[Answer.DONE],
            charged_already=answers[Answer.ALREADY],
            stale_refused=answers[Answer.STALE],
            violations=check.counted(broken),
            success=success,
            killed_by_us=killed_by_us,
            availability=available,
            availability_apart=apart,
            recovery=measures.recoveries(seen),
            restart=measures.restarts(seen),
            notice=measures.notices(seen),
            told=measures.tellings(seen, Word.CANCELLED),
            told_since_asked=measures.tellings(seen, Word.CANCEL),
            overshoot=measures.overshoots(seen),
            problems=shortened(problems + broken),
        )


def _ends(seen: Story) -> dict[str, dict[str, int]]:
    """By job, how many executions came to which end."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for execution in seen.database.executions:
        history = seen.database.attempts.get(execution.id)
        end = f"{history[-1].status}/{history[-1].reason}" if history else "nothing"
        found[execution.job][end] += 1
    return {job: dict(ends.most_common()) for job, ends in sorted(found.items())}


def _ticks(seen: Story) -> dict[str, int]:
    found: Counter[str] = Counter()
    for tick in seen.database.ticks:
        found[tick.outcome] += tick.count
    return dict(found.most_common())


def _hush(url: str) -> None:
    """No more ticks: no worker would run one that came between the rest and the drain."""
    app = App("chaos", url=url)
    for schedule in app.schedules():
        schedule.pause("the storm is over")
    app.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
