"""PostgreSQL under the simulation: every process has a store of its own, all of them on one database for each run."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import psycopg

from rota.clock import Clock
from rota.ops import deploy, upkeep
from rota.store import load_reader, reader
from rota.store.hints import Bus
from rota.store.port import Tx
from rota.store.postgres.store import PostgresStore
from rota.store.postgres.writer import Writer
from tests.simulation.faults import Fault
from tests.simulation.history import Operation
from tests.simulation.store import Tap
from tests.simulation.witness import PostgresWitness, Witness
from tests.support import postgres
from tests.support.databases import fresh_database

T = TypeVar("T")
MOST_OPEN = 12
READS = (reader.__name__, load_reader.__name__)
TEMPLATE = "rota_simulation_template"


class PostgresSimStore:
    """Implements `tests.simulation.store.SimStore`. Everything runs in the calling thread, one call after the other."""

    _tap: Tap

    def __init__(self, clock: Clock) -> None:
        self._url = postgres.shared().create_database(template=_template())
        self._clock = clock
        self._stores: dict[str, _ProcessStore] = {}
        self._log = PostgresWitness(self._url)
        self.witness: Witness = self._log
        self.has_failed_commit = False

    def ride(self, bus: Bus) -> None:
        self._tap = Tap(bus)

    def perform(
        self,
        op: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        caller: str,
        *,
        fail_commit: bool = False,
        wrap: Callable[[Tx], Tx] = lambda tx: tx,
    ) -> T:
        now = 0

        def observed(tx: Any) -> T:
            nonlocal now
            wrapped = wrap(tx)
            now = tx.now
            return op(wrapped, *args, **kwargs)

        store = self._store_of(caller)
        store.expect(fail=fail_commit)
        if op.__module__ in READS or op in (upkeep.look, deploy.look):
            return store.read(observed)
        try:
            result = store.transact(observed)
        finally:
            self.has_failed_commit = store.has_failed
        if store.has_committed:
            operation = Operation(op.__name__, self._clock.monotonic(), now, caller, args, result)
            operation.hints = self._tap.take()
            self.witness.commit(operation)
        return result

    def failure(self, fault: Fault) -> psycopg.Error:
        if fault is Fault.STATEMENT_FAILED:
            return psycopg.errors.DiskFull("made to fail")
        return psycopg.errors.InternalError_("made to fail")

    def close(self) -> None:
        for store in self._stores.values():
            store.close()
        self._log.close()
        postgres.shared().drop_database(self._url)

    def _store_of(self, caller: str) -> _ProcessStore:
        """The caller's own; those who have not called for long are dead, or will connect again."""
        store = self._stores.pop(caller, None) or _ProcessStore(self._url, self._clock)
        store.bus = self._tap
        self._stores[caller] = store
        if len(self._stores) > MOST_OPEN:
            self._stores.pop(next(iter(self._stores))).close()
        return store


class _ProcessStore(PostgresStore):
    """The store of one process. It fails only with errors that it does not try again: its patience is in real time."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._fails = self.has_failed = self.has_committed = False
        super().__init__(url, clock, inline=True)
        self.bus.close()

    def expect(self, *, fail: bool) -> None:
        """The next commit fails, or it does not."""
        self._fails, self.has_failed, self.has_committed = fail, False, False

    def _new_writer(self, *args: Any, **kwargs: Any) -> Writer:
        writer = super()._new_writer(*args, **kwargs)
        commit = writer._commit

        def observed(*args: Any) -> None:
            if self._fails:
                self.has_failed = True
                raise psycopg.errors.DiskFull("made to fail")
            commit(*args)
            self.has_committed = True

        writer._commit = observed  # type: ignore[method-assign, assignment]
        return writer


@cache
def _template() -> str:
    source = fresh_database()
    PostgresWitness.install(source)
    postgres.shared().create_database(TEMPLATE, template=source.rpartition("/")[2])
    return TEMPLATE
