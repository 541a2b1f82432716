"""`rota.enqueue(…)` in SQL does what the Python API does: the same rows, the same refusals."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from rota import ArgumentsError, DefinitionError, KeyConflict, QueueFull, RotaError, Status, UnknownJob
from rota.domain import payload
from rota.ids import is_id, made_at
from rota.sdk.app import registry_of
from rota.sdk.job import registered
from rota.store.postgres.store import PostgresStore
from tests.support import postgres
from tests.support.canonical import canonical
from tests.transaction.shop import Shop

CALL = "SELECT rota.enqueue(%s, %s::text::jsonb{})"
# What JSON can carry to both: no NUL, no lone surrogates.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
INSTANTS = st.datetimes(datetime(2030, 1, 1), datetime(2060, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
LENGTHS = st.integers(1, 10**12).map(lambda microseconds: timedelta(microseconds=microseconds))
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.:-]{0,20}", fullmatch=True)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "queue": NAMES | st.sampled_from(["imports", "mail"]),
        "priority": st.integers(-100, 100),
        "key": st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=30),
        "tags": st.lists(st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=9), max_size=5),
        "when": st.tuples(st.just("delay"), LENGTHS) | st.tuples(st.just("at"), INSTANTS),
        "timeout": LENGTHS,
        "retry": st.integers(1, 1000),
        "headers": st.dictionaries(NAMES, TEXTS, max_size=3),
        "until": st.tuples(st.just("start_within"), LENGTHS) | st.tuples(st.just("start_by"), INSTANTS),
    },
)
IN_SQL = {"at": "run_at"}


class Sql:
    """Calls the function with options as Python has them."""

    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(url, autocommit=True)

    def enqueue(self, job: object, arguments: str = "{}", **options: Any) -> str:
        named = "".join(f", {IN_SQL.get(name, name)} => %s" for name in options)
        call = CALL.format(named).encode()
        row = self.connection.execute(
            call, [job, arguments, *(Jsonb(one) if isinstance(one, dict) else one for one in options.values())]
        ).fetchone()
        assert row is not None
        return str(row[0])


@pytest.fixture
def sql(shop: Shop) -> Iterator[Sql]:
    registry_of(shop.app).connection.store()
    sql = Sql(shop.url)
    yield sql
    sql.connection.close()


def flat(options: dict[str, Any]) -> dict[str, Any]:
    """`when` and `until` stand for one of two options each."""
    return dict(value if name in ("when", "until") else (name, value) for name, value in options.items())


# What is relative to now differs by the time between two calls; what is relative to the other stays.
RELATIVE = {"patience": 7, "delay": 8, "expiry": 17}
ACTOR = 6


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=VALUES, note=VALUES, choice=OPTIONS, job=st.sampled_from(["import"]))
def test_python_and_sql_write_the_same_rows(
    shop: Shop, sql: Sql, rows: Any, note: Any, choice: dict[str, Any], job: str
) -> None:
    options = flat(choice)
    arguments = {"rows": rows, "note": note}
    shop.query("DELETE FROM rota.unique_key")
    before = datetime.now(UTC)
    (ours,) = shop.rows(shop.app.jobs[job].options(**options).enqueue(**arguments).id)
    shop.query("DELETE FROM rota.unique_key")
    (theirs,) = shop.rows(sql.enqueue(job, json.dumps(arguments), **options))
    took = (datetime.now(UTC) - before) / timedelta(microseconds=1)
    assert theirs[ACTOR] == "sql:rota"
    for index, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if index in RELATIVE.values() and {"at", "start_by"} & options.keys():
            assert (a is None) == (b is None)
            assert a is None or abs(a - b) <= took
        elif index != ACTOR:
            assert a == b, index


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=VALUES)
def test_python_and_sql_compute_the_same_digest(sql: Sql, value: Any) -> None:
    text = payload.encode({"value": value}, "the value")
    row = sql.connection.execute("SELECT %s::text::jsonb::text", [text]).fetchone()
    assert row == (canonical(text),)


@pytest.mark.parametrize(
    "number", ["1e22", "1.50", "-0.0", "-0", "1E+2", "1.0e-5", "123e-2", "0.1e1", "5e-324", "9" * 400]
)
def test_python_and_sql_compute_the_same_digest_of_numbers_in_every_notation(sql: Sql, number: str) -> None:
    row = sql.connection.execute(f"SELECT sha256(convert_to('[{number}]'::jsonb::text, 'UTF8'))".encode()).fetchone()
    assert row == (hashlib.sha256(canonical(f"[{number}]").encode()).digest(),)


def test_an_id_contains_its_time_and_ids_ascend(shop: Shop, sql: Sql) -> None:
    ids = [sql.enqueue("send", '{"to": "a"}') for _ in range(50)]
    assert all(is_id(id) and id[14] == "7" and id[19] in "89ab" for id in ids)
    assert ids == sorted(ids)
    for id, created_at in shop.query("SELECT id::text, created_at FROM rota.execution"):
        assert made_at(id) == created_at // 1000 * 1000


def test_the_job_runs_with_the_given_arguments(shop: Shop, sql: Sql) -> None:
    id = sql.enqueue("send", '{"subject": "yo", "to": "a@b.c"}')
    attempt = shop.claim(shop.worker())
    assert attempt.id == id
    prepared = registered(shop.send).function_executor.prepare(attempt.arguments, shop.attempt(attempt))
    assert prepared == ([], {"to": "a@b.c", "subject": "yo"})


def test_rolled_back_means_never_enqueued(shop: Shop, sql: Sql) -> None:
    with contextlib.suppress(psycopg.Rollback), sql.connection.transaction():
        sql.enqueue("send", '{"to": "a"}', key="k", queue="new")
        raise psycopg.Rollback
    assert shop.count() == 0
    assert shop.query("SELECT count(*) FROM rota.unique_key") == [(0,)]
    assert shop.query("SELECT count(*) FROM rota.queue WHERE name = 'new'") == [(0,)]


REFUSED: list[tuple[dict[str, Any], str, str, type[RotaError]]] = [
    ({"job": "missing"}, "RT001", "has no job 'missing'", UnknownJob),
    ({"job": "send", "app": "other"}, "RT001", "app 'other' has no job 'send'", UnknownJob),
    ({"job": "send", "namespace": "other"}, "RT001", "'other' has no job 'send'", UnknownJob),
    ({"arguments": "{}"}, "RT002", r"send\(\): missing argument `to`; it takes \(to, subject = ...\)", ArgumentsError),
    ({"arguments": '{"to": 1, "cc": 2}'}, "RT002", r"send\(\): there is no argument `cc`", ArgumentsError),
    ({"arguments": "[1]"}, "RT002", "one JSON object", ArgumentsError),
    ({"arguments": "null"}, "RT002", "one JSON object", ArgumentsError),
    ({"arguments": json.dumps({"to": "x" * 1024 * 1024})}, "RT002", "at most 1048576 are stored", ArgumentsError),
    ({"arguments": '{"to": ' + "[" * 201 + "]" * 201 + "}"}, "RT002", "deeper than 200 levels", ArgumentsError),
    ({"queue": "a b"}, "RT003", "a queue's name must start with a letter", DefinitionError),
    ({"queue": "a\n"}, "RT003", "a queue's name must start with a letter", DefinitionError),
    ({"priority": 101}, "RT003", "between -100 and 100", DefinitionError),
    ({"delay": timedelta(-1)}, "RT003", "delay must be between 0 and 100 years", DefinitionError),
    ({"start_within": timedelta(0)}, "RT003", "start_within must be longer than zero", DefinitionError),
    ({"key": ""}, "RT003", "key must be 1 to 512 printable", DefinitionError),
    ({"key": "a\tb"}, "RT003", "key must be 1 to 512 printable", DefinitionError),
    ({"tags": ["a"] * 51}, "RT003", "at most 50 tags", DefinitionError),
    ({"tags": [None]}, "RT003", "a tag must be", DefinitionError),
    ({"delay": timedelta(1), "run_at": datetime(2040, 1, 1, tzinfo=UTC)}, "RT003", "delay or run_at", DefinitionError),
    ({"timeout": timedelta(0)}, "RT003", "timeout must be longer than zero", DefinitionError),
    ({"retry": 0}, "RT003", "between 1 and 1000", DefinitionError),
    ({"headers": {"a": 1}}, "RT003", "headers must be one JSON object of texts", DefinitionError),
    ({"headers": {"": "x"}}, "RT003", "a header's name must be 1 to 512 printable", DefinitionError),
    ({"headers": {"a": "x" * 16384}}, "RT003", "headers take at most 16384 bytes", DefinitionError),
    ({"run_at": "infinity"}, "RT003", "not infinity", DefinitionError),
]


@pytest.mark.parametrize(("call", "state", "words", "kind"), REFUSED)
def test_python_and_sql_refuse_the_same_calls(
    shop: Shop, sql: Sql, call: dict[str, Any], state: str, words: str, kind: type[RotaError]
) -> None:
    with pytest.raises(psycopg.Error, match=words) as refused:
        sql.enqueue(**{"job": "send", "arguments": '{"to": "a"}', **call})
    assert refused.value.sqlstate == state
    assert shop.count() == 0


@pytest.mark.parametrize("text", ['{"to": "\\u0000"}', '{"to": "\\ud800"}', "{to: 1}", '{"to": NaN}'])
def test_arguments_that_are_not_json_are_refused_by_postgres(shop: Shop, sql: Sql, text: str) -> None:
    with pytest.raises(psycopg.DataError):
        sql.enqueue("send", text)


def test_two_hundred_levels_are_accepted_by_both(shop: Shop, sql: Sql) -> None:
    deep = "[" * 200 + "]" * 200
    sql.enqueue("import", f'{{"rows": {deep}}}')
    shop.app.jobs["import"].enqueue(json.loads(deep))
    assert shop.count() == 2


def test_python_and_sql_share_idempotency_keys(shop: Shop, sql: Sql) -> None:
    first = shop.send.options(key="k").enqueue("a", subject="1.0")
    assert sql.enqueue("send", '{"subject": "1.0", "to": "a"}', key="k") == first.id
    second = sql.enqueue("import", '{"note": [1.5, {"b": 1, "a": "é"}], "rows": 2}', key="k")
    again = shop.app.jobs["import"].options(key="k").enqueue(2, note=[1.5, {"a": "é", "b": 1}])
    assert (again.id, again.created) == (second, False)
    with pytest.raises(psycopg.Error, match=f"the key 'k' belongs to execution {first.id} of job 'send'") as refused:
        sql.enqueue("send", '{"to": "b"}', key="k")
    assert refused.value.sqlstate == "RT004"
    with pytest.raises(KeyConflict, match=f"the key 'k' belongs to execution {second} of job 'import'"):
        shop.app.jobs["import"].options(key="k").enqueue(3)


def test_one_of_many_callers_with_one_key_creates_the_execution(shop: Shop, sql: Sql) -> None:
    ids: set[str] = set()

    def in_sql() -> None:
        own = Sql(shop.url)
        ids.update(own.enqueue("send", '{"to": "a"}', key=f"k{number}") for number in range(20))
        own.connection.close()

    def in_python() -> None:
        ids.update(shop.send.options(key=f"k{number}").enqueue("a").id for number in range(20))

    threads = [threading.Thread(target=target) for target in (in_sql, in_python, in_sql, in_python)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == shop.count() == 20


def test_a_full_queue_is_refused_in_sql(shop: Shop, sql: Sql) -> None:
    shop.wrap.enqueue(1)
    kept = sql.enqueue("wrap", '{"order": 2}', key="k")
    words = r"queue 'gifts' is full \(2 of 2 queued\): nothing was accepted, retry after 1 s"
    with pytest.raises(psycopg.Error, match=words) as refused:
        sql.enqueue("wrap", '{"order": 3}')
    assert refused.value.sqlstate == "RT005"
    # In a caller's transaction the count is never old.
    with psycopg.connect(shop.url) as connection, pytest.raises(QueueFull, match=words):
        shop.wrap.within(connection).enqueue(3)
    assert sql.enqueue("wrap", '{"order": 2}', key="k") == kept


def test_a_job_of_several_apps_needs_the_app(shop: Shop, sql: Sql) -> None:
    shop.query(
        "INSERT INTO rota.job (id, namespace, app, name, version) "
        "SELECT gen_random_uuid(), namespace, 'other', name, version FROM rota.job WHERE name = 'wrap'"
    )
    with pytest.raises(psycopg.Error, match=r"the apps other, shop have a job 'wrap': say which with app =>"):
        sql.enqueue("wrap", '{"order": 1}')
    id = sql.enqueue("wrap", '{"order": 1}', app="shop")
    assert shop.app.handle(id).status() is Status.QUEUED
    shop.query("DELETE FROM rota.job WHERE app = 'other'")


def test_the_callers_search_path_does_not_matter(shop: Shop, sql: Sql) -> None:
    """Nor do tables of the caller's own that have the names of ours."""
    sql.connection.execute("CREATE TEMP TABLE job (namespace text, app text, name text, version bigint)")
    sql.connection.execute("SET search_path = pg_temp, public")
    sql.enqueue("send", '{"to": "a"}')
    assert sql.connection.execute("SHOW search_path").fetchone() == ("pg_temp, public",)
    assert shop.count() == 1


def test_the_function_works_in_a_schema_of_another_name(url: str) -> None:
    store = PostgresStore(f"{url}?schema=elsewhere", inline=True)
    with psycopg.connect(url) as connection, pytest.raises(psycopg.Error, match="has no job 'send'"):
        connection.execute("SELECT elsewhere.enqueue('send')")
    store.close()


def test_a_role_that_may_only_call_the_function_can_enqueue(shop: Shop, sql: Sql) -> None:
    """As the docs say: by default it runs with the caller's rights; its owner may lend theirs."""
    server = postgres.shared()
    database = shop.url.rpartition("/")[2]
    guest = f"guest_{database}_sql"
    server.execute(f"CREATE ROLE {guest} LOGIN")
    sql.connection.execute(f"GRANT USAGE ON SCHEMA rota TO {guest}".encode())
    with server.connect(database, guest) as connection:
        call = b"""SELECT rota.enqueue('send', '{"to": "a"}')"""
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(call)
        sql.connection.execute("ALTER FUNCTION rota.enqueue SECURITY DEFINER")
        sql.connection.execute("REVOKE EXECUTE ON FUNCTION rota.enqueue FROM PUBLIC")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(call)
        sql.connection.execute(f"GRANT EXECUTE ON FUNCTION rota.enqueue TO {guest}".encode())
        connection.execute(call)
        # What the guest puts in its way is not what the function finds.
        connection.execute("CREATE TEMP TABLE job_version (id bigint, definition text)")
        connection.execute(call)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT * FROM rota.execution")
    assert {row[0] for row in shop.query("SELECT actor FROM rota.execution")} == {f"sql:{guest}"}
    sql.connection.execute("ALTER FUNCTION rota.enqueue SECURITY INVOKER")


def test_arguments_may_come_as_an_object(shop: Shop, sql: Sql) -> None:
    row = sql.connection.execute("SELECT rota.enqueue('send', %s)", [Jsonb({"to": "a"})]).fetchone()
    assert row is not None
    assert shop.app.handle(str(row[0])).info().arguments == {"to": "a"}
