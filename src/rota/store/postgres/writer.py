"""Carries out operations on one connection to PostgreSQL, whatever happens to that connection.

A transaction that failed for a passing reason is run again, on a new connection if need be, until those who wait for
it have waited long enough. If the connection breaks during the COMMIT nobody told us how it ended, so we ask: a
transaction has a number, and the server knows what became of it. A server that crashed or was replaced meanwhile does
not: then the transaction is run again, and ids that are there already give away that it had landed. Only when neither
helps does the caller hear that we do not know.
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
    """How long to go on trying, with pauses that grow. Ends at once when the store is closed."""

    def __init__(self, seconds: float, closing: threading.Event) -> None:
        self._closing = closing
        self.until = MACHINE.monotonic() + seconds
        self._pause_s = FIRST_PAUSE_S

    def lasts(self) -> bool:
        return MACHINE.monotonic() < self.until and not self._closing.is_set()

    def pause(self) -> None:
        self._closing.wait(self._pause_s)
        self._pause_s = min(LONGEST_PAUSE_S, 2 * self._pause_s)


class _LandedBefore(Exception):
    """What is being repeated, because its commit was in doubt, turns out to be there already."""


class Writer:
    """One connection, made when it is needed and again when it broke."""

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
        """Runs the group in one transaction and tells every caller how its operation ended.

        Returns those that must be tried again, because somebody holds what they need.
        """
        patience = Patience(self._busy_s, self.closing)
        self._in_doubt, self._postponed = False, []
        try:
            if not self._carry_out(group, patience):
                # One of them was refused. Each is run by itself and gets its own answer.
                for work in group:
                    if work.is_begun and not work.is_ended:
                        self._carry_out([work], patience)
        except BaseException as error:  # Not even an error of our own may leave a caller without an answer.
            self.let_go()
            self._fail(group, error)
            raise
        return self._postponed

    def let_go(self) -> None:
        """Closes the connection; the next operation opens another."""
        if self._link is not None:
            self._link.close()
        self._link = self._session = None

    def _carry_out(self, group: list[PendingCall], patience: Patience) -> bool:
        """Until it is done, refused or hopeless. False if a group must be run one by one; nothing was done then."""
        while True:
            try:
                return self._try(group, patience)
            except psycopg.Error as error:
                group = self._those_who_wait(group, error, can_pass=self._mend(error))
                if not group:
                    return True
            except CommitUnknown as error:
                self._fail(group, error)
                return True
            except NotNow as error:
                self._undo()
                self._put_off(group[0], error)
                return True
            finally:
                if self._link is not None:
                    self._link.give_up_at = None
            patience.pause()

    def _try(self, group: list[PendingCall], patience: Patience) -> bool:
        link, session = self._timed(min(work.asked_at for work in group))
        if declared(group[0].op).is_repeatable and not link.is_pooled:
            return self._try_alone(session, group)
        if not link.is_pooled and self._try_at_once(session, group):
            return True
        begun_at = MACHINE.monotonic()
        xid = self._begin(link, session)
        works = [work for work in group if work.is_begun or work.begin(begun_at)]
        hints: list[Hint] = []
        try:
            if works and not self._run(session, works):
                self._undo()
                if len(works) > 1:
                    return False
                works[0].end()
                return True
            hints = session.hints
            self._commit(xid, patience)
        except _LandedBefore:
            self._undo()
            if len(works) > 1:
                return False
            # If it was one statement, nobody has kept its answer; else that of the first try stands.
            if (known := declared(works[0].op).one_statement) is not None:
                works[0].result = known.answer(*works[0].args)
        with contextlib.suppress(Exception):  # Hints may be lost, and no caller may pay for one.
            self._send(hints)
        for work in works:
            work.end()
        return True

    def _try_alone(self, session: PostgresSession, group: list[PendingCall]) -> bool:
        """One statement, which is its own transaction and does no harm if it is carried out twice."""
        (work,) = group
        if work.is_begun or work.begin():
            session.begin_alone()
            self._run(session, group)
            work.end()
        return True

    def _try_at_once(self, session: PostgresSession, group: list[PendingCall]) -> bool:
        """The whole group as one statement, if there is such a form; False if it must be run in full."""
        known = declared(group[0].op).one_statement
        if known is None:
            return False
        works = [work for work in group if work.is_begun or work.begin()]
        args = known.joined([work.args for work in works]) if works else None
        if args is None:
            return not works
        session.begin_alone()
        try:
            if not known.run(session, *args):
                return False
        except psycopg.Error as error:
            is_double = isinstance(error, psycopg.errors.UniqueViolation)
            if not (is_double and self._in_doubt):
                if remedy(error) is Remedy.NONE and not self._has_lost_link():
                    return False  # The long way tells whose fault it is.
                # It may have been carried out; the repeat will show.
                self._in_doubt = self._in_doubt or self._has_lost_link()
                raise
        with contextlib.suppress(Exception):
            self._send(session.hints)
        for work in works:
            work.result = known.answer(*work.args)
            work.end()
        return True

    def _has_lost_link(self) -> bool:
        return self._link is not None and self._link.is_broken

    def _timed(self, asked_at: float) -> tuple[Link, PostgresSession]:
        """The connection, which is cut if it takes longer than whoever asked can wait."""
        link, session = self._open()
        now = MACHINE.monotonic()
        link.give_up_at = min(now + self._cut_s, max(now + LEAST_S, asked_at + self._busy_s))
        return link, session

    @staticmethod
    def _begin(link: Link, session: PostgresSession) -> int:
        time, xid = link.begin()
        session.begin(time)
        return xid

    def _open(self) -> tuple[Link, PostgresSession]:
        if self._link is None or self._session is None:
            self._link = Link(self._address, self._purpose)
            self._session = PostgresSession(self._link, self._address.schema, self._clock)
        return self._link, self._session

    def _run(self, session: PostgresSession, works: list[PendingCall]) -> bool:
        """False if the operation refused; the error is with the work then, unless there were several."""
        together = declared(works[0].op).together if len(works) > 1 else None
        try:
            if together is None:
                (work,) = works
                work.result = work.op(session, *work.args, **work.kwargs)
            else:
                for work, result in zip(works, together(session, [work.args for work in works]), strict=True):
                    work.result = result
        except psycopg.Error as error:
            if self._in_doubt and isinstance(error, psycopg.errors.UniqueViolation):
                raise _LandedBefore from error
            if remedy(error) is not Remedy.NONE:
                raise
            return self._refused(works, translated(error, self._address.shown))
        except NotNow:
            if len(works) > 1:
                return False
            raise
        except BaseException as error:
            return self._refused(works, error)
        return True

    def _put_off(self, work: PendingCall, error: NotNow) -> None:
        if MACHINE.monotonic() - work.asked_at < self._busy_s and not self.closing.is_set():
            work.postpone()
            self._postponed.append(work)
        else:
            self._fail([work], self._tried(error))

    def _refused(self, works: list[PendingCall], error: BaseException) -> bool:
        if len(works) == 1:
            # What is being repeated may be refused because of itself: it took the key, or the last place in the queue.
            works[0].error = self._unknown(f"the repeat was refused: {error}") if self._in_doubt else error
        return False

    def _commit(self, xid: int, patience: Patience) -> None:
        """Returns if it is committed. Raises a database error if it is certainly not, CommitUnknown if nobody knows."""
        link, _ = self._open()
        try:
            link.commit()
        except psycopg.Error as error:
            if not link.is_broken and remedy(error) is not Remedy.RECONNECT:
                raise
            self.let_go()
            if not self._has_landed(xid, link.life, patience):
                raise

    def _has_landed(self, xid: int, life: str, patience: Patience) -> bool:
        """What became of a transaction whose COMMIT got no answer. To know is worth some more patience."""
        patience.until = max(patience.until, MACHINE.monotonic() + LAST_LOOK_S)
        while True:
            try:
                link, _ = self._open()
                if link.life != life:
                    # It crashed, or another took over: its numbers mean other transactions. The repeat will show.
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

    def _mend(self, error: psycopg.Error) -> bool:
        """Makes ready for another try; False if there is none worth making."""
        wanted = remedy(error)
        if self._link is not None and self._link.is_broken and wanted is Remedy.NONE:
            wanted = Remedy.RECONNECT
        self._undo()
        if wanted is Remedy.RECONNECT:
            self.let_go()
        return wanted is not Remedy.NONE and not self.closing.is_set()

    def _those_who_wait(self, group: list[PendingCall], error: psycopg.Error, *, can_pass: bool) -> list[PendingCall]:
        """The callers who have patience left. The others are told what went wrong: nothing was done for them."""
        now = MACHINE.monotonic()
        patience_s = self._busy_s + (LAST_LOOK_S if self._in_doubt else 0.0)
        left = [work for work in group if can_pass and now - work.asked_at < patience_s]
        gone = [work for work in group if work not in left]
        if gone:
            known = self._unknown(first_line(error)) if self._in_doubt else self._explained(error)
            self._fail(gone, known)
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
        for work in group:
            if not work.is_ended and (work.is_begun or work.begin()):
                work.error = error
                work.end()

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
