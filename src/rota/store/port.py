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

from rota.store.hints import Bus, Hint

P = ParamSpec("P")
T = TypeVar("T")
Row = tuple[Any, ...]


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
_together: dict[Callable[..., Any], Together] = {}


def runs_together(op: Callable[..., Any]) -> Callable[[Together], Together]:
    """Declares how many waiting calls of `op` are run at once: the argument tuples come in, one result each comes out.

    Far fewer statements, the same answers. If it raises, every call is run by itself and gets its own answer.
    """

    def declare(together: Together) -> Together:
        _together[op] = together
        return together

    return declare


def together_of(op: Callable[..., Any]) -> Together | None:
    return _together.get(op)


_apart: set[Callable[..., Any]] = set()
C = TypeVar("C", bound=Callable[..., Any])


def runs_apart(op: C) -> C:
    """Declares that `op` must not wait for the others: where there are several connections, it has one of its own."""
    _apart.add(op)
    return op


def is_apart(op: Callable[..., Any]) -> bool:
    return op in _apart


class AtOnce(msgspec.Struct, frozen=True):
    """The form of an operation that is one statement."""

    form: Callable[..., bool]
    """False if it did nothing, and the whole operation must be run."""
    answer: Callable[..., Any]
    """What a call is told when the form has done it; by its own arguments."""
    joined: Callable[[Sequence[tuple[Any, ...]]], tuple[Any, ...] | None]
    """The arguments for several calls in one; None if they do not go together, or need the whole operation."""


_at_once: dict[Callable[..., Any], AtOnce] = {}


def runs_at_once(
    op: Callable[..., Any],
    *,
    answer: Callable[..., Any],
    joined: Callable[[Sequence[tuple[Any, ...]]], tuple[Any, ...] | None],
) -> Callable[[Callable[..., bool]], Callable[..., bool]]:
    """Declares a form of `op` that is one statement, for one call or several.

    A statement is a transaction by itself, so a store with a long way to its database saves all other words. What it
    inserts has new ids: if it is carried out twice, the second time is refused as a double, and all of it has landed.
    """

    def declare(form: Callable[..., bool]) -> Callable[..., bool]:
        _at_once[op] = AtOnce(form, answer, joined)
        return form

    return declare


def at_once_of(op: Callable[..., Any]) -> AtOnce | None:
    return _at_once.get(op)


_alone: set[Callable[..., Any]] = set()


def asks_once(query: C) -> C:
    """Declares that an operation or query is one statement, and may be carried out twice without harm.

    Such a statement is a transaction by itself: nothing need be said before and after it.
    """
    _alone.add(query)
    return query


def is_alone(query: Callable[..., Any]) -> bool:
    return query in _alone


class Store(Protocol):
    """A database."""

    bus: Bus

    def submit(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Runs `op` in a transaction; the future is done once that is durable."""

    def transact(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`submit`, and wait."""

    def read(self, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs `query` over a consistent state."""

    def blocker(self) -> int | None:
        """The process of this machine that keeps everybody from writing right now, if that can be told."""

    def trouble(self) -> str | None:
        """Why this store can no longer be worked with, if that is so; a cheap look."""

    def close(self) -> None: ...
