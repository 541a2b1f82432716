"""Jobs with an open breaker do not start, except for one probe."""

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
from rota.ops import breakers, claim, finish, job_pauses
from rota.ops.finish import Finished
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


def test_an_open_breaker_lets_no_execution_start_until_a_probe_is_due(world: World, worker: int) -> None:
    trip(world, worker)
    payments, other = [world.enqueue(job="pay") for _ in range(4)], world.enqueue()
    assert [one.id for one in world.claim(worker)] == [other], "jobs without the breaker start"
    world.clock.advance(WAIT_S)
    (first,) = world.claim(worker)
    assert first.id == payments[0]
    assert world.claim(worker) == [], "one probe at a time"
    end(world, first, well=True)
    assert [one.id for one in world.claim(worker)] == payments[1:]


def test_a_failed_probe_doubles_the_wait_for_the_next(world: World, worker: int) -> None:
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
def test_a_probe_without_a_verdict_is_followed_by_another_at_once(world: World, worker: int, outcome: Outcome) -> None:
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


def test_a_permanent_failure_of_a_probe_closes_the_breaker(world: World, worker: int) -> None:
    trip(world, worker)
    payments = [world.enqueue(job="pay") for _ in range(3)]
    world.clock.advance(WAIT_S)
    (first,) = world.claim(worker)
    world.finish(first, Failed(ERROR, permanent=True), RULES)
    assert [one.id for one in world.claim(worker)] == payments[1:]


def test_a_paused_job_does_not_probe(world: World, worker: int) -> None:
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


def test_an_execution_with_two_breakers_probes_both_or_none(world: World, worker: int) -> None:
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


def test_another_probe_starts_if_the_first_does_not_report(world: World, worker: int) -> None:
    trip(world, worker)
    payments = [world.enqueue(job="pay") for _ in range(2)]
    world.clock.advance(WAIT_S)
    assert [one.id for one in world.claim(worker)] == payments[:1]
    world.clock.advance(WAIT_S)
    assert [one.id for one in world.claim(worker)] == payments[1:]


def test_a_success_between_failures_keeps_the_breaker_closed(world: World, worker: int) -> None:
    for well in (False, False, True, False, False):
        pay(world, worker, well=well)
    pay(world, worker)


def test_permanent_errors_do_not_count_as_failures_of_the_service(world: World, worker: int) -> None:
    for _ in range(2 * BANK.failures):
        world.enqueue(job="pay")
        (attempt,) = world.claim(worker)
        world.finish(attempt, Failed(ERROR, permanent=True), RULES)


def test_a_stale_report_does_not_count_as_a_failure_of_the_service(world: World, worker: int) -> None:
    world.enqueue(job="pay")
    (attempt,) = world.claim(worker)
    end(world, attempt, well=True)
    for _ in range(2 * BANK.failures):
        end(world, attempt)
    assert world.store.read(breakers.circuits, NAMESPACE) == []


def test_a_forged_success_does_not_close_a_breaker(world: World, worker: int) -> None:
    """A process can claim that a transaction of its job has ended an attempt of another worker."""
    trip(world, worker)
    forger = world.join(lease_s=3600, name="forger")
    world.enqueue(job="pay")
    world.clock.advance(WAIT_S)
    (attempt,) = world.claim(worker)
    forged = Finished(attempt.id, attempt.fence, Succeeded(""), written="", breakers=RULES.breakers)
    assert world.store.transact(finish.finish, [forged], forger) == [attempt.id]
    end(world, attempt)
    assert world.store.transact(finish.finish, [forged], forger) == [attempt.id]
    world.enqueue(job="pay")
    assert world.claim(worker) == [], "the breaker is open"


def test_a_success_in_a_transaction_of_the_job_closes_a_breaker(world: World, worker: int) -> None:
    trip(world, worker)
    world.enqueue(job="pay")
    world.clock.advance(WAIT_S)
    (probe,) = world.claim(worker)
    report = Finished(probe.id, probe.fence, Succeeded("1"), written="1", breakers=RULES.breakers)
    world.store.transact(finish.complete, report)
    assert world.store.transact(finish.finish, [report], worker) == [probe.id]
    x = world.enqueue(job="pay")
    assert [one.id for one in world.claim(worker)] == [x]


def test_a_claim_reports_when_the_next_probe_is_due(world: World, worker: int) -> None:
    trip(world, worker)
    world.enqueue(job="pay")
    claimed = world.store.transact(claim.claim, worker, world.served(), 10)
    assert claimed.claims == []
    assert claimed.has_no_room, "the worker claims again then"


def test_an_execution_behind_an_open_breaker_names_the_breaker(world: World, worker: int) -> None:
    trip(world, worker)
    waits, other = world.enqueue(job="pay"), world.enqueue()
    assert "breaker bank is open" in world.why(waits)
    assert "breaker" not in world.why(other)


def test_an_operator_can_close_a_breaker(world: World, worker: int) -> None:
    trip(world, worker)
    (circuit,) = world.store.read(breakers.circuits, NAMESPACE)
    assert (circuit.name, circuit.failures, circuit.opened_at is not None) == ("bank", 3, True)
    world.enqueue(job="pay")
    assert world.store.transact(breakers.close, NAMESPACE, "bank", "anna")
    assert not world.store.transact(breakers.close, NAMESPACE, "bank", "anna")
    assert len(world.claim(worker)) == 1
    with pytest.raises(UsageError, match="rota breakers"):
        world.store.transact(breakers.close, NAMESPACE, "mail", "anna")
