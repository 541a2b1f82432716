"""The completer: outcomes wait for a claim that is near, and one that is always refused does not block the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import pytest

from rota.domain.errors import StoreError, StoreUnavailable
from rota.domain.outcome import Succeeded
from rota.engine.completer import Completer
from rota.engine.port import WorkerStore
from rota.ops.finish import Finished


class Picky:
    """A store that refuses every batch that contains one of these outcomes."""

    def __init__(self, refused: set[str]) -> None:
        self.refused = refused
        self.away = 0
        self.fails_at = 0
        """The number of the call that fails because the store is away."""
        self.calls = 0
        self.taken: list[str] = []

    async def finish(self, reports: list[Finished]) -> list[str]:
        self.calls += 1
        if self.away or self.calls == self.fails_at:
            self.away = max(0, self.away - 1)
            raise StoreUnavailable("away")
        if self.refused & {report.id for report in reports}:
            raise StoreError("duplicate key")
        self.taken += [report.id for report in reports]
        return []


async def test_an_outcome_that_the_store_always_refuses_does_not_block_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = Picky({"b"})
    completer = Completer(cast("WorkerStore", store))
    for id in "abc":
        completer.add(Finished(id, 1, Succeeded("1")))
    await completer.step()
    assert store.taken == ["a", "c"]
    assert completer.is_empty
    assert "execution b was refused for good" in caplog.text
    assert "came too late" not in caplog.text


async def test_one_refused_outcome_among_many_costs_few_transactions() -> None:
    ids = [str(number) for number in range(256)]
    store = Picky({"100"})
    completer = Completer(cast("WorkerStore", store))
    for id in ids:
        completer.add(Finished(id, 1, Succeeded("1")))
    await completer.step()
    assert store.taken == [id for id in ids if id != "100"]
    assert store.calls == 1 + 2 * 8 + 1  # All, two for each of eight halvings, and the bare failure


async def test_the_half_of_a_refused_batch_is_written_once(caplog: pytest.LogCaptureFixture) -> None:
    """The store is away after the first half. Written again, that half would be taken for one that came too late."""
    store = Picky({"c"})
    store.fails_at = 3
    completer = Completer(cast("WorkerStore", store))
    for id in "abcd":
        completer.add(Finished(id, 1, Succeeded("1")))
    with pytest.raises(StoreUnavailable):
        await completer.step()
    assert completer.held() == ["c", "d"]
    await completer.step()
    assert store.taken == ["a", "b", "d"]
    assert "came too late" not in caplog.text


async def test_outcomes_are_kept_while_the_store_is_unavailable() -> None:
    store = Picky({"b"})
    completer = Completer(cast("WorkerStore", store))
    completer.add(Finished("a", 1, Succeeded("1")))
    store.away = 1
    with pytest.raises(StoreUnavailable):
        await completer.step()
    assert completer.held() == ["a"]
    await completer.step()
    assert store.taken == ["a"]
    assert completer.is_empty


async def test_the_outcome_of_a_step_is_lent_to_the_claim_that_is_near() -> None:
    store = Picky(set())
    completer = Completer(cast("WorkerStore", store))
    completer.add(Finished("a", 1, Succeeded("1")), claim_is_near=True)
    writing = asyncio.create_task(completer.step())
    await asyncio.sleep(0)  # sleep: lets the completer begin
    assert [report.id for report in completer.lend()] == ["a"]
    await writing
    assert not store.taken
    completer.take_back([])
    assert completer.is_empty


async def test_the_outcome_of_a_step_is_written_if_no_claim_comes() -> None:
    store = Picky(set())
    completer = Completer(cast("WorkerStore", store))
    completer.add(Finished("a", 1, Succeeded("1")), claim_is_near=True)
    await completer.step()
    assert store.taken == ["a"]


async def with_claim_behind(completer: Completer, claim: Callable[[], None], *, gives_up: bool = False) -> None:
    """Runs a step of the completer that gets its turn while a claim waits. Then calls `claim` in the turn of that."""

    async def claiming() -> None:
        async with completer.turn_to_claim():
            claim()

    async with completer.turn_to_claim():  # The claim before.
        writing = asyncio.create_task(completer.step())
        await asyncio.sleep(0)
        waiting = asyncio.create_task(claiming())
        await asyncio.sleep(0)
        if gives_up:
            waiting.cancel()
            await asyncio.wait([waiting])
    await writing
    await asyncio.wait([waiting])


async def test_outcomes_are_left_to_the_claim_that_waits_for_its_turn() -> None:
    store = Picky(set())
    lent: list[Finished] = []
    completer = Completer(cast("WorkerStore", store))
    completer.add(Finished("a", 1, Succeeded("1")))
    await with_claim_behind(completer, lambda: lent.extend(completer.lend()))
    assert [report.id for report in lent] == ["a"]
    assert store.calls == 0
    completer.take_back([])
    await completer.step()
    assert completer.is_empty
    assert store.calls == 0


async def test_outcomes_are_written_if_the_claim_takes_none_along() -> None:
    store = Picky(set())
    completer = Completer(cast("WorkerStore", store))
    completer.add(Finished("a", 1, Succeeded("1")))
    await with_claim_behind(completer, lambda: None)
    assert await completer.step() is None
    assert store.taken == ["a"]


async def test_outcomes_are_written_if_the_claim_gives_up_its_turn() -> None:
    store = Picky(set())
    completer = Completer(cast("WorkerStore", store))
    completer.add(Finished("a", 1, Succeeded("1")))
    await with_claim_behind(completer, lambda: None, gives_up=True)
    assert store.taken == ["a"]


async def test_outcomes_that_the_store_has_refused_with_a_claim_are_not_left_to_the_next_one() -> None:
    store = Picky(set())
    completer = Completer(cast("WorkerStore", store))
    completer.add(Finished("a", 1, Succeeded("1")))
    completer.lend()
    completer.take_back(None, refused=True)
    await with_claim_behind(completer, lambda: None)
    assert store.taken == ["a"]


async def test_other_tasks_run_while_outcomes_are_left_to_a_claim() -> None:
    """The dispatcher may have been cancelled while it waited, and must run to notice it."""
    completer = Completer(cast("WorkerStore", Picky(set())))
    completer.add(Finished("a", 1, Succeeded("1")))
    completer._claim_waits = True
    ran: list[bool] = []
    asyncio.get_running_loop().call_soon(ran.append, True)
    assert await completer.step() == 0
    assert ran == [True]
