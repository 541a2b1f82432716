"""Runs operations on one connection to PostgreSQL, and repeats them when the connection or the transaction fails.

A transaction that failed for a transient reason is run again, on a new connection if necessary, until its callers have
waited for `busy_s`. If the connection breaks during the COMMIT, the outcome is looked up by the transaction's id. A
server that crashed or was replaced meanwhile cannot tell: then the transaction is run again, and a unique violation of
its ids shows that the first run was committed. Only if neither helps does the caller get `CommitUnknown`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence

import psycopg

from rota.clock import MACHINE, Clock
from rota.domain.errors import CommitUnknown, StoreError, StoreFull, StoreUnavailable
from rota.store.hints import Hint
from rota.store.pending_call import PendingCall
from rota.store.port import NotNow, declared
from rota.store.postgres.errors import Remedy, first_line, remedy, translated
from rota.store.postgres.link import Link
from rota.store.postgres.session import PostgresSession
from rota.store.postgres.url import Address

FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 0.5
LEAST_S = 1.0
LAST_LOOK_S = 5.0


class Patience:
    """A time limit for retries, with an exponential back-off between them. It ends at once when the store is closed."""

    def __init__(self, seconds: float, closing: threading.Event) -> None:
        self._closing = closing
        self.until = MACHINE.monotonic() + seconds
        self._pause_s = FIRST_PAUSE_S

    def lasts(self) -> bool:
        return MACHINE.monotonic() < self.until and not self._closing.is_set()

    def pause(self) -> None:
        self._closing.wait(self._pause_s)
        self._pause_s = min(LONGEST_PAUSE_S, 2 * self._pause_s)


class _AlreadyCommitted(Exception):
    """The repeat of a transaction in doubt found the rows of the first run."""


class Writer:
    """One connection, opened when it is needed and again after it broke."""

    def __init__(
        self,
        address: Address,
        clock: Clock,
        purpose: str,
        busy_s: float,
        send: Callable[[Sequence[Hint]], None],
        cut_s: float | None = None,
    ) -> None:
        """`busy_s` is how long a caller waits; `cut_s` is how long one try may take, if that should be less."""
        self._address = address
        self._clock = clock
        self._purpose = purpose
        self._busy_s = busy_s
        self._cut_s = busy_s if cut_s is None else min(cut_s, busy_s)
        self._send = send
        self._link: Link | None = None
        self._session: PostgresSession | None = None
        self._in_doubt = False
        self._postponed: list[PendingCall] = []
        self.closing = threading.Event()

    def perform(self, group: list[PendingCall]) -> list[PendingCall]:
        """Runs the group in one transaction and answers every caller.

        Returns the calls that must be tried again later, because another transaction holds a lock that they need.
        """
        patience = Patience(self._busy_s, self.closing)
        self._in_doubt, self._postponed = False, []
        try:
            if not self._repeat(group, patience):
                # One of the calls was refused: each is run by itself and gets its own answer.
                for call in group:
                    if call.is_begun and not call.is_ended:
                        self._repeat([call], patience)
        except BaseException as error:  # A caller gets an answer even after a bug in this class.
            self.let_go()
            self._fail(group, error)
            raise
        return self._postponed

    def let_go(self) -> None:
        """Closes the connection; the next operation opens another."""
        if self._link is not None:
            self._link.close()
        self._link = self._session = None

    def _repeat(self, group: list[PendingCall], patience: Patience) -> bool:
        """Tries until every call has its answer. False if the calls must be run one by one; nothing was done then."""
        while True:
            try:
                return self._try(group, patience)
            except psycopg.Error as error:
                group = self._still_waiting(group, error, can_retry=self._recover(error))
                if not group:
                    return True
            except CommitUnknown as error:
                self._fail(group, error)
                return True
            except NotNow as error:
                self._undo()
                self._postpone(group[0], error)
                return True
            finally:
                if self._link is not None:
                    self._link.give_up_at = None
            patience.pause()

    def _try(self, group: list[PendingCall], patience: Patience) -> bool:
        link, session = self._open()
        now = MACHINE.monotonic()
        asked_at = min(call.asked_at for call in group)
        link.give_up_at = min(now + self._cut_s, max(now + LEAST_S, asked_at + self._busy_s))
        if declared(group[0].op).is_repeatable and not link.is_pooled:
            return self._try_repeatable(session, group)
        if not link.is_pooled and self._try_one_statement(session, group):
            return True
        session.begin_writing()
        calls = [call for call in group if call.is_begun or call.begin()]
        try:
            if calls and not (self._run(session, calls) and self._commit(session, calls, patience)):
                self._undo()
                if len(calls) > 1:
                    return False
                calls[0].end()
                return True
        except _AlreadyCommitted:
            self._undo()
            if len(calls) > 1:
                return False
            # The first run left a result, unless it was one statement: then the result follows from the arguments.
            if (known := declared(calls[0].op).one_statement) is not None:
                calls[0].result = known.answer(None, *calls[0].args)
        self._answer(calls, session.hints)
        return True

    def _try_repeatable(self, session: PostgresSession, group: list[PendingCall]) -> bool:
        """Runs one idempotent statement, which is its own transaction."""
        (call,) = group
        if call.is_begun or call.begin():
            session.begin_autocommit()
            self._run(session, group)
            call.end()
        return True

    def _try_one_statement(self, session: PostgresSession, group: list[PendingCall]) -> bool:
        """Runs the whole group as one statement, if the operation has such a form; False if it must run in full."""
        known = declared(group[0].op).one_statement
        if known is None:
            return False
        calls = [call for call in group if call.is_begun or call.begin()]
        args = known.joined([call.args for call in calls]) if calls else None
        if args is None:
            return not calls
        session.begin_autocommit()
        try:
            found = known.run(session, *args)
            if found is None:
                return False
        except psycopg.Error as error:
            is_double = isinstance(error, psycopg.errors.UniqueViolation)
            if not (is_double and self._in_doubt):
                is_lost = self._link is not None and self._link.is_broken
                if remedy(error) is Remedy.NONE and not is_lost:
                    return False  # The full operation finds out which call is to be refused.
                # The statement may have been committed: a repeat finds its ids.
                self._in_doubt = self._in_doubt or is_lost
                raise
            found = None
        for call in calls:
            call.result = known.answer(found, *call.args)
        self._answer(calls, session.hints)
        return True

    def _answer(self, calls: list[PendingCall], hints: list[Hint]) -> None:
        with contextlib.suppress(Exception):  # Hints may be lost, and no call may fail because of one.
            self._send(hints)
        for call in calls:
            call.end()

    def _open(self) -> tuple[Link, PostgresSession]:
        if self._link is None or self._session is None:
            self._link = Link(self._address, self._purpose)
            self._session = PostgresSession(self._link, self._address.schema, self._clock)
        return self._link, self._session

    def _run(self, session: PostgresSession, calls: list[PendingCall]) -> bool:
        """False if the operation raised; a single call then has the error."""
        together = declared(calls[0].op).together if len(calls) > 1 else None
        try:
            if together is None:
                (call,) = calls
                call.result = call.op(session, *call.args, **call.kwargs)
            else:
                for call, result in zip(calls, together(session, [call.args for call in calls]), strict=True):
                    call.result = result
        except psycopg.Error as error:
            return self._refused_by_database(calls, error)
        except NotNow:
            if len(calls) > 1:
                return False
            raise
        except BaseException as error:
            return self._refused(calls, error)
        return True

    def _refused_by_database(self, calls: list[PendingCall], error: psycopg.Error) -> bool:
        """False if the error is final. Raises it if another try may help, and `_AlreadyCommitted` if it shows that the
        first run was committed."""
        if self._in_doubt and isinstance(error, psycopg.errors.UniqueViolation):
            raise _AlreadyCommitted from error
        if remedy(error) is not Remedy.NONE:
            raise error
        return self._refused(calls, translated(error, self._address.shown))

    def _refused(self, calls: list[PendingCall], error: BaseException) -> bool:
        if len(calls) == 1:
            # The repeat of a transaction in doubt may be refused because of its own first run, which took the key or
            # the last place in the queue.
            calls[0].error = self._unknown(f"the repeat was refused: {error}") if self._in_doubt else error
        return False

    def _postpone(self, call: PendingCall, error: NotNow) -> None:
        if MACHINE.monotonic() - call.asked_at < self._busy_s and not self.closing.is_set():
            call.postpone()
            self._postponed.append(call)
        else:
            self._fail([call], self._tried(error))

    def _commit(self, session: PostgresSession, calls: list[PendingCall], patience: Patience) -> bool:
        """True if the transaction is committed. False if the database has refused a postponed statement. Raises a
        database error if another try may help, `_AlreadyCommitted`, and CommitUnknown if in doubt."""
        if not session.needs_commit:
            return True
        link, _ = self._open()
        session.ensure_begun()  # The id of the transaction must be known before COMMIT is sent, to look it up.
        try:
            session.commit()
        except psycopg.Error as error:
            if not link.is_broken and remedy(error) is not Remedy.RECONNECT:
                return self._refused_by_database(calls, error)
            self.let_go()
            if not self._is_committed(session.xid, link.life, patience):
                raise
        return True

    def _is_committed(self, xid: int, life: str, patience: Patience) -> bool:
        """Looks up a transaction whose COMMIT got no answer, for a little longer than callers usually wait."""
        patience.until = max(patience.until, MACHINE.monotonic() + LAST_LOOK_S)
        while True:
            try:
                link, _ = self._open()
                if link.life != life:
                    # The server crashed or was replaced, so its ids mean other transactions. The repeat will show.
                    self._in_doubt = True
                    return False
                status = link.status_of(xid)
            except psycopg.Error as error:
                self.let_go()
                status = f"unknown ({first_line(error)})"
            if status in ("committed", "aborted"):
                return status == "committed"
            if not patience.lasts():
                raise self._unknown(status)
            patience.pause()

    def _recover(self, error: psycopg.Error) -> bool:
        """Rolls back, or drops a broken connection; False if a retry would fail again."""
        wanted = remedy(error)
        if self._link is not None and self._link.is_broken and wanted is Remedy.NONE:
            wanted = Remedy.RECONNECT
        self._undo()
        if wanted is Remedy.RECONNECT:
            self.let_go()
        return wanted is not Remedy.NONE and not self.closing.is_set()

    def _still_waiting(self, group: list[PendingCall], error: psycopg.Error, *, can_retry: bool) -> list[PendingCall]:
        """The calls whose callers can wait longer. The others fail: nothing was done for them."""
        now = MACHINE.monotonic()
        patience_s = self._busy_s + (LAST_LOOK_S if self._in_doubt else 0.0)
        left = [call for call in group if can_retry and now - call.asked_at < patience_s]
        gone = [call for call in group if call not in left]
        if gone:
            self._fail(gone, self._unknown(first_line(error)) if self._in_doubt else self._explained(error))
        return left

    def _undo(self) -> None:
        if self._link is not None and self._session is not None:
            self._session.forget()
            try:
                if self._link.is_in_transaction:
                    self._link.rollback()
            except psycopg.Error:
                self.let_go()

    def _fail(self, group: list[PendingCall], error: BaseException) -> None:
        for call in group:
            if not call.is_ended and (call.is_begun or call.begin()):
                call.error = error
                call.end()

    def _explained(self, error: psycopg.Error) -> StoreError:
        known = translated(error, self._address.shown)
        if isinstance(known, StoreUnavailable) and known.may_pass and not isinstance(known, StoreFull):
            return self._tried(known)
        return known

    def _tried(self, error: Exception) -> StoreUnavailable:
        words = f"{error} (tried for {self._busy_s:g} s; nothing was accepted)"
        return StoreUnavailable(words, may_pass=True)

    def _unknown(self, why: str) -> CommitUnknown:
        return CommitUnknown(
            f"the connection to {self._address.shown} broke during the commit, and whether it was accepted is not "
            f"known ({why}): look before you try again, or use a key"
        )
