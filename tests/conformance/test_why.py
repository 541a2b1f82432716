"""Why an execution is not running: every check that a claim makes, in order, on both databases."""

from __future__ import annotations

import msgspec
import pytest

from rota.domain import blocker, requirement
from rota.domain.blocker import Kind
from rota.domain.errors import UnknownExecution
from rota.domain.job import Definition
from rota.domain.requirement import Needs, Offers
from rota.domain.status import Status
from rota.ops import define, job_pauses
from rota.store.claim_reader import ClaimFacts
from rota.views.why import Why, WhyCheck, explain, why
from tests.conformance.test_blockers import RATE, block
from tests.support.world import APP, NAMESPACE, World

CODES = [
    "due",
    "dependencies",
    "event",
    "approval",
    "run_paused",
    "map",
    "job_paused",
    "queue_paused",
    "breaker",
    "limits",
    "worker",
    "worker_has_job",
    "worker_fits",
    "worker_starts",
    "slot",
    "place",
]


def explained(world: World, id: str) -> Why:
    found = world.store.read(why, NAMESPACE, id)
    assert found is not None
    return found


def failing(world: World, id: str) -> dict[str, WhyCheck]:
    return {check.code: check for check in explained(world, id).checks if check.holds is False}


def test_every_check_has_a_code_an_answer_and_a_sentence(world: World) -> None:
    found = explained(world, world.enqueue())
    assert [check.code for check in found.checks] == CODES
    assert all(check.text for check in found.checks)
    answers = {check.code: check.holds for check in found.checks}
    assert (answers["due"], answers["worker"], answers["worker_has_job"], answers["place"]) == (True, False, None, True)


def test_a_queued_execution_waits_only_for_a_slot(world: World) -> None:
    first, second = world.enqueue(), world.enqueue()
    assert not explained(world, first).is_in_line, "there is no worker"
    world.join()
    assert failing(world, first) == {}
    assert list(failing(world, second)) == ["place"]
    assert explained(world, second).is_in_line
    assert world.why(second) == "queued behind 1; waits for a free slot of a worker"


def test_all_failing_checks_are_listed_and_the_first_is_the_sentence(world: World) -> None:
    x = world.enqueue()
    world.store.transact(define.pause_queue, NAMESPACE, "default", "ann", "full")
    world.store.transact(job_pauses.pause, NAMESPACE, APP, "send", "bob", "broken")
    found = failing(world, x)
    assert list(found) == ["job_paused", "queue_paused", "worker"]
    assert found["queue_paused"].subject == "default"
    assert found["queue_paused"].remedy is not None
    assert found["queue_paused"].remedy.command == "rota queues resume default"
    assert (found["queue_paused"].remedy.method, found["queue_paused"].remedy.path) == (
        "POST",
        "/api/v1/queues/default/resume",
    )
    assert (found["queue_paused"].evidence or {})["by"] == "ann"
    assert world.why(x) == "job shop.send is paused by bob (broken): `rota jobs resume send`; next in line"


def test_a_blocker_is_named(world: World) -> None:
    x = world.enqueue()
    block(world, [x], RATE)
    found = failing(world, x)
    assert (found["limits"].text, found["limits"].subject) == ("waits for rate limit mails", "mails")


@pytest.mark.parametrize("kind", Kind)
def test_exactly_one_check_explains_each_kind_of_blocker(kind: Kind) -> None:
    key = "default/shop/send/shop/load"
    facts = ClaimFacts(
        status=Status.WAITING,
        app=APP,
        queue="default",
        reason="",
        due_at=None,
        paused_at=None,
        paused_by=None,
        paused_note=None,
        live_workers=1,
        offers=msgspec.json.encode([requirement.encode(Offers())]).decode(),
        requirements="",
        ahead=0,
        cancel_at=None,
        lease_until=None,
        job="send",
        blockers=msgspec.json.encode([(kind, key)]).decode(),
    )
    found = explain(facts, 0)
    assert found is not None
    (check,) = [check for check in found.checks if check.holds is False]
    assert found.text == check.text == f"waits for {blocker.words(kind, key)}"


def test_a_scheduled_execution_says_until_when(world: World) -> None:
    x = world.enqueue(delay_s=60)
    due = failing(world, x)["due"]
    assert due.until is not None
    assert due.until.timestamp() * 1_000_000 == world.clock.now() + 60_000_000
    assert world.why(x) == "scheduled to start in 1 m"
    world.clock.advance(61)
    assert world.why(x).startswith("due 1 s ago; no live worker of app shop serves queue default")


def test_a_worker_must_have_what_the_job_needs(world: World) -> None:
    needs = Needs(resources={"gpu": 1.0})
    world.store.transact(define.register, NAMESPACE, APP, [Definition(name="train", needs=needs)], ())
    x = world.enqueue("train")
    world.join(jobs=["train"])
    assert list(failing(world, x)) == ["worker_fits"]
    assert "1 gpu" in failing(world, x)["worker_fits"].text
    assert (failing(world, x)["worker_fits"].evidence or {})["resources"] == {"gpu": 1.0}


def test_a_running_execution_is_explained_only_if_something_is_wrong(world: World) -> None:
    x = world.enqueue()
    world.claim(world.join())
    assert world.store.read(why, NAMESPACE, x) is None
    world.cancel(x)
    assert list(failing(world, x)) == ["cancel_requested"]
    world.clock.advance(11)
    assert "the lease of its worker ran out 1 s ago" in world.why(x)


def test_an_ended_execution_has_nothing_to_explain(world: World) -> None:
    x = world.enqueue()
    world.cancel(x)
    assert world.store.read(why, NAMESPACE, x) is None
    with pytest.raises(UnknownExecution):
        world.store.read(why, "other", x)
