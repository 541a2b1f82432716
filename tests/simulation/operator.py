"""A client that stands for the people and programs around runs: it answers approvals, emits events and replays them."""

from __future__ import annotations

import asyncio

import msgspec

from rota.domain import payload
from rota.domain.errors import StoreError
from rota.ops.events import emit, replay
from rota.ops.events.emit import Emission, EmitHeader
from rota.ops.runs.approvals import Answer, answer
from rota.store.port import Tx, View
from tests.simulation.child import NAMESPACE
from tests.simulation.clients import MOST_TRIES, Client
from tests.simulation.flows import DECLINED, PAID, SUBJECTS
from tests.simulation.history import Try

RECENT = 6
"""Of the events, the youngest are replayed: some of them are not delivered to all yet."""


def replay_event(tx: Tx, namespace: str, id: str, actor: str) -> int:
    """Under a name of its own, because witnesses go by names, and dead letters are replayed, too."""
    return replay.replay(tx, namespace, id, actor)


def runs_to_answer(view: View, among: list[str]) -> list[str]:
    """Those of these runs that wait for an answer."""
    return sorted({run for run, *_ in view.rows("open_approvals", runs=among)})


class Operator(Client):
    """Shares the memory of the client that starts runs."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._emitted: list[str] = []
        self._answers = 0

    async def run(self, count: int, within_s: float) -> None:
        """Twice as busy as the others."""
        await super().run(2 * count, within_s)

    async def be_calm(self, count: int, within_s: float) -> None:
        """Events that come when nothing goes wrong any more."""
        for _ in range(count):
            await asyncio.sleep(self._entropy.expovariate(count / within_s))
            await self._emit()

    async def _wish(self) -> None:
        draw = self._entropy.random()
        if draw < 0.5:
            await self._emit()
        elif draw < 0.9:
            await self._answer()
        else:
            await self._replay_an_event()

    async def _emit(self) -> None:
        header = EmitHeader(NAMESPACE, "client", delivers_later=self._entropy.random() < 0.25)
        emissions = [self._emission() for _ in range(self._entropy.choice([1, 1, 3]))]
        self._emitted += [one.id for one in emissions]
        for _ in range(MOST_TRIES):
            one = Try(self._loop.time(), "")
            await self._told(one, emit.emit, header, emissions)
            may_repeat = one.told == "failed" or all(emission.key is not None for emission in emissions)
            if one.told in ("accepted", "refused") or not may_repeat:
                return
            await asyncio.sleep(self._entropy.uniform(0.05, 1))

    def _emission(self) -> Emission:
        text = msgspec.json.encode({"n": self._entropy.randint(1, 3)}).decode()
        key = self._entropy.choice([None, f"key {self._entropy.randint(1, 9)}"])
        digest = "" if key is None else payload.digest(text)
        name, subject = self._entropy.choice([PAID, PAID, DECLINED]), self._entropy.choice(["", *SUBJECTS])
        return Emission(self._ids.new(), name, text, subject, key, digest)

    async def _answer(self) -> None:
        """Answers the same approval with yes and with no, now and then: one of the two is refused."""
        known = self._memory.ids() + [id for order in self._memory.orders for id in order.new_ids]
        try:
            waiting = await self._calls.read(runs_to_answer, known)
        except StoreError:
            return
        if not waiting:
            return
        run, approved = self._entropy.choice(waiting), self._entropy.random() < 0.6
        for given in (approved, not approved)[: self._entropy.choice([1, 1, 2])]:
            self._answers += 1
            await self._told(Try(0, ""), answer, NAMESPACE, run, Answer(given, f"operator {self._answers}"))

    async def _replay_an_event(self) -> None:
        if self._emitted:
            id = self._entropy.choice(self._emitted[-RECENT:])
            await self._told(Try(0, ""), replay_event, NAMESPACE, id, "client")
