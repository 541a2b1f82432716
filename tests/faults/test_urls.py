"""Every way to name a PostgreSQL database leads there, and no password is ever shown."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from rota import App, config
from rota.clock import SystemClock
from rota.domain.errors import DefinitionError, RotaError
from rota.sdk.app import registry_of
from rota.store.opening import open_reader, open_store
from rota.store.postgres import url as postgres_url
from rota.store.postgres.store import PostgresStore
from tests.support import daemons, postgres

SECRET = "s3cr/t:@ %&"
ENCODED = "s3cr%2Ft%3A%40%20%25%26"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://u@h:5/d", {"host": "h", "port": "5", "user": "u", "dbname": "d"}),
        ("postgres://u@h/d", {"host": "h", "user": "u", "dbname": "d"}),
        ("postgresql://u@a:1,b:2/d", {"host": "a,b", "port": "1,2", "dbname": "d"}),
        ("postgresql://u@a,b:2/d?target_session_attrs=any", {"host": "a,b", "target_session_attrs": "any"}),
        ("postgresql://u@[::1]:5/d", {"host": "::1", "port": "5", "dbname": "d"}),
        ("postgresql://u@[::1]:5,[fe80::1]:6/d", {"host": "::1,fe80::1", "port": "5,6"}),
        (f"postgresql://u:{ENCODED}@h/d", {"user": "u", "password": SECRET, "host": "h"}),
        (f"postgresql://h/d?user=u&password={ENCODED}", {"user": "u", "password": SECRET, "host": "h"}),
        ("postgresql://u@/d?host=/var/run/postgresql", {"host": "/var/run/postgresql", "dbname": "d"}),
        ("postgresql:///d?host=/tmp&port=5433", {"host": "/tmp", "port": "5433", "dbname": "d"}),
        ("postgresql://u@%2Fvar%2Frun/d", {"host": "/var/run", "dbname": "d"}),
        ("postgresql://u@h/d%20e?connect_timeout=9", {"dbname": "d e", "connect_timeout": "9"}),
    ],
)
def test_a_url_is_read_as_libpq_reads_it(url: str, expected: dict[str, str]) -> None:
    address = postgres_url.parse(url)
    assert conninfo_to_dict(address.conninfo).items() >= expected.items()
    assert SECRET not in address.shown
    assert ENCODED not in address.shown


def test_all_hosts_are_tried_until_one_is_the_server(url: str) -> None:
    user, _, place = url.partition("@")
    unused = f"127.0.0.1:{daemons.free_port()}"
    PostgresStore(f"{user}@{unused},{place}").close()


def test_a_url_may_name_a_socket(url: str) -> None:
    server = postgres.shared()
    name = url.rpartition("/")[2]
    PostgresStore(f"postgresql://{postgres.USER}@/{name}?host={server.sockets}&port={server.port}").close()


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://u:{ENCODED}@127.0.0.1:1/d",
        f"postgresql://127.0.0.1:1/d?user=u&password={ENCODED}",
        f"postgresql://u:{ENCODED}@127.0.0.1:1,127.0.0.1:2/d",
        "postgresql://u:s3cr/t@127.0.0.1:1/d",  # Not encoded: the rest is taken for the port.
        "postgresql://u:s3cr%zz@127.0.0.1:1/d",
        "postgresql://u:x?s3cr@127.0.0.1:1/d",
        "postgresql://u:x/y?s3cr@127.0.0.1:1/d",
        "postgresql://u:s3cr@ret@127.0.0.1:1/d",
        "postgresql://u:s3cr@127.0.0.1:port/d",
        "postgresql://u:s3cr@127.0.0.1:1/d?schema=No",
        "postgresql://u:s3cr@127.0.0.1:1/d?sslmode=wrong",
        "postgresql://u:s3cr@127.0.0.1:1/d?nonsense=1",
        "postgresql://u:s3cr@[::1/d",
        "postgresql+psycopg://u:s3cr@127.0.0.1:1/d",
        "POSTGRESQL://u:s3cr@127.0.0.1:1/d",
        " postgresql://u:s3cr@127.0.0.1:1/d",
        '"postgresql://127.0.0.1:1/d?password=s3cr"',
        "mysql://u:s3cr@127.0.0.1:1/d",
        "redis://s3cr@127.0.0.1:1/d",
        "postgresql:u:s3cr@127.0.0.1:1/d",
        "u:s3cr@127.0.0.1:1/d",
        "host=127.0.0.1 password=s3cr",
        "password=s3cr:x",
    ],
)
def test_no_message_contains_a_password(url: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(RotaError) as caught:
        open_store(url, busy_s=0.1)
    with pytest.raises(RotaError) as also:
        open_reader(url, SystemClock())
    app = App("shown", url=url)
    shown = (
        f"{app!r} {registry_of(app).settings!r} {registry_of(app).settings} {config.load({}, url='', listen_url=url)!r}"
    )
    assert "s3cr" not in f"{caught.value} {also.value} {shown} {caplog.text}"


@pytest.mark.parametrize("value", [["postgresql://u:s3cr@h/d"], {"password": "s3cr"}, b"postgresql://u:s3cr@h/d"])
def test_a_setting_of_the_wrong_type_is_refused_without_its_value(value: object) -> None:
    with pytest.raises(DefinitionError, match=r"the setting url .* must be str, not a (list|dict|bytes)") as caught:
        App("shown", url=value)  # type: ignore[arg-type]
    assert "s3cr" not in str(caught.value)


@pytest.mark.parametrize("password", [ENCODED, "pa?s3cr", "12/pa?s3cr", "pa@s3cr"])
@pytest.mark.parametrize("command", ["queues", "doctor"])
def test_no_command_shows_a_password(command: str, password: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rota", command],
        cwd=tmp_path,
        env={**os.environ, "ROTA_URL": f"postgresql://u:{password}@127.0.0.1:1/d", "ROTA_BUSY_S": "0.1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "s3cr" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["doctor", "--json"],
        ["--url", "POSTGRESQL://u:s3cr@127.0.0.1:1/d", "doctor"],
        ["queues", "postgresql://u:s3cr@127.0.0.1:1/d"],
    ],
    ids=lambda words: words[0],
)
def test_no_command_shows_the_password_of_a_url_in_the_wrong_form_or_place(words: list[str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rota", *words],
        cwd=tmp_path,
        env={**os.environ, "ROTA_URL": "postgresql+psycopg://u:s3cr@127.0.0.1:1/d"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode != 0
    assert "127.0.0.1:1/d" in done.stdout + done.stderr
    assert "s3cr" not in done.stdout + done.stderr


def test_the_error_of_a_server_without_ssl_is_shown(url: str) -> None:
    with pytest.raises(RotaError, match=r"refuses: .*server does not support SSL.*Check sslmode") as caught:
        PostgresStore(f"{url}?sslmode=require", busy_s=20)
    assert "cannot be reached" not in str(caught.value)


def test_a_password_is_sent_unchanged(server: postgres.PostgresServer) -> None:
    url = server.create_database("guarded")
    server.execute(sql.SQL("CREATE ROLE guest LOGIN PASSWORD {}").format(sql.Literal(SECRET)))
    server.execute("GRANT CREATE ON DATABASE guarded TO guest")
    require_password(server, "guest")
    place = url.partition("@")[2]
    PostgresStore(f"postgresql://guest:{ENCODED}@{place}").close()
    with pytest.raises(RotaError, match="password authentication failed"):
        PostgresStore(f"postgresql://guest:{ENCODED}x@{place}", busy_s=20)


def require_password(server: postgres.PostgresServer, user: str) -> None:
    """Of this user only; the others are trusted."""
    with server.connect() as connection:
        (path,) = connection.execute("SHOW hba_file").fetchone() or ("",)
        lines = [f"host all {user} all scram-sha-256", "host all all all trust", "local all all trust"]
        connection.execute(f"COPY (SELECT unnest(ARRAY{lines})) TO '{path}'".encode())
        connection.execute("SELECT pg_reload_conf()")
