"""Nothing starts that relies on what is known not to work, but for one that tries."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rota.domain import payload
from rota.domain.breaker import Breaker
from rota.domain.claim import Claim
from rota.domain.errors import UsageError
from rota.domain.job import Definition
from rota.domain.lifecycle import Rules
from rota.domain.outcome import Cancelled, Failed, GivenBack, Outcome, Snoozed, Succeeded, TimedOut
from rota.domain.requirement import Needs
from rota.domain.retry import Fixed
from rota.domain.status import Reason
from rota.ops import breakers, claim, job_pauses
from tests.support.world import APP, NAMESPACE, World

WAIT_S = 10.0
BANK = Breaker("bank", 3, WAIT_S)
RULES = Rules(retry=Fixed(attempts=1), breakers=(BANK,))
ERROR = payload.error("ConnectionError", "refused")


@pytest.fixture
def worker(world: World) -> int:
    world.register(Definition(name="pay", needs=Needs(breakers=["bank"])))
    return world.join(lease_s=3600)


def end(world: World, attempt: Claim, *, well: bool = False) -> None:
    world.finish(attempt, Succeeded("1") if well else Failed(ERROR), RULES)


def pay(world: World, worker: int, *, well: bool = False) -> None:
    """One payment, from the order to its end."""
    world.enqueue(job="pay")
    (attempt,) = world.claim(worker)
    end(world, attempt, well=well)


def trip(world: World, worker: int) -> None:
    for _ in range(BANK.failures):
        pay(world, worker)


def test_after_failures_in_a_row_nothing_starts_until_one_may_try(world: World, worker: int) -> None:
    trip(world, worker)
    payments, other = [world.enqueue(job="pay") for _ in range(4)], world.enqueue()
    assert [one.id for one in world.claim(worker)] == [other], "what does not rely on it goes on"
    world.clock.advance(WAIT_S)
    (first,) = world.claim(worker)
    assert first.id == payments[0]
    assert world.claim(worker) == [], "one tries at a time"
    end(world, first, well=True)
    assert [one.id for one in world.claim(worker)] == payments[1:]


def test_if_the_one_that_tries_fails_the_next_has_to_wait_twice_as_long(world: World, worker: int) -> None:
    trip(world, worker)
    for _ in range(2):
        world.enqueue(job="pay")
    world.clock.advance(WAIT_S)
    (first,) = world.claim(worker)
    world.finish(first, TimedOut(ERROR), RULES)
    world.clock.advance(2 * WAIT_S - 1)
    assert world.claim(worker) == []
    world.clock.advance(1)
    assert len(world.claim(worker)) == 1


@pytest.mark.parametrize(
    "outcome",
    [Snoozed(3600.0), GivenBack(Reason.DRAINED), Cancelled(), Failed(ERROR, Reason.BAD_RESULT, permanent=True)],
    ids=["snoozed", "given_back", "cancelled", "bad_result"],
)
def test_if_the_one_that_tries_shows_nothing_the_next_tries_at_once(
    world: World, worker: int, outcome: Outcome
) -> None:
    trip(world, worker)
    payments = [world.enqueue(job="pay") for _ in range(3)]
    world.clock.advance(WAIT_S)
    (first,) = world.claim(worker)
    assert world.claim(worker) == []
    world.finish(first, outcome, RULES)
    (second,) = world.claim(worker)
    assert second.id in payments
    end(world, second, well=True)
    assert world.claim(worker)


def test_what_fails_for_good_was_answered(world: World, worker: int) -> None:
    trip(world, worker)
    payments = [world.enqueue(job="pay") for _ in range(3)]
    world.clock.advance(WAIT_S)
    (first,) = world.claim(worker)
    world.finish(first, Failed(ERROR, permanent=True), RULES)
    assert [one.id for one in world.claim(worker)] == payments[1:]


def test_paused_jobs_do_not_try(world: World, worker: int) -> None:
    world.register(Definition(name="refund", needs=Needs(breakers=["bank"])))
    trip(world, worker)
    world.store.transact(job_pauses.pause, NAMESPACE, APP, "pay", "ann")
    paused = [world.enqueue(job="pay") for _ in range(3)]
    refund = world.enqueue(job="refund")
    world.clock.advance(WAIT_S)
    for _ in paused:
        found = world.store.transact(claim.claim, worker, world.served(), 10)
        assert (found.claims, found.has_more) == ([], True)
    assert [one.id for one in world.claim(worker)] == [refund]


def test_one_that_relies_on_two_tries_both_or_none(world: World, worker: int) -> None:
    world.register(Definition(name="both", needs=Needs(breakers=["bank", "post"])))
    trip(world, worker)
    rules = replace(RULES, breakers=(Breaker("post", 1, 10 * WAIT_S),))
    world.register(Definition(name="mail", needs=Needs(breakers=["post"])))
    world.enqueue(job="mail")
    world.finish(world.claim(worker)[0], Failed(ERROR), rules)
    world.enqueue(job="both")
    world.clock.advance(WAIT_S)
    assert world.claim(worker) == []
    payment = world.enqueue(job="pay")
    assert [one.id for one in world.claim(worker)] == [payment]


def test_if_nothing_is_heard_of_the_one_that_tries_another_does(world: World, worker: int) -> None:
    trip(world, worker)
    payments = [world.enqueue(job="pay") for _ in range(2)]
    world.clock.advance(WAIT_S)
    assert [one.id for one in world.claim(worker)] == payments[:1]
    world.clock.advance(WAIT_S)
    assert [one.id for one in world.claim(worker)] == payments[1:]


def test_a_success_between_failures_keeps_it_closed(world: World, worker: int) -> None:
    for well in (False, False, True, False, False):
        pay(world, worker, well=well)
    pay(world, worker)


def test_what_was_answered_does_not_count(world: World, worker: int) -> None:
    for _ in range(2 * BANK.failures):
        world.enqueue(job="pay")
        (attempt,) = world.claim(worker)
        world.finish(attempt, Failed(ERROR, permanent=True), RULES)


def test_a_stale_report_does_not_count(world: World, worker: int) -> None:
    world.enqueue(job="pay")
    (attempt,) = world.claim(worker)
    end(world, attempt, well=True)
    for _ in range(2 * BANK.failures):
        end(world, attempt)
    assert world.store.read(breakers.circuits, NAMESPACE) == []


def test_a_claim_says_that_something_waits(world: World, worker: int) -> None:
    trip(world, worker)
    world.enqueue(job="pay")
    claimed = world.store.transact(claim.claim, worker, world.served(), 10)
    assert claimed.claims == []
    assert claimed.has_no_room, "the worker looks again"


def test_why_is_it_not_running(world: World, worker: int) -> None:
    trip(world, worker)
    waits, other = world.enqueue(job="pay"), world.enqueue()
    assert "breaker bank is open" in world.why(waits)
    assert "breaker" not in world.why(other)


def test_somebody_may_close_it(world: World, worker: int) -> None:
    trip(world, worker)
    (circuit,) = world.store.read(breakers.circuits, NAMESPACE)
    assert (circuit.name, circuit.failures, circuit.opened_at is not None) == ("bank", 3, True)
    world.enqueue(job="pay")
    assert world.store.transact(breakers.close, NAMESPACE, "bank", "anna")
    assert not world.store.transact(breakers.close, NAMESPACE, "bank", "anna")
    assert len(world.claim(worker)) == 1
    with pytest.raises(UsageError, match="rota breakers"):
        world.store.transact(breakers.close, NAMESPACE, "mail", "anna")
