"""The way from a process to the store, and everything that can happen on it.

A call travels, is carried out by the database, and the reply travels back. Only the caller belongs to a process: a call
that is on its way arrives even if its caller is stopped or dead by then.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from random import Random
from typing import Any, Concatenate, ParamSpec, TypeVar

from rota.domain.errors import StoreUnavailable
from rota.store.port import Tx, View
from tests.simulation.faults import Fault, Script, Weather
from tests.simulation.loop import VirtualLoop
from tests.simulation.store import FailingTx, SimStore, broken

P = ParamSpec("P")
T = TypeVar("T")


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


class SimBridge:
    """Implements `rota.engine.bridge.Bridge`."""

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
    ) -> None:
        self._caller = caller
        self._store = store
        self._loop = loop
        self._weather = weather
        self._backbone = backbone
        self._network = network
        self._entropy = entropy
        self._patience_s = patience_s

    async def transact(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._call(op, args, kwargs)

    async def read(self, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._call(query, args, kwargs)

    async def _call(self, op: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
        reply: asyncio.Future[T] = self._loop.create_future()
        if self._is_cut_off():
            self._loop.outside(self._patience_s, self._fail, reply, StoreUnavailable("no answer (simulated)"))
        else:
            self._loop.outside(self._latency_s(), self._arrive, reply, op, args, kwargs)
        return await reply

    def _arrive(
        self, reply: asyncio.Future[T], op: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]
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
            result = self._perform(op, args, kwargs, struck, statement)
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
        self, op: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any], struck: set[Fault], statement: int
    ) -> T:
        breaks = self._breaks(struck, statement)
        failing: list[FailingTx] = []

        def wrap(tx: Tx) -> Tx:
            if breaks is None:
                return tx
            failing.append(FailingTx(tx, breaks[1], broken(_CODES[breaks[0]])))
            return failing[0]

        fail_commit = Fault.COMMIT_FAILED in struck
        try:
            return self._store.perform(op, args, kwargs, self._caller, fail_commit=fail_commit, wrap=wrap)
        finally:
            if breaks is not None and failing[0].has_failed:
                self._weather.note(breaks[0])
            elif self._store.has_failed_commit:
                self._weather.note(Fault.COMMIT_FAILED)

    def _breaks(self, struck: set[Fault], statement: int) -> tuple[Fault, Callable[[], bool]] | None:
        """How a statement of this call may fail, and which."""
        if self._weather.script is not None and self._weather.script.fault is Fault.STATEMENT_FAILED:
            return Fault.STATEMENT_FAILED, self._weather.script.is_due
        for fault in _CODES:
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


_CODES = {Fault.STATEMENT_FAILED: sqlite3.SQLITE_IOERR, Fault.STATEMENT_REFUSED: sqlite3.SQLITE_ERROR}
