"""An enqueue as one statement: the same rows as in a transaction, and accepted once even if the connection breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from rota.clock import ManualClock, SystemClock
from rota.domain.errors import ClockSkew, QueueFull, StoreError, UnknownJob
from rota.domain.job import Definition, Queue
from rota.domain.unique import Unique
from rota.ids import IdSource
from rota.ops import define, enqueue, submission
from rota.ops.submission import Header, Item
from rota.store.pending_call import PendingCall
from rota.store.postgres import session as postgres_session
from rota.store.postgres.session import PostgresSession, literal
from rota.store.postgres.store import PostgresStore
from tests.support.databases import fresh_database
from tests.support.postgres import shared
from tests.support.tables import table

VARYING = ("id", "created_at", "run_at", "key")
"""The columns of an execution in which the two ways may differ."""
ids = IdSource(SystemClock())


@pytest.fixture
def store() -> Iterator[PostgresStore]:
    store = PostgresStore(fresh_database())
    store.transact(define.register, "default", "shop", [_job("send")], [Queue(name="small", max_depth=1)])
    yield store
    store.close()


def _job(name: str) -> Definition:
    return Definition(
        name=name,
        queue="default",
        priority=0,
        retry={},
        timeout_s=None,
        total_timeout_s=None,
        start_within_s=None,
        parameters={},
        description="",
    )


def _header(**options: Any) -> Header:
    return Header(**{"namespace": "default", "app": "shop", "job": "send", "queue": "default", **options})


def _rows(store: PostgresStore, query: str) -> list[tuple[Any, ...]]:
    return shared().execute(query, database=store._address.conninfo.rsplit("/", 1)[1].split("?")[0])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"priority": 7},
        {"tags": '["x"]', "actor": "ann", "trace": "00-a-b-01"},
        {"queue": "default", "headers": '{"a":"b"}', "overrides": '{"timeout_s":1.5}'},
        {"parent": "0196a3f0-1111-7000-8000-0123456789ab", "replay_of": "0196a3f0-1111-7000-8000-0123456789ac"},
    ],
)
def test_a_one_statement_enqueue_writes_the_same_rows_as_a_transaction(
    store: PostgresStore, options: dict[str, Any]
) -> None:
    store.transact(enqueue.enqueue, _header(**options), [Item(ids.new(), "{}")])
    store.transact(enqueue.enqueue, _header(**options), [Item(ids.new(), "{}"), Item(ids.new(), "{}")])
    # An enqueue with a key runs as a transaction.
    store.transact(enqueue.enqueue, _header(**options, key="k"), [Item(ids.new(), "{}")])
    *short, long = table(store, "execution")
    for one in short:
        assert {**one, **dict.fromkeys(VARYING)} == {**long, **dict.fromkeys(VARYING)}
        assert {**one, **options} == one
    offsets = _rows(
        store,
        "SELECT r.lane, r.rank - x.run_at, r.fence, x.run_at - x.created_at FROM rota.ready r "
        "JOIN rota.execution x ON x.id = r.id",
    )
    assert len(offsets) == 4
    assert len(set(offsets)) == 1
    deltas = _rows(store, "SELECT lane, count, outcome FROM rota.stat_delta ORDER BY count")
    assert deltas == [(offsets[0][0], count, "created") for count in (1, 1, 2)]


def test_an_enqueue_that_does_not_fit_one_statement_runs_as_a_transaction(store: PostgresStore) -> None:
    with pytest.raises(UnknownJob):
        store.transact(enqueue.enqueue, _header(job="nothing"), [Item(ids.new(), "{}")])
    store.transact(enqueue.enqueue, _header(queue="new"), [Item(ids.new(), "{}")])
    store.transact(enqueue.enqueue, _header(queue="small"), [Item(ids.new(), "{}")])
    with pytest.raises(QueueFull):
        store.transact(enqueue.enqueue, _header(queue="small"), [Item(ids.new(), "{}")])
    with pytest.raises(ClockSkew):
        store.transact(enqueue.enqueue, _header(), [Item(IdSource(ManualClock()).new(), "{}")])
    assert len(_rows(store, "SELECT id FROM rota.execution")) == 2


def test_an_id_that_is_taken_is_refused(store: PostgresStore) -> None:
    item = Item(ids.new(), "{}")
    store.transact(enqueue.enqueue, _header(), [item])
    with pytest.raises(StoreError):
        store.transact(enqueue.enqueue, _header(), [item])


@pytest.mark.parametrize("is_late", [True, False], ids=["after", "before"])
def test_a_connection_that_breaks_around_the_statement_loses_and_doubles_nothing(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    breaks = _break(monkeypatch, "place_at_once_single", is_late=is_late)
    item = Item(ids.new(), "{}")
    (accepted,) = store.transact(enqueue.enqueue, _header(), [item])
    assert (accepted.id, accepted.created) == (item.id, True)
    assert [str(row[0]) for row in _rows(store, "SELECT id FROM rota.execution")] == [item.id]
    assert next(breaks, None) is None


def test_waiting_callers_share_one_statement(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = _count(monkeypatch)
    header, items = _header(), [Item(ids.new(), f'{{"n":{n}}}') for n in range(50)]
    group = [PendingCall(enqueue.enqueue, (header, [item]), {}) for item in items]
    _perform(store, group)
    assert seen == ["place_at_once"]
    assert [work.answer() for work in group] == [[submission.Accepted(item.id, True)] for item in items]
    assert _stored(store) == [(item.id, item.arguments) for item in items]


def test_callers_with_different_headers_do_not_share_a_statement(store: PostgresStore) -> None:
    calls = [(_header(), "a"), (_header(delay_s=5.0), "b"), (_header(key="k"), "c"), (_header(job="nothing"), "d")]
    group = [PendingCall(enqueue.enqueue, (header, [Item(ids.new(), f'"{name}"')]), {}) for header, name in calls]
    _perform(store, group)
    for work in group[:3]:
        assert work.answer() == [submission.Accepted(work.args[1][0].id, True)]
    with pytest.raises(UnknownJob):
        group[3].answer()
    assert [arguments for _, arguments in _stored(store)] == ['"a"', '"b"', '"c"']


def test_an_id_that_is_taken_fails_only_its_own_caller(store: PostgresStore) -> None:
    header, taken = _header(), Item(ids.new(), "{}")
    store.transact(enqueue.enqueue, header, [taken])
    group = [
        PendingCall(enqueue.enqueue, (header, [item]), {})
        for item in (Item(ids.new(), "{}"), taken, Item(ids.new(), "{}"))
    ]
    _perform(store, group)
    assert [work.error is None for work in group] == [True, False, True]
    assert len(_stored(store)) == 3


@pytest.mark.parametrize("is_late", [True, False], ids=["after", "before"])
def test_a_connection_that_breaks_around_a_group_fails_no_caller(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    breaks = _break(monkeypatch, "place_at_once", is_late=is_late)
    header, items = _header(), [Item(ids.new(), "{}") for _ in range(5)]
    group = [PendingCall(enqueue.enqueue, (header, [item]), {}) for item in items]
    _perform(store, group)
    assert [work.answer() for work in group] == [[submission.Accepted(item.id, True)] for item in items]
    assert [id for id, _ in _stored(store)] == [item.id for item in items]
    assert next(breaks, None) is None


@pytest.mark.parametrize(
    "options", [{"delay_s": 60.0}, {"key": "k"}, {"unique": Unique(on_conflict="reject")}, {"unique": Unique()}]
)
def test_a_commit_whose_answer_is_lost_is_reported_as_accepted(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    """The COMMIT succeeds, its answer is lost, and the server was replaced meanwhile."""
    original = PostgresSession.commit
    breaks = iter([True])

    def commit(self: PostgresSession) -> None:
        original(self)
        if next(breaks, False):
            self._link.life = "that of a server before this one"
            self._link.connection.pgconn.finish()
            raise psycopg.OperationalError("the connection broke")

    monkeypatch.setattr(PostgresSession, "commit", commit)
    item = Item(ids.new(), "{}")
    assert store.transact(enqueue.enqueue, _header(**options), [item]) == [submission.Accepted(item.id, True)]
    assert [id for id, _ in _stored(store)] == [item.id]
    assert next(breaks, None) is None


def _many(count: int) -> list[Item]:
    return [Item(ids.new(), f'{{"n":{n}}}') for n in range(count)]


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of more than six go in pieces of three."""
    monkeypatch.setattr(postgres_session, "PIECE", 3)


@pytest.mark.parametrize("count", [6, 7, 9, 10, 100])
@pytest.mark.usefixtures("pieces")
def test_a_large_batch_is_sent_in_pieces_and_stored_completely(store: PostgresStore, count: int) -> None:
    items = _many(count)
    accepted = store.transact(enqueue.enqueue, _header(), items)
    assert accepted == [submission.Accepted(item.id, True) for item in items]
    assert _stored(store) == [(item.id, item.arguments) for item in items]
    assert _rows(store, "SELECT count(*) FROM rota.ready") == [(count,)]


@pytest.mark.usefixtures("pieces")
def test_pieces_are_accepted_together_or_not_at_all(store: PostgresStore) -> None:
    taken = _many(1)
    store.transact(enqueue.enqueue, _header(), taken)
    with pytest.raises(StoreError):
        store.transact(enqueue.enqueue, _header(), [*_many(10), *taken])
    with pytest.raises(StoreError):
        store.transact(enqueue.enqueue, _header(), [*_many(10), Item(ids.new(), '"a\0b"')])
    with pytest.raises(UnknownJob):
        store.transact(enqueue.enqueue, _header(job="nothing"), _many(10))
    with pytest.raises(QueueFull):
        store.transact(enqueue.enqueue, _header(queue="small"), _many(10))
    assert _stored(store) == [(item.id, item.arguments) for item in taken]
    store.transact(enqueue.enqueue, _header(queue="new"), _many(10))  # A queue that did not exist.
    assert len(_stored(store)) == 11


@pytest.mark.usefixtures("pieces")
def test_a_depth_limit_that_is_set_between_two_pieces_is_respected(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    original: Callable[..., Any] = PostgresSession._receive
    turns = iter(range(100))

    def receive(self: PostgresSession, found: list[Any]) -> Any:
        if next(turns) == 1:
            _rows(store, "UPDATE rota.queue SET max_depth = 5 WHERE name = 'default' RETURNING 1")
        return original(self, found)

    monkeypatch.setattr(PostgresSession, "_receive", receive)
    with pytest.raises(QueueFull):
        store.transact(enqueue.enqueue, _header(), _many(20))
    assert _stored(store) == []


@pytest.mark.parametrize("words", [b"BEGIN", b"COMMIT"])
@pytest.mark.parametrize("is_late", [True, False], ids=["after", "before"])
@pytest.mark.usefixtures("pieces")
def test_a_connection_that_breaks_between_pieces_loses_and_doubles_nothing(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, words: bytes, is_late: bool
) -> None:
    store.transact(enqueue.enqueue, _header(), _many(1))
    breaks = iter([True])

    def broken(connection: Any, spoken: bytes) -> Any:
        if spoken != words or not next(breaks, False):
            return connection.exec_(spoken)
        if is_late:
            connection.exec_(spoken)
        connection.finish()
        raise psycopg.OperationalError("the connection broke")

    monkeypatch.setattr(PostgresSession, "_say", lambda self, spoken: broken(self._pgconn, spoken))
    items = _many(10)
    accepted = store.transact(enqueue.enqueue, _header(), items)
    assert accepted == [submission.Accepted(item.id, True) for item in items]
    assert len(_stored(store)) == 11
    assert next(breaks, None) is None


@pytest.mark.usefixtures("pieces")
def test_a_backend_that_ends_between_pieces_loses_and_doubles_nothing(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    original: Callable[..., Any] = PostgresSession._receive
    turns = iter(range(100))

    def receive(self: PostgresSession, found: list[Any]) -> Any:
        if next(turns) == 2:
            shared().execute(f"SELECT pg_terminate_backend({self._pgconn.backend_pid})", database="postgres")
        return original(self, found)

    monkeypatch.setattr(PostgresSession, "_receive", receive)
    items = _many(20)
    accepted = store.transact(enqueue.enqueue, _header(), items)
    assert accepted == [submission.Accepted(item.id, True) for item in items]
    assert _stored(store) == [(item.id, item.arguments) for item in items]


TEXTS = ['"', "\\", '\\"', '"}', ",", "NULL", "", "{}", " ", "\n", "ä€🎈", '{"a":"\\\\\\"b,c"}']


@pytest.mark.parametrize("texts", [TEXTS, TEXTS[:1], [""], ["NULL"], []], ids=len)
def test_any_text_is_stored_unchanged(texts: list[str]) -> None:
    with shared().connect("postgres") as session:
        for values in (texts, [*texts, None]):
            (found,) = session.execute("SELECT %s::text[]", (literal(values, "text").decode(),)).fetchone() or ()
            assert found == values


def test_a_text_with_a_nul_character_is_refused_and_not_split(store: PostgresStore) -> None:
    items = [Item(ids.new(), '"a\0b"'), Item(ids.new(), '"c"')]
    with pytest.raises(StoreError):
        store.transact(enqueue.enqueue, _header(), items)
    assert _stored(store) == []


def _perform(store: PostgresStore, group: list[PendingCall]) -> None:
    writer = store._new_writer()
    try:
        writer.perform(group)
    finally:
        writer.let_go()


def _stored(store: PostgresStore) -> list[tuple[str, str]]:
    return [(str(id), text) for id, text in _rows(store, "SELECT id, arguments FROM rota.execution ORDER BY id")]


def _count(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    seen: list[str] = []
    for method in ("rows", "run"):
        original: Callable[..., Any] = getattr(PostgresSession, method)

        def counted(self: PostgresSession, name: str, /, _original: Any = original, **params: Any) -> Any:
            seen.append(name)
            return _original(self, name, **params)

        monkeypatch.setattr(PostgresSession, method, counted)
    return seen


def _break(monkeypatch: pytest.MonkeyPatch, statement: str, *, is_late: bool) -> Iterator[bool]:
    original: Callable[..., Any] = PostgresSession.rows
    breaks = iter([True])

    def rows(self: PostgresSession, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
        if name != statement or not next(breaks, False):
            return original(self, name, **params)  # type: ignore[no-any-return]
        if is_late:
            original(self, name, **params)
        self._pgconn.finish()
        raise psycopg.OperationalError("the connection broke")

    monkeypatch.setattr(PostgresSession, "rows", rows)
    return breaks
