"""The real store, with a witness inside, a bus of ours, and statements and commits that can be made to fail."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from rota.clock import Clock
from rota.store.hints import Bus, Hint, Listener
from rota.store.port import Row, Tx
from rota.store.sqlite.store import SqliteStore
from tests.simulation.faults import Fault
from tests.simulation.history import Operation
from tests.simulation.witness import SqliteWitness, Witness

T = TypeVar("T")


class SimStore(Protocol):
    """What the simulation needs of a database. `perform` is `transact`, observed."""

    witness: Witness
    has_failed_commit: bool
    """Whether the last operation was lost at its commit."""

    def ride(self, bus: Bus) -> None:
        """Sends hints by `bus` from now on."""

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
        """Runs one operation for `caller`; `wrap` may put something between it and its statements."""

    def failure(self, fault: Fault) -> Exception:
        """The error that the database raises when a statement fails in this way."""

    def close(self) -> None: ...


class SqliteSimStore(SqliteStore):
    """In memory, in the calling thread, one for all: SQLite has one writer anyway."""

    def __init__(self, clock: Clock) -> None:
        super().__init__("sqlite://:memory:", clock, inline=True)
        self.witness: Witness = SqliteWitness(self._connection)
        self._commits = _Commits(self._connection)
        self.has_failed_commit = False
        self._connection = self._commits  # type: ignore[assignment]

    _tap: Tap

    def ride(self, bus: Bus) -> None:
        self._tap = Tap(bus)
        self.bus = self._tap

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

        def observed(tx: Tx) -> T:
            nonlocal now
            wrapped = wrap(tx)
            now = tx.now
            return op(wrapped, *args, **kwargs)

        self.witness.begin()
        self._commits.expect(fail=fail_commit)
        try:
            result = self.transact(observed)
        finally:
            self.has_failed_commit = self._commits.has_failed
        # The commit counts, not the answer that the caller gets.
        if self._commits.has_committed:
            operation = Operation(op.__name__, self.clock.monotonic(), now, caller, args, result)
            operation.hints = self._tap.take()
            self.witness.commit(operation)
        return result

    def failure(self, fault: Fault) -> sqlite3.Error:
        return broken({Fault.STATEMENT_FAILED: sqlite3.SQLITE_IOERR}.get(fault, sqlite3.SQLITE_ERROR))


class Tap:
    """A bus that remembers what went through it."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._sent: list[Hint] = []

    def send(self, hints: Sequence[Hint]) -> None:
        self._sent += hints
        self._bus.send(hints)

    def take(self) -> list[Hint]:
        sent, self._sent = self._sent, []
        return sent

    def listen(self, *kinds: type[Hint]) -> Listener:
        return self._bus.listen(*kinds)

    def close(self) -> None:
        self._bus.close()


class _Commits:
    """A connection whose next commit may fail, as on a full disk."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._fails = False
        self.has_failed = False
        self.has_committed = False

    def expect(self, *, fail: bool) -> None:
        self._fails, self.has_failed, self.has_committed = fail, False, False

    def execute(self, text: str, *args: Any) -> sqlite3.Cursor:
        if text != "COMMIT":
            return self._connection.execute(text, *args)
        if self._fails:
            self.has_failed = True
            raise broken(sqlite3.SQLITE_FULL)
        cursor = self._connection.execute(text, *args)
        self.has_committed = True
        return cursor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


class FailingTx:
    """A transaction in which one statement fails: the one for which `is_due`, asked before each, says so."""

    def __init__(self, tx: Tx, is_due: Callable[[], bool], error: Exception) -> None:
        self._tx = tx
        self._is_due = is_due
        self._error = error
        self.has_failed = False

    @property
    def now(self) -> int:
        return self._tx.now

    @property
    def waits(self) -> bool:
        return self._tx.waits

    def rows(self, name: str, /, **params: Any) -> list[Row]:
        self._ask()
        return self._tx.rows(name, **params)

    def one(self, name: str, /, **params: Any) -> Row | None:
        self._ask()
        return self._tx.one(name, **params)

    def records(self, name: str, kind: type[T], /, **params: Any) -> list[T]:
        self._ask()
        return self._tx.records(name, kind, **params)

    def run(self, name: str, /, **params: Any) -> None:
        self._ask()
        self._tx.run(name, **params)

    def changed(self, name: str, /, **params: Any) -> int:
        self._ask()
        return self._tx.changed(name, **params)

    def recent(self, name: str, max_age_s: float, /, **params: Any) -> list[Any]:
        self._ask()
        return self._tx.recent(name, max_age_s, **params)

    def on_table(self, name: str, table: str) -> str:
        return self._tx.on_table(name, table)

    def tell(self, hint: Hint) -> None:
        self._tx.tell(hint)

    def withdraw_ready(self, lanes: Mapping[int, int]) -> None:
        self._tx.withdraw_ready(lanes)

    def _ask(self) -> None:
        if self._is_due():
            self.has_failed = True
            raise self._error


def broken(code: int) -> sqlite3.OperationalError:
    """An error as SQLite raises it."""
    error = sqlite3.OperationalError("made to fail")
    error.sqlite_errorcode = code
    error.sqlite_errorname = "SQLITE_SIMULATED"
    return error
