"""What the rest of Rota knows of a database.

An operation is a plain function `op(tx, *args)` that runs inside one transaction. `Store.transact` ships the whole
function to the database, retries what is worth retrying, and sends the operation's hints after the commit. Reading
needs no operation: `Store.read` runs a function over a consistent `View`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import msgspec

from rota.domain.errors import StoreUnavailable
from rota.store.hints import Bus, Hint

P = ParamSpec("P")
T = TypeVar("T")
Row = tuple[Any, ...]
WRITER = "rota-writer"
"""The name, as the kernel shows it, of the thread that holds the write lock of a database that has one for all."""


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
    """Somebody's open transaction holds what an operation needs. The store undoes what it did, and tries again."""


class Tx(View, Protocol):
    """A view that may also write."""

    @property
    def waits(self) -> bool:
        """Whether to wait for what somebody else holds. Otherwise the operation is to raise `NotNow`."""

    def run(self, name: str, /, **params: Any) -> int:
        """Executes a statement and returns how many rows it changed."""

    def tell(self, hint: Hint) -> None:
        """Sends `hint` once the transaction is committed."""

    def recent(self, name: str, max_age_s: float, /, **params: Any) -> list[Any]:
        """The first row, possibly as it was up to `max_age_s` ago; the caller may adjust the remembered list."""


Together = Callable[[Tx, Sequence[tuple[Any, ...]]], Sequence[Any]]
"""Many waiting calls of one operation as one: the argument tuples come in, one result each comes out.

If it raises, every call is run by itself and gets its own answer.
"""


class OneStatement(msgspec.Struct, frozen=True):
    """The form of an operation that is one statement, and so a transaction by itself.

    What it inserts has new ids: if it is carried out twice, the second time is refused as a double, and all of it has
    landed.
    """

    run: Callable[..., bool]
    """False if it did nothing, and the whole operation must be run."""
    answer: Callable[..., Any]
    """The result of a call that `run` has carried out; by the call's own arguments."""
    joined: Callable[[Sequence[tuple[Any, ...]]], tuple[Any, ...] | None]
    """The arguments for several calls in one; None if they do not go together, or need the whole operation."""


class Operation(msgspec.Struct, frozen=True):
    """What a store may do with an operation, or with a query, besides running it in a transaction of its own."""

    is_large: bool = False
    """A call may have many thousands of rows. Where there is one write lock for all processes, one such call at a time
    waits for it, so that a heartbeat never waits for more than one."""
    is_urgent: bool = False
    """It must not wait for others: where there are several connections, it has one of its own."""
    is_repeatable: bool = False
    """It is one statement and may be carried out twice without harm: it needs no BEGIN and COMMIT."""
    together: Together | None = None
    one_statement: OneStatement | None = None


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
) -> Callable[[C], C]:
    """Declares what a store may do with an operation; see `Operation`. One without a declaration is `PLAIN`."""

    def declare(op: C) -> C:
        _declared[op] = Operation(is_large, is_urgent, is_repeatable, together, one_statement)
        return op

    return declare


def declared(op: Callable[..., Any]) -> Operation:
    return _declared.get(op, PLAIN)


class Submitted(Future[T]):
    """The answer to an operation that was submitted, and for how long it waited until the store began it.

    The store reads the database's clock for an operation after it has begun it.
    """

    waited_s = 0.0


class Store(Protocol):
    """A database."""

    bus: Bus
    patience_s: float | None
    """How long an operation that was submitted may wait to begin before its caller should take it back; None if the
    store itself gives up."""

    def submit(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> Submitted[T]:
        """Runs `op` in a transaction; the future is done once that is durable."""

    def transact(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`submit`, and wait."""

    def read(self, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs `query` over a consistent state."""

    def too_busy(self) -> StoreUnavailable:
        """The error for a caller that took its operation back after `patience_s`."""

    def blocker(self) -> int | None:
        """The process of this machine that holds the write lock, if the database has one for all."""

    def commits(self) -> int | None:
        """A number that changes with every commit of any process, if the database has one write lock for all of them;
        None if it has not. Never waits for that lock."""

    def trouble(self) -> str | None:
        """Why this store can no longer be worked with, if that is so; a cheap look."""

    def close(self) -> None: ...
