"""The way from a process to the store, and everything that can happen on it.

A call travels, is carried out by the database, and the reply travels back. Only the caller belongs to a process: a call
that is on its way arrives even if its caller is stopped or dead by then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from rota.domain.errors import StoreUnavailable
from rota.ops import enqueue
from rota.store.port import Tx, View
from tests.simulation.clocks import StoreClock
from tests.simulation.faults import Fault, Script, Weather
from tests.simulation.history import Trouble
from tests.simulation.loop import VirtualLoop
from tests.simulation.store import FailingTx, SimStore

P = ParamSpec("P")
T = TypeVar("T")
USUAL_S = 0.1
"""A call that takes longer was in trouble."""


class ReplyLost(StoreUnavailable):
    """The caller cannot know whether its operation was committed."""


class Network:
    """What lies between one machine, or one client, and the store."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._dark_until = 0.0
        self._deaf_until = 0.0

    @property
    def is_dark(self) -> bool:
        return self._loop.time() < self._dark_until

    @property
    def is_deaf(self) -> bool:
        return self._loop.time() < self._deaf_until

    def darken(self, seconds: float) -> None:
        self._dark_until = self._loop.time() + seconds

    def deafen(self, seconds: float) -> None:
        self._deaf_until = self._loop.time() + seconds

    def heal(self) -> None:
        self._dark_until = self._deaf_until = 0.0


class SimCalls:
    """Implements `rota.engine.async_store.Calls`."""

    def __init__(
        self,
        caller: str,
        store: SimStore,
        loop: VirtualLoop,
        weather: Weather,
        backbone: Network,
        network: Network,
        entropy: Random,
        patience_s: float,
        clock: StoreClock,
        troubles: list[Trouble],
    ) -> None:
        self._caller = caller
        self._store = store
        self._loop = loop
        self._weather = weather
        self._backbone = backbone
        self._network = network
        self._entropy = entropy
        self._patience_s = patience_s
        self._clock = clock
        self.troubles = troubles

    async def transact(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._call(op, args, kwargs)

    async def timed(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> tuple[T, float]:
        return await self._call(op, args, kwargs), 0.0  # A wait by this loop's clock is none by the caller's machine.

    async def read(self, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._call(query, args, kwargs)

    async def _call(self, op: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
        reply: asyncio.Future[T] = self._loop.create_future()
        start = self._loop.time()
        if self._is_cut_off():
            self._loop.outside(self._patience_s, self._fail, reply, StoreUnavailable("no answer (simulated)"))
        else:
            self._loop.outside(self._latency_s(), self._arrive, reply, op, args, kwargs)
        is_fine = False
        try:
            answer = await reply
            is_fine = self._loop.time() - start <= USUAL_S
        finally:
            if not is_fine:
                self.troubles.append(Trouble(self._caller, start, self._loop.time()))
        return answer

    def _arrive(
        self, reply: asyncio.Future[T], op: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        chance, slow_s = self._entropy.random(), self._entropy.uniform(0.1, 1.5)
        if chance < self._weather.slow and op is enqueue.enqueue and args[0].key is None and args[0].unique is None:
            # It has begun and has its time and rank; others commit what is younger, and see this only afterwards.
            self._weather.note(Fault.COMMIT_LATE)
            self._loop.outside(slow_s, self._carry_out, reply, op, args, kwargs, self._clock.now())
        else:
            self._carry_out(reply, op, args, kwargs)

    def _carry_out(
        self,
        reply: asyncio.Future[T],
        op: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        begun_at: int | None = None,
    ) -> None:
        struck = self._weather.strike(self._entropy)
        back_s = self._latency_s()
        late_s = self._entropy.uniform(0.1, 1.2) * self._patience_s
        statement = self._entropy.randint(1, 8)
        if Fault.CALL_FAILED in struck:
            self._weather.note(Fault.CALL_FAILED)
            self._loop.outside(back_s, self._fail, reply, StoreUnavailable("could not be reached (simulated)"))
            return
        try:
            result = self._perform(op, args, kwargs, struck, statement, begun_at)
        except Exception as error:
            self._loop.outside(back_s, self._fail, reply, error)
            return
        if Fault.REPLY_LATE in struck:
            self._weather.note(Fault.REPLY_LATE)
            back_s += late_s
        if Fault.REPLY_LOST in struck or self._network.is_deaf:
            self._weather.note(Fault.REPLY_LOST)
            self._loop.outside(back_s, self._fail, reply, ReplyLost("the reply was lost (simulated)"))
        elif back_s > self._patience_s:
            self._loop.outside(self._patience_s, self._fail, reply, ReplyLost("no answer in time (simulated)"))
        else:
            self._loop.outside(back_s, self._succeed, reply, result)

    def _perform(
        self,
        op: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        struck: set[Fault],
        statement: int,
        begun_at: int | None,
    ) -> T:
        breaks = self._breaks(struck, statement)
        failing: list[FailingTx] = []

        def wrap(tx: Any) -> Tx:
            if begun_at is not None:
                set_time(tx, begun_at)
            if breaks is None:
                return cast("Tx", tx)
            failing.append(FailingTx(tx, breaks[1], self._store.failure(breaks[0])))
            return failing[0]

        fail_commit = Fault.COMMIT_FAILED in struck
        try:
            return self._store.perform(op, args, kwargs, self._caller, fail_commit=fail_commit, wrap=wrap)
        finally:
            if breaks is not None and failing and failing[0].has_failed:
                self._weather.note(breaks[0])
            elif self._store.has_failed_commit:
                self._weather.note(Fault.COMMIT_FAILED)

    def _breaks(self, struck: set[Fault], statement: int) -> tuple[Fault, Callable[[], bool]] | None:
        """How a statement of this call may fail, and which."""
        if self._weather.script is not None and self._weather.script.fault is Fault.STATEMENT_FAILED:
            return Fault.STATEMENT_FAILED, self._weather.script.is_due
        for fault in (Fault.STATEMENT_FAILED, Fault.STATEMENT_REFUSED):
            if fault in struck:
                return fault, Script(fault, statement).is_due
        return None

    def _is_cut_off(self) -> bool:
        return self._network.is_dark or self._backbone.is_dark

    def _latency_s(self) -> float:
        return self._entropy.uniform(0.0005, 0.015)

    @staticmethod
    def _succeed(reply: asyncio.Future[T], result: T) -> None:
        if not reply.done():
            reply.set_result(result)

    @staticmethod
    def _fail(reply: asyncio.Future[T], error: Exception) -> None:
        if not reply.done():
            reply.set_exception(error)


def set_time(session: Any, time: int) -> int:
    """Sets the time of a transaction; returns the former one. PostgreSQL's session must have read it before."""
    before: int = session.now
    session._now = time
    return before
