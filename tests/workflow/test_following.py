"""The transaction that ends a step claims the next one, and then no other worker is woken; openings are bounded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rota.domain.claim import Claim
from rota.domain.outcome import Succeeded
from rota.ops import claim
from rota.ops.claim import Mark
from rota.ops.finish import Finished
from rota.store.hints import Hint, Ready
from rota.store.port import Tx
from tests.support.tables import table
from tests.workflow.stage import Stage

CHAIN = [{"id": name, "job": "echo", "after": list(after)} for name, after in (("a", ""), ("b", "a"), ("c", "b"))]
FORK = [{"id": name, "job": "echo", "after": list(after)} for name, after in (("a", ""), ("b", "a"), ("c", "a"))]


class Following:
    """A worker that ends one step and claims the next."""

    def __init__(self, stage: Stage, steps: Sequence[dict[str, Any]], jobs: Sequence[str] | None = None) -> None:
        self.stage = stage
        self.jobs = jobs
        stage.workflow("w", *steps)
        stage.start("w")
        (self.held,) = stage.take()
        self.marks: list[Mark] | None = None
        self.hints: list[Hint] = []

    def follow(self, slots: int) -> list[Claim]:
        """Ends the step in the transaction of the next claim, and keeps the hints of that transaction."""

        def operation(tx: Tx) -> claim.FinishedAndClaimed:
            report = Finished(self.held.id, self.held.fence, Succeeded("1"))
            done = claim.finish_and_claim(tx, [report], self.stage.worker, served, slots, self.marks)
            self.hints = list(tx.hints)  # type: ignore[attr-defined]
            return done

        self.stage.world.clock.advance(1)
        served = self.stage.world.served(jobs=self.jobs)
        claimed = self.stage.store.transact(operation).claimed
        self.marks = claimed.marks
        self.held = claimed.claims[0]
        return claimed.claims

    @property
    def ready(self) -> list[Hint]:
        return [hint for hint in self.hints if isinstance(hint, Ready)]


def test_the_next_step_is_claimed_in_the_same_transaction_without_a_hint(stage: Stage) -> None:
    chain = Following(stage, CHAIN)
    for _ in "bc":
        assert len(chain.follow(slots=10)) == 1
        assert chain.ready == []


def test_steps_that_the_worker_could_not_take_have_a_hint(stage: Stage) -> None:
    fork = Following(stage, FORK)
    assert len(fork.follow(slots=1)) == 1
    assert len(fork.ready) == 1


def test_steps_of_jobs_that_the_worker_lacks_have_a_hint(stage: Stage) -> None:
    stage.job("other", lambda: None)
    fork = Following(stage, [*FORK[:2], {"id": "c", "job": "other", "after": ["a"]}], jobs=["echo"])
    assert [one.job for one in fork.follow(slots=10)] == ["echo"]
    (told,) = fork.ready
    assert isinstance(told, Ready)
    assert len(told.lanes) == 1


def test_a_claim_opens_only_as_many_runs_as_fit_into_a_short_transaction(stage: Stage) -> None:
    stage.workflow("broad", *({"id": f"e{number}", "job": "echo"} for number in range(600)))
    runs = [stage.start("broad") for _ in range(3)]
    claimed = stage.store.transact(claim.claim, stage.worker, stage.world.served(jobs=["no job"]), 10)
    assert (claimed.claims, claimed.has_more) == ([], True)
    assert sorted(row["id"] for row in table(stage.store, "run")) == runs[:2]
    stage.open()
    assert sorted(row["id"] for row in table(stage.store, "run")) == runs
