"""A PostgreSQL database that will not have us, or is not ours: one line that says why and what to do, everywhere."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from rota.cli import failure
from rota.domain.errors import StoreUnavailable
from rota.store.postgres.store import PostgresStore
from tests.cli.shell import Shell
from tests.support import postgres
from tests.support.databases import fresh_database

COMMANDS = [
    ["queues"],
    ["executions"],
    ["show", "0197"],
    ["migrate"],
    ["migrate", "--dry-run"],
    ["enqueue", "send", "to=a"],
    ["enqueue", "--app", "shop", "send", "to=a"],
    ["cancel", "0197"],
    ["dead"],
]
ROLE = "onlooker"


@pytest.fixture
def url() -> str:
    return fresh_database()


@pytest.fixture
def guest(url: str) -> Iterator[str]:
    """The same database for a role without any rights."""
    server, name = postgres.shared(), url.rpartition("/")[2]
    role = f"{ROLE}_{name}"
    server.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
    yield server.url(name, role)
    server.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(role)), database=name)
    server.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


def grant_usage(guest: str) -> None:
    name = guest.rpartition("/")[2]
    grant = sql.SQL("GRANT USAGE ON SCHEMA rota TO {}").format(sql.Identifier(f"{ROLE}_{name}"))
    postgres.shared().execute(grant, database=name)


def with_encoding(encoding: str) -> str:
    """A new database that Rota cannot use."""
    server, name = postgres.shared(), f"encoded_{encoding.lower()}"
    server.drop_database(name)
    command = sql.SQL("CREATE DATABASE {} OWNER {} ENCODING {} LOCALE 'C' TEMPLATE template0")
    server.execute(command.format(sql.Identifier(name), sql.Identifier(postgres.USER), sql.Literal(encoding)))
    return server.url(name)


def test_every_command_says_that_a_role_has_no_rights(shell: Shell, guest: str) -> None:
    for words in COMMANDS:
        line = shell.refused(*words, "--url", guest)
        assert "refuses: permission denied for schema rota. Grant it to the URL's user" in line
    grant_usage(guest)
    for words in COMMANDS:
        assert "refuses: permission denied for table migration. Grant it" in shell.refused(*words, "--url", guest)


def test_the_doctor_tells_a_role_without_rights_what_it_lacks(shell: Shell, guest: str) -> None:
    answer = shell("doctor", "--json", "--url", guest)
    assert answer.code == 1
    assert next(row["found"] for row in answer.rows if row["check"] == "rights").endswith("schema rota (USAGE)")
    assert answer.rows[-1]["check"] == "schema"
    assert "permission denied for schema rota" in answer.rows[-1]["found"]
    grant_usage(guest)
    assert "permission denied for table migration" in shell("doctor", "--json", "--url", guest).rows[-1]["found"]


@pytest.mark.parametrize(
    "made",
    [
        "CREATE TABLE rota.migration (version text)",
        "CREATE SEQUENCE rota.migration",
        "CREATE TABLE rota.things (id int); CREATE INDEX migration ON rota.things (id)",
    ],
)
def test_a_schema_of_another_program_is_not_changed(shell: Shell, made: str) -> None:
    url = postgres.shared().create_database()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE SCHEMA rota")
        connection.execute(made.encode())
    for words in (["queues"], ["migrate"], ["enqueue", "send"]):
        line = shell.refused(*words, "--url", url)
        assert "the schema rota of the database" in line
        assert "holds something that is not Rota's" in line
        assert "choose another schema with `?schema=name` in the URL" in line
        assert "run `rota migrate`" not in line
    assert "is not Rota's" in shell("doctor", "--json", "--url", url).rows[-1]["found"]
    shell.ok("migrate", "--url", f"{url}?schema=jobs")
    shell.ok("queues", "--url", f"{url}?schema=jobs")


@pytest.mark.parametrize("made", ["migration (number int, checksum text)", "execution (id int)"])
def test_a_schema_in_which_a_name_is_taken_is_not_touched(made: str, shell: Shell) -> None:
    url = postgres.shared().create_database()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE SCHEMA rota")
        connection.execute(f"CREATE TABLE rota.{made}".encode())
    answer = shell("migrate", "--url", url)
    assert answer.code == 2
    assert "already exists): choose another schema" in answer.err
    with psycopg.connect(url) as connection:
        tables = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'rota'").fetchone()
    assert tables == (1,)


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_no_schema_is_made_in_a_database_of_another_encoding(shell: Shell, encoding: str) -> None:
    url = with_encoding(encoding)
    for words in (["migrate"], ["migrate", "--dry-run"]):
        line = shell.refused(*words, "--url", url)
        assert f"has the encoding {encoding}, and Rota needs UTF8" in line
        assert "`CREATE DATABASE name ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0`" in line
    with pytest.raises(StoreUnavailable, match=f"has the encoding {encoding}"):
        PostgresStore(url, inline=True)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT to_regnamespace('rota')").fetchone() == (None,)


def test_an_unexpected_error_is_still_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise psycopg.errors.InsufficientPrivilege("permission denied\nfor something")

    assert failure.guarded(fail) == failure.BAD_INPUT
    said = capsys.readouterr().err
    assert said.startswith("rota: the database")
    assert "permission denied" in said
    assert said.count("\n") == 1


def test_a_mistake_of_our_own_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        failure.guarded(lambda: print(1 / 0))


def test_an_app_with_another_url_is_refused_without_its_password(shell: Shell) -> None:
    (shell.folder / "other.py").write_text("from rota import App\napp = App('shop', url='postgresql://u:s3cr@h/d')")
    line = shell.refused("--url", "postgresql://u:s3cr@other/d", "enqueue", "--load", "other:app", "send")
    assert "url='postgresql://u:***@h/d' in its code" in line
    assert "s3cr" not in line
