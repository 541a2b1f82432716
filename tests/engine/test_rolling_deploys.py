"""Old and new workers side by side: kills and restarts of the old ones do not undo what the new ones declare."""

from __future__ import annotations

import os
import random
import signal

import pytest

from rota.sdk.app import registry_of
from rota.store import schedule_reader
from tests.support.waiting import eventually
from tests.support.workers import Site, Worker

CODE = """
from rota import App

app = App("engine")

"""
JOB = """
@app.job(every="{every}")
def {job}() -> None:
    pass
"""
OLD = {"clean": 3600}
NEW = {"clean": 1800, "backup": 7200}
NEWER = {"report": 60_000}


def start(site: Site, code: dict[str, int], **settings: object) -> Worker:
    """A worker whose app has these jobs, with their periods in seconds."""
    name = "_".join([*code, *map(str, code.values())])
    jobs = [JOB.format(job=job, every=f"{every}s") for job, every in code.items()]
    (site.folder / f"{name}.py").write_text(CODE + "".join(jobs))
    return site.worker(app=f"{name}:app", **{"lease_s": 1, **settings})


def declared(site: Site) -> dict[str, int]:
    rows = registry_of(site.app).connection.store().read(schedule_reader.schedules, "default", "engine")
    return {row.name: row.spec.trigger.period // 1_000_000 for row in rows}  # type: ignore[union-attr]


def kill_child(site: Site, worker: Worker) -> None:
    """Returns once another one has taken its place."""
    newest = max(row.id for row in site.live())
    (pid,) = worker.children()
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: worker.check() and any(row.id > newest for row in site.live()), what="a new child")


def stop(worker: Worker) -> None:
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0, worker.log()


def test_an_old_worker_whose_child_is_replaced_does_not_undo_a_newer_deploy(site: Site) -> None:
    old = start(site, OLD, lease_s=600)
    assert declared(site) == OLD
    start(site, NEW, lease_s=600)
    assert declared(site) == NEW
    kill_child(site, old)
    assert declared(site) == NEW
    eventually(lambda: "deploy 1 of app engine is superseded" in old.log(), what="a line in the log")


def test_an_old_supervisor_that_restarts_does_not_undo_a_newer_deploy(site: Site) -> None:
    old = start(site, OLD, lease_s=600)
    start(site, NEW, lease_s=600)
    stop(old)
    start(site, OLD, lease_s=600)
    assert declared(site) == NEW


@pytest.mark.prove  # The grace of the newer deploy is six leases.
def test_when_only_the_old_worker_is_left_its_deploy_is_in_force_again(site: Site) -> None:
    old = start(site, OLD)
    new = start(site, NEW)
    kill_child(site, old)
    assert declared(site) == NEW
    stop(new)
    assert declared(site) == NEW
    eventually(lambda: old.check() and declared(site) == OLD, what="the old deploy")
    eventually(lambda: "deploy 1 of app engine is in force again" in old.log(), what="a line in the log")


@pytest.mark.prove
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(3))
def test_a_storm_of_rolling_deploys_with_kills_ends_with_the_newest_live_deploy(site: Site, seed: int) -> None:
    chance = random.Random(seed)
    codes = [OLD, NEW, NEWER]
    workers = [start(site, code, lease_s=3) for code in codes]
    for _ in range(12):
        place = chance.randrange(3)
        match chance.randrange(3):
            case 0:
                kill_child(site, workers[place])
            case 1:
                workers[place].close()
                workers[place] = start(site, codes[place], lease_s=3)
            case _:
                stop(workers[place])
                workers[place] = start(site, codes[place], lease_s=3)
        assert declared(site) == NEWER
    for place in (2, 1):
        workers[place].close()
        eventually(lambda: declared(site) == codes[place - 1], 120, what="the deploy before")  # noqa: B023
