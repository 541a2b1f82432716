"""Clients: they call, do not always get an answer, repeat calls, and remember the answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

from rota.domain.blocker import Kind
from rota.domain.errors import RotaError, StoreError, StoreUnavailable, UnknownExecution
from rota.domain.status import Status
from rota.ids import IdSource
from rota.ops import blockers, control, define, enqueue, job_pauses
from rota.ops.end_from_outside import Pending
from rota.ops.submission import Header, Item
from rota.store import execution_reader, reader
from rota.store.execution_reader import Criteria, Where
from rota.store.port import Tx
from tests.simulation import requests
from tests.simulation.calls import ReplyLost, SimCalls
from tests.simulation.child import APP, NAMESPACE
from tests.simulation.clocks import StoreClock
from tests.simulation.faults import Fault, Weather
from tests.simulation.history import Order, Submission, Try
from tests.simulation.loop import VirtualLoop

T = TypeVar("T")
MOST_TRIES = 6
GIVES_UP = 0.25
MOST_HELD = 1000


def hold(tx: Tx, job: str) -> int:
    """Puts all waiting executions of a job behind an event, too. Returns how many."""
    wanted = Criteria(status=(Status.WAITING,), job=(f"{APP}/{job}",))
    found = execution_reader.page(tx, NAMESPACE, wanted, Where(), MOST_HELD)
    held = tx.records("pending", Pending, ids=found.keys)
    blockers.block(tx, [(row.id, Kind.EVENT, job) for row in held if row.place is Status.WAITING])
    return len(held)


class Memory:
    """What all clients have seen, together: the first witness."""

    def __init__(self) -> None:
        self.submissions: list[Submission] = []
        self.orders: list[Order] = []

    def ids(self) -> list[str]:
        """Every id that may exist as far as the clients know."""
        return [item.id for submission in self.submissions for item in submission.items]


class Client:
    """Asks for one thing after another."""

    def __init__(
        self,
        calls: SimCalls,
        loop: VirtualLoop,
        clock: StoreClock,
        ids: IdSource,
        memory: Memory,
        weather: Weather,
        entropy: Random,
        *,
        tends_the_dead: bool = True,
    ) -> None:
        self._tends_the_dead = tends_the_dead
        self._calls = calls
        self._loop = loop
        self._clock = clock
        self._ids = ids
        self._memory = memory
        self._weather = weather
        self._entropy = entropy

    async def run(self, count: int, within_s: float) -> None:
        """`count` wishes, spread over a time."""
        for _ in range(count):
            await asyncio.sleep(self._entropy.expovariate(count / within_s))
            await self._wish()

    async def be_calm(self, count: int, within_s: float) -> None:
        """Asks only for what any worker can do, at every urgency."""
        for _ in range(count):
            await asyncio.sleep(self._entropy.expovariate(count / within_s))
            await self._submit_all(*requests.calm(self._entropy))

    async def _wish(self) -> None:
        draw = self._entropy.random()
        if draw < 0.72:
            await self._submit()
        elif draw < 0.86:
            await self._cancel()
        elif draw < 0.94 and self._tends_the_dead:
            await self._tend_the_dead()
        elif draw < 0.97:
            await self._pause_for_a_while()
        else:
            await self._pause_job_for_a_while()

    async def resume_all(self) -> None:
        """Resumes every queue and job, until it is certain."""
        for queue in requests.QUEUES:
            await self._insist(Try(0, ""), define.resume_queue, NAMESPACE, queue, "client")
        for job in requests.PAUSED_JOBS:
            await self._insist(Try(0, ""), job_pauses.resume, NAMESPACE, APP, job, "client")
            await self._insist(Try(0, ""), blockers.release, Kind.EVENT, job, MOST_HELD)

    async def _submit(self) -> None:
        draw = self._entropy.random()
        if draw < 0.12:
            header, arguments = requests.burst(self._entropy)
        elif draw < 0.2:
            header, arguments = requests.single(self._entropy)
        elif draw < 0.28:
            header, arguments = requests.keyed(self._entropy)
        else:
            job, arguments = requests.job_and_arguments(self._entropy, self._weather.kills_by_body)
            header = requests.header(self._entropy, job, self._clock.now())
        await self._submit_all(header, arguments)

    async def _submit_all(self, header: Header, arguments: str) -> None:
        count = self._entropy.randint(2, requests.MOST_IN_BULK) if self._entropy.random() < 0.15 else 1
        if header.key is not None:
            count = 1
        items = [Item(id, arguments) for id in self._ids.many(count)]
        submission = Submission(header, items)
        self._memory.submissions.append(submission)
        for _ in range(MOST_TRIES):
            if await self._try_to_submit(submission, header, items):
                return
            if self._entropy.random() < GIVES_UP:
                break
            await asyncio.sleep(self._entropy.uniform(0.05, 1))
        if any(one.told == "unsure" for one in submission.tries):
            self._weather.note(Fault.CLIENT_GAVE_UP)

    async def _try_to_submit(self, submission: Submission, header: Header, items: list[Item]) -> bool:
        """Whether that settled it."""
        one = Try(self._loop.time(), "")
        submission.tries.append(one)
        answers = await self._told(one, enqueue.enqueue, header, items)
        if one.told == "accepted" and answers is not None:
            submission.accepted = {item.id: answer.id for item, answer in zip(items, answers, strict=True)}
        elif one.told != "unsure" and any(before.told == "unsure" for before in submission.tries):
            # It may be there already, and the refusal may be of our own repetition.
            await self._read_back(submission, one)
        return one.told in ("accepted", "refused")

    async def _read_back(self, submission: Submission, one: Try) -> None:
        found = {}
        for item in submission.items:
            try:
                await self._calls.read(reader.status, NAMESPACE, item.id)
            except StoreError:
                one.told = "failed"
                return
            except UnknownExecution:
                continue
            found[item.id] = item.id
        if found:
            one.told = "accepted"
            submission.accepted = found

    async def _cancel(self) -> None:
        known = self._memory.ids()
        if known:
            # The young are more likely to be still there.
            place = min(len(known) - 1, int(self._entropy.expovariate(0.25)))
            await self._order("cancel", [known[-1 - place]], [], control.cancel, known[-1 - place], "client")

    async def _tend_the_dead(self) -> None:
        try:
            rows = await self._calls.read(reader.dead, NAMESPACE, reader.Filter(limit=20))
        except StoreError:
            return
        if not rows:
            return
        some = sorted({self._entropy.choice(rows).id for _ in range(2)})
        match self._entropy.randrange(3):
            case 0:
                await self._order("discard", some, [], control.discard, some, "client")
            case 1:
                new = self._ids.many(len(some))
                ids = dict(zip(some, new, strict=True))
                await self._order("replay", some, new, control.replay, ids, "client")
            case _:
                new_id = self._ids.new()
                await self._order("repeat", some[:1], [new_id], control.repeat, some[0], new_id, "client")

    async def _pause_for_a_while(self) -> None:
        queue = self._entropy.choice(requests.QUEUES)
        await self._insist(Try(0, ""), define.pause_queue, NAMESPACE, queue, "client", "for a while")
        await asyncio.sleep(self._entropy.uniform(0.5, 4))
        await self._insist(Try(0, ""), define.resume_queue, NAMESPACE, queue, "client")

    async def _pause_job_for_a_while(self) -> None:
        """Some of its executions get a second blocker meanwhile, which ends before the pause or after it."""
        job = self._entropy.choice(requests.PAUSED_JOBS)
        ends: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
            (blockers.release, (Kind.EVENT, job, MOST_HELD)),
            (job_pauses.resume, (NAMESPACE, APP, job, "client")),
        ]
        await self._insist(Try(0, ""), job_pauses.pause, NAMESPACE, APP, job, "client", "for a while")
        await asyncio.sleep(self._entropy.uniform(1, 5))
        await self._insist(Try(0, ""), hold, job)
        for op, args in self._entropy.sample(ends, 2):
            await asyncio.sleep(self._entropy.uniform(0, 2))
            await self._insist(Try(0, ""), op, *args)

    async def _order(self, verb: str, ids: list[str], new_ids: list[str], op: Callable[..., Any], *args: Any) -> None:
        order = Order(verb, ids, new_ids)
        self._memory.orders.append(order)
        for _ in range(MOST_TRIES):
            one = Try(self._loop.time(), "")
            order.tries.append(one)
            answer = await self._told(one, op, NAMESPACE, *args)
            if one.told == "accepted":
                order.answer = answer
            if one.told in ("accepted", "refused"):
                return
            await asyncio.sleep(self._entropy.uniform(0.05, 1))

    async def _insist(self, one: Try, op: Callable[..., Any], *args: Any) -> None:
        while one.told not in ("accepted", "refused"):
            await self._told(one, op, *args)
            await asyncio.sleep(self._entropy.uniform(0.01, 0.3))

    async def _told(self, one: Try, op: Callable[..., T], *args: Any) -> T | None:
        """Calls, and notes in `one` what the caller then knows."""
        try:
            answer = await self._calls.transact(op, *args)
        except ReplyLost:
            one.told = "unsure"
        except StoreUnavailable:
            one.told = "failed"
        except StoreError as error:
            one.told, one.detail = "failed", str(error)
        except RotaError as error:
            one.told, one.detail = "refused", error.code
        else:
            one.told = "accepted"
            return answer
        return None
