"""The interface of a database to the rest of Rota.

An operation is a plain function `op(tx, *args)` that runs inside one transaction. `Store.transact` runs the whole
function, repeats it after transient errors, and sends its hints after the commit. Reading needs no operation:
`Store.read` runs a function over a consistent `View`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import msgspec

from rota.domain.errors import StoreUnavailable
from rota.store.hints import Bus, Hint
from rota.store.watch import Watch

P = ParamSpec("P")
T = TypeVar("T")
Row = tuple[Any, ...]
WRITER = "rota-writer"
"""The name, as the kernel shows it, of the thread that holds the write lock of an SQLite file."""


class View(Protocol):
    """Named statements over one consistent state of the database. Lists travel as one JSON value."""

    @property
    def now(self) -> int:
        """The database's clock."""

    def rows(self, name: str, /, **params: Any) -> list[Row]: ...

    def one(self, name: str, /, **params: Any) -> Row | None: ...

    def records(self, name: str, kind: type[T], /, **params: Any) -> list[T]:
        """Rows as structs whose fields are in the order of the columns."""


class NotNow(Exception):
    """Another transaction holds a lock that an operation needs. The store rolls back and runs the operation again."""


class Tx(View, Protocol):
    """A view that may also write."""

    @property
    def waits(self) -> bool:
        """Whether an operation waits for a lock of another transaction. Otherwise it raises `NotNow`."""

    def run(self, name: str, /, **params: Any) -> None:
        """Executes a statement. PostgreSQL may send it later, together with the next statement that has a result."""

    def changed(self, name: str, /, **params: Any) -> int:
        """Executes a statement and returns how many rows it changed."""

    def tell(self, hint: Hint) -> None:
        """Sends `hint` once the transaction is committed."""

    def withdraw_ready(self, lanes: Mapping[int, int]) -> None:
        """Removes lanes from the `Ready` hints, by lane and rank.

        The transaction has taken all ready rows of the lane with a rank above this one, so no worker need look there.
        """

    def on_table(self, name: str, table: str) -> str:
        """The name of a copy of statement `name` that works on a table of the user. The caller has checked `table`."""

    def recent(self, name: str, max_age_s: float, /, **params: Any) -> list[Any]:
        """The first row, cached for up to `max_age_s`; the caller may change the cached list."""


Together = Callable[[Tx, Sequence[tuple[Any, ...]]], Sequence[Any]]
"""Runs many waiting calls of one operation as one: takes their argument tuples, returns one result for each.

If it raises, every call is run by itself and gets its own answer.
"""


class OneStatement(msgspec.Struct, frozen=True):
    """The form of an operation that is one statement, and so its own transaction.

    Its rows have new ids: if it is run twice, a unique violation shows that the first run was committed as a whole.
    """

    run: Callable[..., Any]
    """None if it did nothing, and the full operation must run."""
    answer: Callable[..., Any]
    """The result of a call that `run` has executed: from what `run` returned, which is None if its answer was lost,
    and the call's arguments."""
    joined: Callable[[Sequence[tuple[Any, ...]]], tuple[Any, ...] | None]
    """The arguments for several calls in one; None if they cannot be joined, or need the full operation."""


class Operation(msgspec.Struct, frozen=True):
    """How a store may run an operation or a query, besides in a transaction of its own."""

    is_large: bool = False
    """A call may have many thousands of rows. On SQLite, one such call at a time waits for the write lock, so that a
    heartbeat never waits for more than one."""
    is_urgent: bool = False
    """It must not wait for other operations: on PostgreSQL it has a connection of its own."""
    is_repeatable: bool = False
    """It is one idempotent statement: it needs no BEGIN and COMMIT."""
    together: Together | None = None
    one_statement: OneStatement | None = None
    arrival: Callable[..., Any] | None = None
    """Its form for SQLite: one statement without BEGIN and COMMIT, which adds a row to `arrival`
    (`store/sqlite/arrivals.py`). Returns the result, or None if it wrote nothing and the full operation must run."""


PLAIN = Operation()
_declared: dict[Callable[..., Any], Operation] = {}
C = TypeVar("C", bound=Callable[..., Any])


def operation(
    *,
    is_large: bool = False,
    is_urgent: bool = False,
    is_repeatable: bool = False,
    together: Together | None = None,
    one_statement: OneStatement | None = None,
    arrival: Callable[..., Any] | None = None,
) -> Callable[[C], C]:
    """Declares what a store may do with an operation; see `Operation`. One without a declaration is `PLAIN`."""

    def declare(op: C) -> C:
        _declared[op] = Operation(is_large, is_urgent, is_repeatable, together, one_statement, arrival)
        return op

    return declare


def declared(op: Callable[..., Any]) -> Operation:
    return _declared.get(op, PLAIN)


class Submitted(Future[T]):
    """The answer to a submitted operation, and how long it waited until the store began it.

    The database's clock is read after that moment, so `tx.now` of the operation is never earlier.
    """

    waited_s = 0.0
    is_postponed = False
    """Whether another transaction held a lock that the operation needs."""


class Store(Protocol):
    """A database."""

    bus: Bus
    patience_s: float | None
    """How long a submitted operation may wait to begin before its caller should take it back; None if the store itself
    gives up."""

    def submit(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> Submitted[T]:
        """Runs `op` in a transaction; the future is done once that is durable."""

    def transact(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`submit`, and wait."""

    def read(self, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs `query` over a consistent state."""

    def read_watched(
        self, watch: Watch, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """`read`, and raises `ReadStopped` once `watch` is stopped."""

    def too_busy(self) -> StoreUnavailable:
        """The error for a caller that took its operation back after `patience_s`."""

    def blocker(self) -> int | None:
        """The process that holds the write lock of an SQLite file, if any."""

    def commits(self) -> int | None:
        """On SQLite, a number that changes with every commit of any process; else None. Never waits for a lock."""

    def trouble(self) -> str | None:
        """Why this store can no longer be used, if so; a cheap check."""

    def close(self) -> None: ...
