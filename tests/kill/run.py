"""One run: start everything, kill for a while, let it come to rest, compare the witnesses."""

from __future__ import annotations

import contextlib
import random
import signal
import time
from collections import Counter
from pathlib import Path

import msgspec

from tests.kill import check, effects, evidence, journal
from tests.kill.check import Witnesses
from tests.kill.databases import database, leftovers
from tests.kill.effects import Answer
from tests.kill.enqueuer import ENOUGH, journal_path
from tests.kill.fleet import START_S, Fleet
from tests.kill.killer import DECK, Death, Killer, Kind
from tests.kill.processes import POLL_S, wait_until
from tests.kill.report import MOST_PROBLEMS, Plan, Report, shortened, too_little

STALL_S = 1.5
REST_S = 90.0
DRAIN_S = 60.0
FORBIDDEN = ("Traceback", "database is locked", "out of reach")


class Run:
    """The steps in order; what goes wrong on the way is gathered, not raised."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan = plan
        self._folder = folder
        self._problems: list[str] = []

    def run(self) -> Report:
        plan = self._plan
        settings = {"lease_s": plan.lease_s, "poll_s": 0.2, "grace_s": 10.0}
        with (
            database(plan.database, self._folder) as url,
            Fleet(self._folder, url, processes=plan.children, concurrency=4, **settings) as fleet,
        ):
            fleet.receiver()
            # Everybody at once, on a database that is empty or not even there: the first to come makes it.
            chance = random.Random(plan.seed)
            killer = Killer(fleet, chance, plan.lease_s, plan.supervisors, plan.enqueuers)
            self._begin(killer)
            started_at = time.monotonic()
            self._kill(killer)
            killed_at = time.monotonic()
            self._rest(killer, fleet)
            rest_s = time.monotonic() - killed_at
            self._drain(killer)
            self._problems += killer.problems + self._logged() + leftovers(url)
            return self._report(url, killer, killed_at - started_at, rest_s)

    def _begin(self, killer: Killer) -> None:
        def has_begun() -> bool:
            killer.tend()
            return self._progress() > 0 or bool(killer.problems)

        wait_until(has_begun, START_S, "the first effect")
        if killer.problems:
            raise RuntimeError(f"the fleet does not start: {killer.problems}, {self._logged()}")

    def _kill(self, killer: Killer) -> None:
        """Keeps to a rate on average: after a blow against many the others have time to come back."""
        plan = self._plan
        started_at = time.monotonic()
        while killer.count < plan.kills or not _has_seen_all(killer):
            if time.monotonic() - started_at > plan.minutes * 60:
                self._problems.append(f"only {killer.count} kills in {plan.minutes:g} minutes")
                return
            if len(killer.problems) >= MOST_PROBLEMS:
                self._problems.append("too much went wrong by itself to go on")
                return
            killer.act()
            next_at = started_at + killer.count / plan.kills_per_s
            self._tend(killer, next_at)

    def _tend(self, killer: Killer, until: float) -> None:
        """Waits for the next blow, and for signs of life: killing a fleet that has not come back tests nothing."""
        before, since = self._progress(), time.monotonic()
        while time.monotonic() < until or (
            self._progress() == before and time.monotonic() - since < STALL_S + 3 * self._plan.lease_s
        ):
            killer.tend()
            time.sleep(POLL_S)  # sleep: between two looks at other processes

    def _rest(self, killer: Killer, fleet: Fleet) -> None:
        killer.rest()
        (self._folder / ENOUGH).touch()
        for enqueuer in killer.enqueuers:
            with contextlib.suppress(Exception):
                enqueuer.wait(REST_S)
            if enqueuer.code() != 0:
                self._problems.append(f"{enqueuer.name} ended with exit code {enqueuer.code()}")
        workers = self._plan.supervisors * self._plan.children
        try:
            wait_until(lambda: evidence.is_quiet(fleet.url, workers), REST_S, "every execution to end")
        except TimeoutError as error:
            self._problems.append(str(error))

    def _drain(self, killer: Killer) -> None:
        for supervisor in killer.supervisors:
            supervisor.process.signal(signal.SIGTERM)
        for supervisor in killer.supervisors:
            with contextlib.suppress(Exception):
                supervisor.wait(DRAIN_S)
            if supervisor.code() != 0:
                self._problems.append(f"{supervisor.name} was drained and ended with {supervisor.code()}")

    def _progress(self) -> int:
        return (self._folder / effects.FILE).stat().st_size

    def _logged(self) -> list[str]:
        """Being killed is no reason to complain: what the survivors wrote must not contain a surprise."""
        return [
            f"{log.name}: {line.strip()[:300]}"
            for log in sorted(self._folder.glob("*.log"))
            for line in log.read_text(errors="replace").splitlines()
            if any(word in line for word in FORBIDDEN)
        ]

    def _report(self, url: str, killer: Killer, killing_s: float, rest_s: float) -> Report:
        plan = self._plan
        journals = [journal.read(journal_path(self._folder, enqueuer.name)) for enqueuer in killer.enqueuers]
        seen = Witnesses(journals, effects.recorded(self._folder), evidence.read(url))
        ends = Counter(f"{history[-1].status}: {history[-1].reason}" for history in seen.database.attempts.values())
        answers = Counter(recorded.answer for recorded in seen.effects)
        noticed, restarted = _delays(seen, killer.deaths)
        report = Report(
            database=plan.database,
            seed=plan.seed,
            kills=killer.count,
            kills_by_kind={kind.value: killer.kills[kind] for kind in Kind if kind in killer.kills},
            stops_by_kind={kind.value: killer.stops[kind] for kind in Kind if kind in killer.stops},
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
        found = self._problems + check.problems(seen) + too_little(report, plan)
        return msgspec.structs.replace(report, problems=shortened(found))


def _has_seen_all(killer: Killer) -> bool:
    return all(killer.kills[kind] or killer.stops[kind] for kind in DECK)


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
