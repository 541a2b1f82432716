"""Classifies the errors of PostgreSQL: which are worth a retry, and on which connection."""

from __future__ import annotations

import re
from enum import Enum

import psycopg

from rota.domain.errors import StoreError, StoreFull, StoreMismatch, StoreUnavailable


class Remedy(Enum):
    """The remedy after an error."""

    AGAIN = "the same again, on the same connection"
    RECONNECT = "the same again, on a new connection"
    NONE = "nothing: the same call would fail again"


_AGAIN = {
    "40001",  # serialization_failure
    "40P01",  # deadlock_detected
    "55P03",  # lock_not_available: our own lock_timeout, behind an ALTER TABLE
    _CANCELLED := "57014",  # query_canceled: our own statement_timeout, or an operator
}
_RECONNECT = {
    _NO_WRITES := "25006",  # read_only_sql_transaction: the server is a standby now
    "25P03",  # idle_in_transaction_session_timeout
    "25P04",  # transaction_timeout
    "53300",  # too_many_connections
    "57P01",  # admin_shutdown, also pg_terminate_backend
    "57P02",  # crash_shutdown
    "57P03",  # cannot_connect_now
    "57P05",  # idle_session_timeout
    "26000",  # invalid_sql_statement_name: a pooler gave us another connection
}
_LOST = "08"  # connection_exception
_OVERTAKEN = {"40001", "40P01"}
_CACHED = ("0A000", "cached plan")  # A migration has changed a table that a prepared statement uses.
_FULL = {"53100", "53200", "53400"}
_NO_GRANT = "42501"
_NO_RIGHT = {"28000", "28P01", "3D000"}
_NO_SCHEMA = {"3F000", "42P01", "42703", "42883"}
# Classes about the state of the server and not about the statement, so the same call may succeed later: resources,
# operator intervention, the disk, settings, bugs of the server.
_OF_THE_SERVER = {"25", "40", "53", "55", "57", "58", "F0", "XX"}
_REFUSALS = (
    "authentication failed",
    "does not exist",
    "no pg_hba.conf entry",
    "pg_hba.conf rejects",
    "permission denied",
    "no password supplied",
    "not permitted to log in",
    "no such database",
    "no such user",
    _NO_SSL := "server does not support SSL",
)
_READ_ONLY = "session is read-only"
_HUNG_UP = "server closed the connection unexpectedly"
_BAD_OPTION = re.compile(r"invalid [\w ]+ value|invalid port number|could not match \d+")


def remedy(error: BaseException) -> Remedy:
    if not isinstance(error, psycopg.Error):
        return Remedy.NONE
    state = error.sqlstate
    if state is None:
        return Remedy.RECONNECT if _is_lost(error) and not is_refusal(error) else Remedy.NONE
    if state in _AGAIN:
        return Remedy.AGAIN
    if state in _RECONNECT or state[:2] == _LOST or (state == _CACHED[0] and _CACHED[1] in str(error)):
        return Remedy.RECONNECT
    return Remedy.NONE


def _is_lost(error: psycopg.Error) -> bool:
    """Whether an error without a code says that the connection could not be made, or broke.

    Such errors come from libpq. Where Rota calls libpq directly they are plain `DatabaseError`s; wrong calls raise
    subclasses.
    """
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) or type(error) is psycopg.DatabaseError


def is_refusal(error: psycopg.Error) -> bool:
    """Whether the server refuses the connection for good: while connecting, libpq gives such errors no code."""
    text = str(error)
    return any(part in text for part in _REFUSALS) or bool(_BAD_OPTION.search(text))


def translated(error: psycopg.Error, shown: str) -> StoreError:
    """A PostgreSQL error as a StoreError with a message that says what to do."""
    state, text = error.sqlstate, first_line(error)
    if state in _FULL:
        return StoreFull(f"{shown} has no room left ({text}); nothing was accepted. Free some and try again")
    if remedy(error) is not Remedy.NONE:
        return StoreUnavailable(_words_for_passing(error, shown, text), may_pass=True)
    if state in _NO_SCHEMA:
        return StoreMismatch(f"{shown} lacks a table or column that this version needs ({text}): run `rota migrate`")
    if state == _NO_GRANT:
        return StoreUnavailable(
            f"{shown} refuses: {text}. Grant it to the URL's user, or use the owner of Rota's tables; "
            "`rota doctor` says what is missing"
        )
    if _NO_SSL in str(error):
        return StoreUnavailable(f"{shown} refuses: {text}. Check sslmode in the URL, or let the server use SSL")
    if state in _NO_RIGHT or is_refusal(error):
        return StoreUnavailable(f"{shown} refuses: {text}. Check the URL's user, password and database, and its rights")
    if state is not None and state[:2] in _OF_THE_SERVER:
        return StoreUnavailable(f"{shown} has a problem of its own: {text} ({state})")
    return StoreError(f"{shown}: {text}")


def _words_for_passing(error: psycopg.Error, shown: str, text: str) -> str:
    if error.sqlstate in _OVERTAKEN:
        return f"{shown} rolled this back because of a conflict with another transaction ({text}): try again"
    if error.sqlstate in _AGAIN:
        if error.sqlstate == _CANCELLED:
            return f"{shown} did not finish this ({text}): {_SLOW}"
        return f"{shown} waited too long for a lock ({text}): an open transaction holds {_WHAT}"
    if error.sqlstate == _NO_WRITES or _READ_ONLY in str(error):
        return (
            f"{shown} cannot be written to ({text}): the server is a standby, or default_transaction_read_only is on "
            "for the URL's user or database"
        )
    if error.sqlstate is None and _HUNG_UP in text:
        # The watchdog also closes the connection when an answer takes too long; the error is the same.
        return f"{shown} cannot be reached: {text}, or gave no answer in time. If it is up, {_SLOW}"
    return f"{shown} cannot be reached: {text}. Check that the server runs, and the URL"


_WHAT = "a lock or a key that this needs: `rota doctor` names long transactions"
_SLOW = f"this is more work than the server can do in the time, or an open transaction holds {_WHAT}"


def first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
