"""Breakers and affinity in real workers: declarations in an app, two processes, and the command line."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rota import App, DefinitionError
from rota.domain.breaker import Breaker
from rota.ops import breakers
from rota.sdk.app import registry_of
from rota.testing import harness
from tests.support.waiting import PATIENCE_S, eventually
from tests.support.workers import Site

MANY = 40


def cli(site: Site, *words: str) -> str:
    command = [sys.executable, "-m", "rota", "--url", site.url, *words]
    done = subprocess.run(command, cwd=site.folder, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return done.stdout + done.stderr


def is_open(site: Site) -> bool:
    circuits = registry_of(site.app).connection.store().read(breakers.circuits, "default")
    return any(circuit.opened_at is not None for circuit in circuits)


def test_jobs_do_not_start_while_their_breaker_is_open_and_resume_when_it_closes(site: Site) -> None:
    handles = site.app.jobs["knock"].enqueue_many([f"gate {number}" for number in range(MANY)])
    site.worker("--processes", "2", "--concurrency", "1")
    eventually(lambda: is_open(site), what="an open breaker")
    shown = cli(site, "breakers")
    assert "open" in shown
    assert "NEXT TRY" in shown
    waits = next(x for x in handles if x.status() == "queued")
    assert "breaker door is open" in cli(site, "show", waits.id)
    for number in range(MANY):
        site.open(f"gate {number}")
    for handle in handles:
        handle.result(PATIENCE_S)
    assert not is_open(site)
    assert len(site.journal("knocked")) < 2 * MANY, "each called the service once, and a few failed"


def test_a_breaker_can_be_closed_by_hand(site: Site) -> None:
    handles = site.app.jobs["knock"].enqueue_many(["gate"] * MANY)
    site.worker("--concurrency", "1")
    eventually(lambda: is_open(site), what="an open breaker")
    site.open("gate")
    assert "closed" in cli(site, "breakers", "close", "door")
    for handle in handles:
        handle.result(PATIENCE_S)


def test_executions_with_the_same_affinity_value_run_in_the_same_process(site: Site) -> None:
    site.worker("--processes", "2", "--concurrency", "2")
    eventually(lambda: len(site.live()) == 2, what="two processes")
    first = [site.enqueue("serve", f"customer {number}").result(PATIENCE_S) for number in range(6)]
    for _ in range(3):
        again = [site.enqueue("serve", f"customer {number}") for number in range(6)]
        assert [handle.result(PATIENCE_S) for handle in again] == first


def test_invalid_breakers_and_affinities_are_refused() -> None:
    app = App("picky", url="sqlite://:memory:")
    app.breaker("bank")
    with pytest.raises(DefinitionError, match="once"):
        app.breaker("bank", failures=2)
    with pytest.raises(DefinitionError, match="no argument of that name"):
        app.job(affinity="customer", name="w")(lambda: None)
    with pytest.raises(DefinitionError, match="affinity="):
        app.job(affinity_wait="5s", name="x")(lambda: None)
    with pytest.raises(DefinitionError, match="no option 'timout'"):
        app.job(timout="5s", name="y")(lambda: None)  # type: ignore[call-overload]


def test_a_breaker_may_be_declared_after_the_jobs_that_rely_on_it() -> None:
    app = App("late", url="sqlite://:memory:")
    jobs = [
        app.job(breaker="bank", name="pay")(lambda: None),
        app.command("settle", ["true"], breaker=["bank", "post"]),
        app.http("ask", "https://example.com/", breaker="bank"),
    ]
    app.breaker("post")
    app.breaker("bank", failures=2, wait="3s")
    app.check()
    for job in jobs:
        assert Breaker("bank", 2, 3.0) in registry_of(app).targets()[job.name].rules.breakers
    assert [one.name for one in registry_of(app).targets()["settle"].rules.breakers] == ["bank", "post"]


def test_a_worker_does_not_start_if_a_job_names_an_undeclared_breaker(site: Site) -> None:
    (site.folder / "typo.py").write_text(
        "from rota import App\n\napp = App('typo')\napp.breaker('bank')\napp.command('pay', ['true'], breaker='bnak')\n"
    )
    command = [sys.executable, "-m", "rota", "--url", site.url, "worker", "typo:app"]
    done = subprocess.run(command, cwd=site.folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode != 0
    assert "job 'pay' relies on a breaker 'bnak', which is not declared: did you mean 'bank'?" in done.stderr


def test_the_harness_refuses_an_undeclared_breaker() -> None:
    app = App("typo", url="sqlite://:memory:")
    app.job(breaker="bnak", name="pay")(lambda: None)
    with pytest.raises(DefinitionError, match=r"'bnak'.*app.breaker\('bnak'\)"), harness(app):
        pass
