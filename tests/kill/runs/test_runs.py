"""Workers die at any moment; every run ends, and with the same result as without kills."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rota import Handle
from rota.clock import SystemClock
from rota.domain.status import TERMINAL, Reason, Status
from rota.sdk.app import registry_of
from rota.sdk.run import Run
from rota.store.opening import open_store
from tests.kill import evidence
from tests.kill.databases import database
from tests.kill.fleet import START_S, Fleet, Program
from tests.kill.processes import wait_until
from tests.kill.runs import jobs
from tests.support.proving import proof

pytestmark = pytest.mark.xdist_group("kill")
KILLS = int(os.environ.get("ROTA_RUN_KILLS", "120"))
SAMPLE = 2
REST_S = 120.0
Started = tuple[str, int, Handle[Any]]
"""The shape, its argument, and the run."""


@pytest.mark.timeout(200 + 3 * KILLS)
@pytest.mark.parametrize(
    ("kind", "kills"),
    [("sqlite", SAMPLE), proof("sqlite", KILLS), proof("postgres", KILLS)],
)
def test_runs_survive_the_deaths_of_their_workers(tmp_path: Path, kind: str, kills: int) -> None:
    chance = random.Random(int(os.environ.get("ROTA_KILL_SEED", random.randrange(1_000_000))))
    with (
        database(kind, tmp_path) as url,
        Fleet(tmp_path, url, room="tests.kill.runs", processes=2, lease_s=2.0, poll_s=0.2, grace_s=2.0) as fleet,
    ):
        store = open_store(url)
        with registry_of(jobs.app).connection.borrowed(store, SystemClock()):
            runs: list[Started] = []
            people = People(chance)
            crew = [fleet.supervisor(f"supervisor-{number}") for number in range(2)]
            for number in range(kills):
                runs += [(shape, number % 9, start(shape, number % 9)) for shape in shapes(number)]
                wait_until(lambda: has_progressed(url), START_S, "signs of life")
                time.sleep(chance.uniform(0.05, 0.4))  # sleep: until the next blow
                people.look(runs)
                kill(fleet, crew, chance, number)
            wait_until(lambda: people.look(runs) and have_ended(runs), REST_S, "every run to end")
            wrong = [(shape, x, one) for shape, x, one in runs if not is_right(shape, x, one)]
            unexplained = [(shape, x, one.id) for shape, x, one in wrong if not has_crashed(url)]
    assert unexplained == [], f"{len(wrong)} of {len(runs)} runs ended in another way"
    assert len(wrong) <= len(runs) // 10
    sagas = [(x, one) for shape, x, one in runs if shape == "saga" and (shape, x, one) not in wrong]
    undone = [line.split() for line in (tmp_path / jobs.UNDONE).read_text().splitlines()]
    keys = {key: int(x) for key, x in undone}
    due = Counter(result for x, _ in sagas for result in jobs.undone(x))
    # Each undo has a key of its own, and is called at least once: again only if its worker was killed meanwhile.
    assert Counter(keys.values()) == due if not wrong else Counter(keys.values()) >= due
    logs = "".join(log.read_text(errors="replace") for log in tmp_path.glob("*.log"))
    assert "repaired runs" not in logs
    assert "Traceback" not in logs, logs[-3000:]


class People:
    """They answer each approval with yes, and pay before the answer or after it."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._answered: set[str] = set()

    def look(self, runs: list[Started]) -> bool:
        for shape, x, run in runs:
            if shape in jobs.ANSWERED and run.id not in self._answered:
                self._tend(x, jobs.SHAPES[shape].handle(run.id))
        return True

    def _tend(self, x: int, run: Run[Any]) -> None:
        if run.status() in TERMINAL:
            self._answered.add(run.id)
        if run.status() != Status.RUNNING or run.step("ok").status != Status.WAITING:
            return
        pays_first = self._chance.random() < 0.5
        if pays_first:
            pay(x)
        run.approve("ok", by="people")
        if not pays_first:
            pay(x)
        self._answered.add(run.id)


def pay(x: int) -> None:
    jobs.app.emit(jobs.PAID, {"amount": x}, subject=f"order {x}")


def have_ended(runs: list[Started]) -> bool:
    return all(one.status() in TERMINAL for *_, one in runs)


def start(shape: str, x: int) -> Handle[Any]:
    handle: Handle[Any] = jobs.SHAPES[shape].start(x=x)
    return handle


def shapes(number: int) -> list[str]:
    """A wide map now and then: it takes as long as all others together."""
    return ["chain", "diamond", "nested", "patient", "saga", *(["wide"] if number % 6 == 0 else [])]


def has_progressed(url: str) -> bool:
    return evidence.read(url).live_workers > 0


def kill(fleet: Fleet, crew: list[Program], chance: random.Random, number: int) -> None:
    """A child, or a whole worker, which is then started anew."""
    place = chance.randrange(len(crew))
    children = crew[place].children()
    if chance.random() < 0.5 and children:
        chance.choice(children).signal(signal.SIGKILL)
    else:
        crew[place].process.signal(signal.SIGKILL)
        crew[place].close()
        crew[place] = fleet.supervisor(f"supervisor-again-{number}")
    for child in children:
        child.close()


def is_right(shape: str, x: int, run: Handle[Any]) -> bool:
    if shape == "saga":
        return run.status() == Status.FAILED and run.info().reason == Reason.STEP_FAILED
    return run.status() == Status.SUCCESS and run.result(timeout=0) == jobs.expected(shape, x)


def has_crashed(url: str) -> bool:
    """Whether a step was killed so often that it was given up, which fails its run."""
    return any(one.reason == "crash_loop" for history in evidence.read(url).attempts.values() for one in history)
