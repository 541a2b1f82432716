"""Workers die at any moment; every run ends, and with the same result as without kills."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from rota import Handle
from rota.clock import SystemClock
from rota.domain.status import TERMINAL, Status
from rota.sdk.app import registry_of
from rota.store.opening import open_store
from tests.kill import evidence
from tests.kill.databases import database
from tests.kill.fleet import START_S, Fleet, Program
from tests.kill.processes import wait_until
from tests.kill.runs import jobs
from tests.support.proving import proof

pytestmark = pytest.mark.xdist_group("kill")
KILLS = int(os.environ.get("ROTA_RUN_KILLS", "120"))
SAMPLE = 4
REST_S = 120.0


@pytest.mark.timeout(200 + 3 * KILLS)
@pytest.mark.parametrize(
    ("kind", "kills"),
    [("sqlite", SAMPLE), ("postgres", SAMPLE), proof("sqlite", KILLS), proof("postgres", KILLS)],
)
def test_runs_survive_the_deaths_of_their_workers(tmp_path: Path, kind: str, kills: int) -> None:
    chance = random.Random(int(os.environ.get("ROTA_KILL_SEED", random.randrange(1_000_000))))
    with (
        database(kind, tmp_path) as url,
        Fleet(tmp_path, url, room="tests.kill.runs", processes=2, lease_s=2.0, poll_s=0.2, grace_s=2.0) as fleet,
    ):
        store = open_store(url)
        with registry_of(jobs.app).connection.borrowed(store, SystemClock()):
            runs: list[tuple[str, int, Handle[Any]]] = []
            crew = [fleet.supervisor(f"supervisor-{number}") for number in range(2)]
            for number in range(kills):
                runs += [(shape, number % 9, start(shape, number % 9)) for shape in shapes(number)]
                wait_until(lambda: has_progressed(url), START_S, "signs of life")
                time.sleep(chance.uniform(0.05, 0.4))  # sleep: until the next blow
                kill(fleet, crew, chance, number)
            wait_until(lambda: all(one.status() in TERMINAL for *_, one in runs), REST_S, "every run to end")
            wrong = [(shape, x, one) for shape, x, one in runs if not is_right(shape, x, one)]
            unexplained = [(shape, x, one.id) for shape, x, one in wrong if not has_crashed(url)]
    assert unexplained == [], f"{len(wrong)} of {len(runs)} runs ended in another way"
    assert len(wrong) <= len(runs) // 10
    logs = "".join(log.read_text(errors="replace") for log in tmp_path.glob("*.log"))
    assert "repaired runs" not in logs
    assert "Traceback" not in logs, logs[-3000:]


def start(shape: str, x: int) -> Handle[Any]:
    handle: Handle[Any] = jobs.SHAPES[shape].start(x=x)
    return handle


def shapes(number: int) -> list[str]:
    """A wide map now and then: it takes as long as all others together."""
    return ["chain", "diamond", "nested", *(["wide"] if number % 6 == 0 else [])]


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
    return run.status() == Status.SUCCESS and run.result(timeout=0) == jobs.expected(shape, x)


def has_crashed(url: str) -> bool:
    """Whether a step was killed so often that it was given up, which fails its run."""
    return any(one.reason == "crash_loop" for history in evidence.read(url).attempts.values() for one in history)
